// Where the hours of a Bundle went, by environment: waiting to begin, for gates or an agent, the work itself, review, and health.

import type { EnvironmentEvidence } from "../api/types";

export interface Span {
  readonly what: "waiting" | "changing" | "review" | "health";
  readonly from: number;
  readonly to: number;
}

/** Return the spans of a Bundle in an environment, in the order of time; the last one of a walk that goes on ends now. */
export function spansOf(evidence: EnvironmentEvidence, now: number): Span[] {
  const at = (time: string | undefined) => (time === undefined ? undefined : Date.parse(time));
  const due = at(evidence.dueAt);
  const started = at(evidence.startedAt);
  const proposed = at(evidence.proposedAt);
  const landed = at(evidence.landedAt);
  const verified = at(evidence.verifiedAt);
  const over = ["Failed", "Superseded", "Skipped", "NotTargeted", "NotReached"].includes(evidence.state.name);
  const last = verified ?? (over ? undefined : now);
  const spans: Span[] = [];
  const add = (what: Span["what"], from: number | undefined, to: number | undefined) => {
    if (from !== undefined && to !== undefined && to > from) spans.push({ what, from, to });
  };
  add("waiting", due, started ?? last);
  add("changing", started, proposed ?? landed ?? last);
  add("review", proposed, landed ?? last);
  add("health", landed, last);
  return spans;
}

/** Return how long each part took over all environments, longest first. */
export function totals(spans: readonly Span[]): [Span["what"], number][] {
  const sums = new Map<Span["what"], number>();
  for (const span of spans) sums.set(span.what, (sums.get(span.what) ?? 0) + span.to - span.from);
  return [...sums].sort(([, a], [, b]) => b - a);
}
