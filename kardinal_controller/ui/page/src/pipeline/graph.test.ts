import { expect, test } from "vitest";

import type { DrawnEnvironment, PipelineDocument, Tone } from "../api/types";
import { structureOf } from "./graph";
import { placesOf } from "./layout";

function environment(name: string, tone: Tone): DrawnEnvironment {
  const state = { kind: "PromotionStep", name: tone, tone, meaning: "" };
  return { kind: "environment", card: { name, order: 0, upstreams: [], state, version: "1", behind: 0 }, health: "" };
}

function drawn(tone: Tone): Pick<PipelineDocument, "nodes" | "edges"> {
  return {
    nodes: { "environment/prod": environment("prod", tone), "environment/dev": environment("dev", tone) },
    edges: { a: { source: "environment/dev", target: "environment/prod", open: tone === "ok", tone } },
  };
}

test("nodes keep their places when their states change", () => {
  expect(structureOf(drawn("ok"))).toBe(structureOf(drawn("bad")));
});

test("what is promoted later stands further to the right", () => {
  const places = placesOf(structureOf(drawn("ok")));
  expect(places["environment/prod"]?.x).toBeGreaterThan(places["environment/dev"]?.x ?? Infinity);
});

test("an edge to a node that is not there is left out", () => {
  const places = placesOf(
    structureOf({
      ...drawn("ok"),
      edges: { a: { source: "environment/dev", target: "gone", open: true, tone: "ok" } },
    }),
  );
  expect(Object.keys(places)).toEqual(["environment/dev", "environment/prod"]);
});
