// Whether the stream of the page that is open is connected, for the dot in the bar at the top.

import { useEffect, useSyncExternalStore } from "react";

import type { StreamState } from "./stream";

export interface Connection {
  readonly live: boolean;
  readonly lostSince: number | undefined;
  /** Whether the server ended the session. */
  readonly ended: boolean;
}

let current: Connection | undefined;
const listeners = new Set<() => void>();

function report(connection: Connection | undefined): void {
  current = connection;
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Report the stream of this page to the bar, as long as the page is open. */
export function useReported(state: StreamState<unknown>): void {
  const { live, lostSince, error } = state;
  const ended = error?.status === 401;
  // The server has answered, and the page shows what: the connection is not lost.
  const refused = error?.status === 403 || error?.status === 404;
  useEffect(() => {
    report(refused ? undefined : { live, lostSince, ended });
    return () => report(undefined);
  }, [live, lostSince, ended, refused]);
}

/** Return the connection of the page that is open; undefined for a page without a stream. */
export function useConnection(): Connection | undefined {
  return useSyncExternalStore(subscribe, () => current);
}
