import { expect, test } from "vitest";

import type { EnvironmentEvidence } from "../api/types";
import { spansOf, totals } from "./hours";

const at = (minute: number) => new Date(minute * 60_000).toISOString();

function evidence(times: Partial<EnvironmentEvidence>, state = "Verified"): EnvironmentEvidence {
  return {
    environment: "prod",
    state: { kind: "PromotionStep", name: state, tone: "ok", meaning: "" },
    people: [],
    gates: [],
    delegate: "",
    metrics: {},
    health: "",
    ...times,
  };
}

const minutes = (spans: ReturnType<typeof spansOf>) =>
  spans.map(({ what, from, to }) => [what, from / 60_000, to / 60_000]);

test("a walk with a pull request has waiting, the change, its review and its health", () => {
  const walk = evidence({ dueAt: at(0), startedAt: at(10), proposedAt: at(11), landedAt: at(40), verifiedAt: at(45) });
  const spans = spansOf(walk, 99 * 60_000);
  expect(minutes(spans)).toEqual([
    ["waiting", 0, 10],
    ["changing", 10, 11],
    ["review", 11, 40],
    ["health", 40, 45],
  ]);
  expect(totals(spans)[0]).toEqual(["review", 29 * 60_000]);
});

test("what goes on ends now; what has ended without proof does not", () => {
  expect(
    minutes(spansOf(evidence({ dueAt: at(0), startedAt: at(1), landedAt: at(2) }, "HealthChecking"), 5 * 60_000)),
  ).toEqual([
    ["waiting", 0, 1],
    ["changing", 1, 2],
    ["health", 2, 5],
  ]);
  expect(minutes(spansOf(evidence({ dueAt: at(0), startedAt: at(1) }, "Failed"), 5 * 60_000))).toEqual([
    ["waiting", 0, 1],
  ]);
});
