// The addresses of the API and of the page, both relative to the `base` of the HTML, which the server writes.

/** Return the address of an endpoint: `apiUrl("viewer")` is `https://host/api/ui/v1/viewer`. */
export function apiUrl(path: string, base: string = document.baseURI): string {
  return new URL(`../api/ui/v1/${path}`, base).href;
}

/** Return the path below which the router works, without the last slash: `/ui`. */
export function routerBase(base: string = document.baseURI): string {
  return new URL(".", base).pathname.replace(/\/$/, "");
}
