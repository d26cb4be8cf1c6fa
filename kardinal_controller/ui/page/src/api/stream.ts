// One document that stays current: a snapshot, then patches, over a stream of server-sent events that heals.

import { readEvents, type ServerEvent } from "./events";
import { mergePatch } from "./patch";
import { request, RequestError } from "./session";
import type { StreamEnd } from "./types";

/** The server sends a comment every 15 seconds; after this long without any byte the connection is lost. */
export const SILENCE_MS = 40_000;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;
/** Patches that come together are drawn together. */
const DRAW_MS = 16;

export interface StreamState<T> {
  /** The newest document; it stays, with its last look, while the connection is lost. */
  readonly document: T | undefined;
  /** Whether the document is current. */
  readonly live: boolean;
  /** The time at which the connection was lost, in milliseconds; undefined while it is not. */
  readonly lostSince: number | undefined;
  /** Why there is no connection: a refusal of the server, which is not tried again where that cannot help. */
  readonly error: RequestError | undefined;
}

export interface StreamOptions {
  /** Whether snapshots come in parts, followed by the event `complete`. */
  readonly inParts?: boolean;
  readonly open?: (path: string, init: RequestInit) => Promise<Response>;
  readonly random?: () => number;
}

/** The wait before the next attempt, in milliseconds: it doubles to half a minute, and half of it is random. */
export function waitBefore(attempt: number, random: () => number): number {
  const whole = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(attempt, 10));
  return whole / 2 + (whole / 2) * random();
}

/** A stream of one document. It is open while there is a subscriber. */
export class DocumentStream<T> {
  #state: StreamState<T> = { document: undefined, live: false, lostSince: undefined, error: undefined };
  readonly #listeners = new Set<() => void>();
  #document: unknown;
  #parts: unknown;
  #lastId: string | undefined;
  #abort: AbortController | undefined;
  #draw: ReturnType<typeof setTimeout> | undefined;
  readonly #open: NonNullable<StreamOptions["open"]>;
  readonly #random: () => number;

  constructor(
    readonly path: string,
    private readonly options: StreamOptions = {},
  ) {
    this.#open = options.open ?? request;
    this.#random = options.random ?? Math.random;
  }

  readonly state = (): StreamState<T> => this.#state;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    if (!this.#abort) void this.#run((this.#abort = new AbortController()).signal);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size) return;
      this.#abort?.abort();
      this.#abort = undefined;
    };
  };

  async #run(signal: AbortSignal): Promise<void> {
    for (let attempt = 0; !signal.aborted; attempt++) {
      const before = this.#lastId;
      try {
        const again = await this.#connect(signal);
        if (!again) return;
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof RequestError && error.status >= 400 && error.status < 500 && error.status !== 429) {
          // The same request would be refused again: not logged in, not permitted, not there.
          this.#lose(error);
          return;
        }
        this.#lose(error instanceof RequestError && error.status ? error : undefined);
      }
      if (this.#lastId !== before) attempt = 0;
      await pause(waitBefore(attempt, this.#random), signal);
    }
  }

  /** Read one connection to its end; return whether to connect again. */
  async #connect(signal: AbortSignal): Promise<boolean> {
    const connection = new AbortController();
    const stop = () => connection.abort();
    signal.addEventListener("abort", stop);
    let silence = setTimeout(stop, SILENCE_MS);
    try {
      const headers: Record<string, string> = { Accept: "text/event-stream" };
      if (this.#lastId) headers["Last-Event-ID"] = this.#lastId;
      const response = await this.#open(this.path, { headers, signal: connection.signal });
      if (!response.body) throw new RequestError("The stream has no content.", 0, "");
      if (this.#lastId && this.#document !== undefined) this.#publish(0);
      this.#parts = undefined;
      for await (const event of readEvents(response.body)) {
        clearTimeout(silence);
        silence = setTimeout(stop, SILENCE_MS);
        if (!event) continue;
        if (event.event === "end") return this.#ended(JSON.parse(event.data) as StreamEnd);
        this.#take(event);
      }
    } finally {
      clearTimeout(silence);
      signal.removeEventListener("abort", stop);
    }
    // The server closed the connection, as it does when it is restarted.
    if (!signal.aborted) this.#lose(undefined);
    return true;
  }

  #take(event: ServerEvent): void {
    if (event.event === "snapshot") {
      const part: unknown = JSON.parse(event.data);
      if (this.options.inParts) {
        this.#parts = this.#parts === undefined ? part : mergePatch(this.#parts, part);
      } else {
        this.#document = part;
        this.#publish(0);
      }
    } else if (event.event === "complete") {
      this.#document = this.#parts ?? this.#document;
      this.#parts = undefined;
      this.#publish(0);
    } else if (event.event === "patch") {
      this.#document = mergePatch(this.#document, JSON.parse(event.data));
      this.#publish(DRAW_MS);
    }
    if (event.id !== undefined) this.#lastId = event.id;
  }

  #ended(end: StreamEnd): boolean {
    // The viewer may see other objects than before, of which later patches say nothing: ask for a snapshot.
    this.#lastId = undefined;
    if (end.again) {
      this.#lose(undefined);
      return true;
    }
    // What was shown is gone, or not for this viewer any more. A session that ends lets the page ask again, for its 401.
    this.#lose(new RequestError(end.reason, 404, ""));
    return false;
  }

  #publish(after: number): void {
    if (after && this.#draw !== undefined) return;
    const draw = () => {
      this.#draw = undefined;
      this.#set({ document: this.#document as T, live: true, lostSince: undefined, error: undefined });
    };
    if (after) this.#draw = setTimeout(draw, after);
    else {
      clearTimeout(this.#draw);
      draw();
    }
  }

  #lose(error: RequestError | undefined): void {
    const since = this.#state.lostSince ?? Date.now();
    clearTimeout(this.#draw);
    this.#draw = undefined;
    this.#set({ document: this.#document as T | undefined, live: false, lostSince: since, error });
  }

  #set(state: StreamState<T>): void {
    this.#state = state;
    for (const listener of this.#listeners) listener();
  }
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener("abort", done);
  });
}
