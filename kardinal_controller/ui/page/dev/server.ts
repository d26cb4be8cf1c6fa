// The API with invented documents, for `npm run fixture`: to look at the page without a controller.

import type { Connect, Plugin } from "vite";

import { documentOf } from "./fixture.ts";

const answer: Connect.NextHandleFunction = (request, response) => {
  const path = decodeURIComponent((request.url ?? "/").replace(/\?.*/, "").slice(1));
  const found = documentOf(path.replace(/^stream\//, ""), request.method ?? "GET");
  if (found === undefined) {
    response.statusCode = 404;
    response.end(JSON.stringify({ message: `The fixture has no ${path}.`, remedy: "Add it to dev/fixture.ts." }));
  } else if (path.startsWith("stream/")) {
    response.setHeader("Content-Type", "text/event-stream");
    response.write(`event: snapshot\nid: fixture-1\ndata: ${JSON.stringify(found)}\n\nevent: complete\ndata: {}\n\n`);
    const beat = setInterval(() => response.write(": still here\n\n"), 15_000);
    request.on("close", () => clearInterval(beat));
  } else {
    response.setHeader("Content-Type", typeof found === "string" ? "text/plain" : "application/json");
    response.end(typeof found === "string" ? found : JSON.stringify(found));
  }
};

/** Answer the requests below /api/ui/v1 from the fixture; a stream is a snapshot and then heartbeats. */
export function fixtureApi(): Plugin {
  return {
    name: "fixture-api",
    configurePreviewServer(server) {
      server.middlewares.use("/api/ui/v1", answer);
    },
  };
}
