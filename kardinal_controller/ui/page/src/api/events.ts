// The text of a stream of server-sent events, as events. The browser's own EventSource can send no header, which the
// session of `kardinal ui` needs.

export interface ServerEvent {
  readonly event: string;
  readonly data: string;
  readonly id: string | undefined;
}

/** Yield the events of a response, and undefined for each comment: the server sends one every 15 seconds. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent | undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let fields = emptyFields();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      rest += decoder.decode(value, { stream: true });
      const lines = rest.split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop() ?? "";
      for (const line of lines) {
        if (line.startsWith(":")) yield undefined;
        else if (line) addField(fields, line);
        else {
          if (fields.data.length) {
            yield { event: fields.event || "message", data: fields.data.join("\n"), id: fields.id };
          }
          fields = emptyFields();
        }
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

interface Fields {
  event: string;
  data: string[];
  id: string | undefined;
}

function emptyFields(): Fields {
  return { event: "", data: [], id: undefined };
}

function addField(fields: Fields, line: string): void {
  const colon = line.indexOf(":");
  const name = colon < 0 ? line : line.slice(0, colon);
  const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
  if (name === "event") fields.event = value;
  else if (name === "data") fields.data.push(value);
  else if (name === "id") fields.id = value;
}
