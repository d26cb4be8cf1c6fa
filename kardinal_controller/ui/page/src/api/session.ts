// The session of `kardinal ui`: a secret that every request carries as a header. A cookie would reach every port of
// loopback. The secret is kept for this tab alone, so that reloading the page needs no new link. Where the page is
// served in a cluster the session is a cookie that scripts cannot read, and there is no secret here.

import { apiUrl } from "./place";
import type { LogIn, LoggedIn, Viewer } from "./types";

export const SESSION_HEADER = "X-Kardinal-Session";
const KEPT = "kardinal-session";

/** Return the headers of a request. */
export function sessionHeaders(): Record<string, string> {
  const secret = sessionStorage.getItem(KEPT);
  return secret ? { [SESSION_HEADER]: secret } : {};
}

/** Forget the secret of this tab. */
export function forgetSession(): void {
  sessionStorage.removeItem(KEPT);
}

/** Take the one-time code out of `…/ui/#code=…`, so that neither history nor a copied address has it. */
export function takeCode(): string | undefined {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (!code) return undefined;
  history.replaceState(history.state, "", location.pathname + location.search);
  return code;
}

/** Log in with a token or a code; return the viewer. */
export async function logIn(body: LogIn, request: typeof requestJson = requestJson): Promise<Viewer> {
  const answer = await request<LoggedIn>("session", { method: "POST", body: JSON.stringify(body) });
  if (answer.secret) sessionStorage.setItem(KEPT, answer.secret);
  return answer.viewer;
}

/** Log out: the server deletes the session, the tab forgets the secret. */
export async function logOut(): Promise<void> {
  try {
    await requestJson<unknown>("session", { method: "DELETE" });
  } finally {
    forgetSession();
  }
}

/** A request that failed: what, why and the remedy, as the server says them. */
export class RequestError extends Error {
  override readonly name = "RequestError";

  constructor(
    message: string,
    /** The status of HTTP; 0 if there was no answer. */
    readonly status: number,
    readonly remedy: string,
    readonly auth?: "token" | "proxy" | "kubeconfig",
    readonly command?: string,
  ) {
    super(message);
  }
}

/** Send a request with the session; raise RequestError where the answer is no success. */
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  for (const [name, value] of Object.entries(sessionHeaders())) headers.set(name, value);
  if (init.body) headers.set("Content-Type", "application/json");
  let response: Response;
  try {
    response = await fetch(apiUrl(path), { ...init, headers, credentials: "same-origin", cache: "no-store" });
  } catch (cause) {
    if (init.signal?.aborted) throw cause;
    throw new RequestError("The server cannot be reached.", 0, "The page tries again by itself.");
  }
  if (response.ok) return response;
  throw await errorOf(response);
}

/** Send a request and return the JSON of its answer. */
export async function requestJson<T>(path: string, init?: RequestInit): Promise<T> {
  const response = await request(path, init);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

/** Send a request and return the text of its answer. */
export async function requestText(path: string, init?: RequestInit): Promise<string> {
  return (await request(path, init)).text();
}

async function errorOf(response: Response): Promise<RequestError> {
  const text = await response.text().catch(() => "");
  let said: Readonly<Record<string, unknown>> = {};
  try {
    said = JSON.parse(text) as typeof said;
  } catch {
    // A proxy in between answers HTML, which nobody reads here.
  }
  const of = (key: string) => (typeof said[key] === "string" ? said[key] : undefined);
  const auth = of("auth");
  return new RequestError(
    of("message") ?? `The server answered ${response.status}.`,
    response.status,
    of("remedy") ?? "",
    auth === "token" || auth === "proxy" || auth === "kubeconfig" ? auth : undefined,
    of("command"),
  );
}
