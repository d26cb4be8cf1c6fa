// Streams and the clock as React reads them.

import { useMemo, useSyncExternalStore } from "react";

import { DocumentStream, type StreamOptions, type StreamState } from "./stream";

/** Return the state of a stream; it is open while a component uses it. */
export function useStream<T>(path: string, options?: StreamOptions): StreamState<T> {
  const inParts = options?.inParts ?? false;
  const stream = useMemo(() => new DocumentStream<T>(path, { inParts }), [path, inParts]);
  return useSyncExternalStore(stream.subscribe, stream.state);
}

const listeners = new Set<() => void>();
let ticking: ReturnType<typeof setInterval> | undefined;

function onTick(listener: () => void): () => void {
  listeners.add(listener);
  ticking ??= setInterval(() => {
    for (const each of listeners) each();
  }, 1000);
  return () => {
    listeners.delete(listener);
    if (listeners.size) return;
    clearInterval(ticking);
    ticking = undefined;
  };
}

/** Return words that depend on the time. The component is drawn again only when the words change. */
export function useTimeWords(words: (now: number) => string): string {
  return useSyncExternalStore(onTick, () => words(Date.now()));
}
