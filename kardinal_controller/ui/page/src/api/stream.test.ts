import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { readEvents } from "./events";
import { RequestError } from "./session";
import { DocumentStream, SILENCE_MS, waitBefore } from "./stream";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A server whose connections the test writes to. */
function server() {
  const connections: { headers: Record<string, string>; send(text: string): void; close(): void; closed: boolean }[] =
    [];
  let refusal: RequestError | undefined;
  const open = (_path: string, init: RequestInit): Promise<Response> => {
    if (refusal) return Promise.reject(refusal);
    let controller: ReadableStreamDefaultController<Uint8Array>;
    const body = new ReadableStream<Uint8Array>({ start: (made) => void (controller = made) });
    const connection = {
      headers: init.headers as Record<string, string>,
      closed: false,
      send: (text: string) => controller.enqueue(new TextEncoder().encode(text)),
      close: () => controller.close(),
    };
    init.signal?.addEventListener("abort", () => {
      connection.closed = true;
      controller.error(new DOMException("aborted", "AbortError"));
    });
    connections.push(connection);
    return Promise.resolve(new Response(body));
  };
  return { connections, open, refuse: (error: RequestError | undefined) => (refusal = error) };
}

const settle = (milliseconds = 20) => vi.advanceTimersByTimeAsync(milliseconds);
const event = (name: string, data: unknown, id: string) =>
  `event: ${name}\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`;

function start(options = {}, refusal?: RequestError) {
  const remote = server();
  remote.refuse(refusal);
  const stream = new DocumentStream<Record<string, unknown>>("stream/x", {
    open: remote.open,
    random: () => 1,
    ...options,
  });
  return { remote, stream, stop: stream.subscribe(() => undefined) };
}

test("events are read across pieces, with comments and several lines of data", async () => {
  const pieces = ["event: a\nda", "ta: 1\ndata: 2\r\n", "\n: still here\nid: 7\ndata:x\n\n"];
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
      controller.close();
    },
  });
  const read = [];
  for await (const each of readEvents(body)) read.push(each);
  expect(read).toEqual([
    { event: "a", data: "1\n2", id: undefined },
    undefined,
    { event: "message", data: "x", id: "7" },
  ]);
});

test("a snapshot is replaced, and patches change it", async () => {
  const { remote, stream, stop } = start();
  await settle();
  remote.connections[0]?.send(event("snapshot", { a: 1, b: 1 }, "r-1"));
  await settle();
  expect(stream.state()).toEqual({ document: { a: 1, b: 1 }, live: true, lostSince: undefined, error: undefined });
  remote.connections[0]?.send(event("patch", { a: 2, b: null }, "r-2"));
  await settle();
  expect(stream.state().document).toEqual({ a: 2 });
  remote.connections[0]?.send(event("snapshot", { c: 3 }, "r-9"));
  await settle();
  expect(stream.state().document).toEqual({ c: 3 });
  stop();
});

test("a snapshot in parts is shown when it is complete", async () => {
  const { remote, stream, stop } = start({ inParts: true });
  await settle();
  remote.connections[0]?.send(
    event("snapshot", { rows: { a: 1 } }, "r-1") + event("snapshot", { rows: { b: 2 } }, "r-1"),
  );
  await settle();
  expect(stream.state().document).toBeUndefined();
  remote.connections[0]?.send(event("complete", {}, "r-1"));
  await settle();
  expect(stream.state().document).toEqual({ rows: { a: 1, b: 2 } });
  // A reader that was too slow gets everything again; what is gone is gone.
  remote.connections[0]?.send(event("snapshot", { rows: { b: 3 } }, "r-8") + event("complete", {}, "r-8"));
  await settle();
  expect(stream.state().document).toEqual({ rows: { b: 3 } });
  stop();
});

test("a lost connection says since when, keeps the document, and goes on after the last event", async () => {
  const { remote, stream, stop } = start();
  await settle();
  remote.connections[0]?.send(event("snapshot", { a: 1 }, "r-4"));
  await settle();
  const lost = Date.now();
  remote.connections[0]?.close();
  await settle();
  expect(stream.state()).toMatchObject({ document: { a: 1 }, live: false });
  expect(stream.state().lostSince).toBeGreaterThanOrEqual(lost);

  await settle(600);
  expect(remote.connections[1]?.headers["Last-Event-ID"]).toBe("r-4");
  remote.connections[1]?.send(event("patch", { a: 2 }, "r-5"));
  await settle();
  expect(stream.state()).toEqual({ document: { a: 2 }, live: true, lostSince: undefined, error: undefined });
  stop();
});

test("a connection without a heartbeat is lost after 40 seconds", async () => {
  const { remote, stream, stop } = start();
  await settle();
  remote.connections[0]?.send(event("snapshot", { a: 1 }, "r-1"));
  await settle(SILENCE_MS - 1000);
  remote.connections[0]?.send(": still here\n\n");
  await settle(SILENCE_MS - 1000);
  expect(stream.state().live).toBe(true);
  await settle(1000);
  expect(remote.connections[0]?.closed).toBe(true);
  expect(stream.state().live).toBe(false);
  stop();
});

test("attempts wait longer each time, up to half a minute, and half of the wait is random", () => {
  expect([0, 1, 2, 9, 400].map((attempt) => waitBefore(attempt, () => 1))).toEqual([500, 1000, 2000, 30_000, 30_000]);
  expect(waitBefore(1, () => 0)).toBe(500);
});

test("a server that is away is asked again; one that refuses is not", async () => {
  const away = start({}, new RequestError("starting", 503, "wait"));
  await settle();
  expect(away.stream.state().error?.status).toBe(503);
  away.remote.refuse(undefined);
  await settle(2000);
  expect(away.remote.connections).toHaveLength(1);
  away.stop();

  const refused = start({}, new RequestError("no Pipeline x", 404, "There are: y"));
  await settle();
  expect(refused.stream.state().error?.remedy).toBe("There are: y");
  refused.remote.refuse(undefined);
  await settle(120_000);
  expect(refused.remote.connections).toHaveLength(0);
  refused.stop();
});

test("an end says whether to connect again; else what it was about is gone", async () => {
  const { remote, stream, stop } = start();
  await settle();
  remote.connections[0]?.send(event("end", { reason: "the server stops", again: true }, "r-1"));
  await settle(1500);
  expect(remote.connections).toHaveLength(2);
  // The viewer may see other objects than before, which only a snapshot has.
  expect(remote.connections[1]?.headers["Last-Event-ID"]).toBeUndefined();
  remote.connections[1]?.send(event("end", { reason: "there is no Pipeline search", again: false }, "r-1"));
  await settle(120_000);
  expect(remote.connections).toHaveLength(2);
  expect(stream.state().error).toMatchObject({ message: "there is no Pipeline search", status: 404 });
  stop();
});

test("a stream without subscribers is closed", async () => {
  const { remote, stop } = start();
  await settle();
  stop();
  await settle();
  expect(remote.connections[0]?.closed).toBe(true);
});
