// The addresses of the pages, below the path that the page is served at.

const joined = (...parts: string[]) => parts.map((part) => `/${encodeURIComponent(part)}`).join("");

export const pipelinePath = (namespace: string, name: string) => joined("pipelines", namespace, name);
export const environmentPath = (namespace: string, name: string, environment: string) =>
  joined("pipelines", namespace, name, "environments", environment);
export const gatePath = (namespace: string, name: string, environment: string, gateNamespace: string, gate: string) =>
  joined("pipelines", namespace, name, "gates", environment, gateNamespace, gate);
export const bundlePath = (namespace: string, name: string) => joined("bundles", namespace, name);
export const graphPath = (namespace: string, name: string) => joined("graphs", namespace, name);
export const yamlPath = (kind: string, namespace: string, name: string) => joined("yaml", kind, namespace, name);

/** Return the query with a Bundle, or nothing: `?bundle=search-7`. */
export const ofBundle = (bundle: string | undefined) => (bundle ? `?bundle=${encodeURIComponent(bundle)}` : "");

/** Return the path of an endpoint for a path of the page: both name objects the same way. */
export const endpoint = (path: string) => path.slice(1);
