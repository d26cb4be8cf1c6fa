import { expect, test } from "vitest";

import type { EnvironmentCard, Need, PipelineRow } from "../api/types";
import { counted, environmentNames, matrixRows, ordered, promotionsSince, searched } from "./rows";

function card(name: string, order: number, version: string, incoming?: string): EnvironmentCard {
  const state = { kind: "PromotionStep", name: "Verified", tone: "ok" as const, meaning: "" };
  return { name, order, upstreams: [], state, version, behind: 0, ...(incoming && { incoming }) };
}

function row(name: string, need: Need, cards: EnvironmentCard[] = []): PipelineRow {
  return {
    namespace: "shop",
    name,
    branch: "main",
    need,
    why: { text: "", tone: "rest" },
    newest: cards[0]?.version ?? "",
    people: ["@Ann"],
    commit: "3fa9c12",
    environments: Object.fromEntries(cards.map((each) => [each.name, each])),
    verified: {},
  };
}

test("those that need someone come first, then by name", () => {
  const rows = [row("b", "rest"), row("c", "person"), row("a", "rest"), row("d", "failed"), row("e", "held")];
  expect(ordered(rows).map((each) => each.name)).toEqual(["c", "d", "e", "a", "b"]);
  expect(counted(rows)).toEqual({ person: 1, failed: 1, held: 1, moving: 0, rest: 2 });
});

test("promotions of today are those since midnight, whatever the row was computed with", () => {
  const rows = [
    { ...row("a", "rest"), verified: { "2026-11-27T22:45Z": 4, "2026-11-27T23:00Z": 1, "2026-11-28T14:15Z": 2 } },
    { ...row("b", "rest"), verified: { "2026-11-28T00:00Z": 1 } },
  ];
  expect(promotionsSince(rows, Date.parse("2026-11-28T00:00+01:00"))).toBe(4);
  expect(promotionsSince(rows, Date.parse("2026-11-29T00:00+01:00"))).toBe(0);
});

test("the search finds names, versions, commits and people, and every word has to be found", () => {
  const rows = [
    row("search", "rest", [card("prod", 0, "0.9.4")]),
    row("checkout", "rest", [card("prod", 0, "4.12.0")]),
  ];
  const found = (q: string, namespace = "") => searched(rows, { q, namespace }).map((each) => each.name);
  expect(found("0.9")).toEqual(["search"]);
  expect(found("@ann PROD 4.12")).toEqual(["checkout"]);
  expect(found("3fa9c12")).toHaveLength(2);
  expect(found("nothing")).toEqual([]);
  expect(found("", "other")).toEqual([]);
});

test("the matrix has a line for each version, and says where it runs and where it comes", () => {
  const lines = matrixRows([row("search", "moving", [card("dev", 0, "2"), card("prod", 1, "1", "2")])]);
  expect(lines.map((line) => [line.version, line.first])).toEqual([
    ["2", true],
    ["1", false],
  ]);
  expect(lines[0]?.cells["prod"]?.runs).toBe(false);
  expect(lines[1]?.cells["prod"]?.runs).toBe(true);
  expect(matrixRows([row("new", "rest", [card("dev", 0, "")])]).map((line) => line.version)).toEqual([""]);
});

test("columns are in the order that most Pipelines promote in", () => {
  const rows = [
    row("a", "rest", [card("dev", 0, "1"), card("prod", 2, "1")]),
    row("b", "rest", [card("prod", 1, "1"), card("dev", 0, "1")]),
  ];
  expect(environmentNames(rows)).toEqual(["dev", "prod"]);
});
