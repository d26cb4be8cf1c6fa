// @vitest-environment jsdom
import { act, cleanup, render, screen } from "@testing-library/react";
import { afterEach, beforeAll, expect, test, vi } from "vitest";

import type { DrawnEnvironment, DrawnGate, Edge, PipelineDocument } from "../api/types";
import Dag from "./Dag";
import * as layout from "./layout";
import * as boxes from "./NodeBox";
import type { PipelinePlace } from "./place";

/** The layout of 200 nodes takes a second on a busy machine. */
const SLOW = 30_000;
const GATES = ["business-hours", "error-budget", "soak"];

const place: PipelinePlace = {
  namespace: "shop",
  name: "search",
  open: undefined,
  bundle: undefined,
  compare: undefined,
  to: () => "/",
  stream: () => "",
  close: () => undefined,
  select: () => undefined,
};

beforeAll(() => {
  vi.stubGlobal(
    "ResizeObserver",
    class {
      observe() {}
      unobserve() {}
      disconnect() {}
    },
  );
});
afterEach(cleanup);

/** Return 50 environments in ranks of five, each behind three gates: 200 nodes. */
function wide(): PipelineDocument {
  const nodes: Record<string, DrawnEnvironment | DrawnGate> = {};
  const edges: Record<string, Edge> = {};
  for (let number = 0; number < 50; number++) {
    const name = `e${number}`;
    const state = { kind: "PromotionStep", name: "Pending", tone: "rest" as const, meaning: "" };
    const card = { name, order: number, upstreams: [], state, version: "1", behind: 0 };
    nodes[`environment/${name}`] = { kind: "environment", card, health: "" };
    for (const gate of GATES) {
      const key = `gate/${name}/shop/${gate}`;
      const answer = { kind: "Gate", name: "PASS", tone: "ok" as const, meaning: "" };
      nodes[key] = {
        kind: "gate",
        namespace: "shop",
        name: gate,
        environment: name,
        scope: "team",
        answer,
        detail: "",
      };
      edges[key] = { source: key, target: `environment/${name}`, open: true, tone: "ok" };
      if (number >= 5)
        edges[`${key}<`] = { source: `environment/e${number - 5}`, target: key, open: false, tone: "rest" };
    }
  }
  return { nodes, edges } as PipelineDocument;
}

/** Return the document in which one environment is Promoting. */
function changed(document: PipelineDocument): PipelineDocument {
  const key = "environment/e7";
  const before = document.nodes[key] as DrawnEnvironment;
  const state = { kind: "PromotionStep", name: "Promoting", tone: "move" as const, meaning: "" };
  return { ...document, nodes: { ...document.nodes, [key]: { ...before, card: { ...before.card, state } } } };
}

test(
  "a change of one state draws one of 200 nodes again, and computes no layout",
  async () => {
    const computed = vi.spyOn(layout, "placesOf");
    const drawn = vi.spyOn(boxes, "EnvironmentBox");
    const document = wide();
    const { container, rerender } = render(<Dag document={document} place={place} />);
    await screen.findByText("e49", {}, { timeout: SLOW });
    expect(container.querySelectorAll(".react-flow__node")).toHaveLength(200);
    expect(container.querySelectorAll(".dag-edges path")).toHaveLength(2);
    expect(computed).toHaveBeenCalledTimes(1);
    const moved = container.querySelector('[data-id="environment/e7"]')?.getAttribute("style");
    drawn.mockClear();

    act(() => rerender(<Dag document={changed(document)} place={place} />));
    expect(screen.getByText("Promoting")).toBeTruthy();
    expect(new Set(drawn.mock.calls.map(([props]) => props.drawn.card.name))).toEqual(new Set(["e7"]));
    expect(computed).toHaveBeenCalledTimes(1);
    expect(container.querySelector('[data-id="environment/e7"]')?.getAttribute("style")).toBe(moved);
  },
  SLOW,
);
