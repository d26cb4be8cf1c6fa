// The rows of the overview: which are shown, and in which order.

import type { EnvironmentCard, Need, PipelineRow } from "../api/types";
import type { Filters } from "../shell/search";
import { NEEDS } from "../words/states";

/** Return the environments of a row in the order of promotion. */
export function environmentsOf(row: PipelineRow): EnvironmentCard[] {
  return Object.values(row.environments).sort((a, b) => a.order - b.order);
}

const texts = new WeakMap<PipelineRow, string>();

/** Return everything that the search finds of a row, in lower case. */
function textOf(row: PipelineRow): string {
  let text = texts.get(row);
  if (text === undefined) {
    const cards = Object.values(row.environments);
    text = [
      `${row.namespace}/${row.name}`,
      row.branch,
      row.newest,
      row.bundle,
      row.commit,
      ...row.people,
      ...cards.flatMap((card) => [card.name, card.version, card.incoming, card.shard, card.state.name]),
    ]
      .join("\n")
      .toLowerCase();
    texts.set(row, text);
  }
  return text;
}

/** Return the rows that the search and the namespace let through; every word of the search has to be found. */
export function searched(rows: readonly PipelineRow[], filters: Pick<Filters, "q" | "namespace">): PipelineRow[] {
  const words = filters.q.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter(
    (row) =>
      (!filters.namespace || row.namespace === filters.namespace) && words.every((word) => textOf(row).includes(word)),
  );
}

/** Return the rows with those that need someone first, and by name among them. */
export function ordered(rows: readonly PipelineRow[]): PipelineRow[] {
  const rank = (row: PipelineRow) => NEEDS.indexOf(row.need);
  return [...rows].sort((a, b) => rank(a) - rank(b) || compare(a.namespace, b.namespace) || compare(a.name, b.name));
}

/** Return how many rows have each need. */
export function counted(rows: readonly PipelineRow[]): Record<Need, number> {
  const counts: Record<Need, number> = { person: 0, failed: 0, held: 0, moving: 0, rest: 0 };
  for (const row of rows) counts[row.need] += 1;
  return counts;
}

/** Return how many environments of the rows were Verified since a moment, which is a full quarter of an hour. */
export function promotionsSince(rows: readonly PipelineRow[], moment: number): number {
  let count = 0;
  for (const row of rows) {
    for (const [quarter, verified] of Object.entries(row.verified)) {
      if (Date.parse(quarter) >= moment) count += verified;
    }
  }
  return count;
}

export interface MatrixRow {
  readonly row: PipelineRow;
  readonly version: string;
  /** Whether it is the first version of its Pipeline. */
  readonly first: boolean;
  /** The environments that run the version, or to which it is on its way. */
  readonly cells: Readonly<Record<string, { readonly card: EnvironmentCard; readonly runs: boolean }>>;
}

/** Return the matrix: a row for each version of each Pipeline, the one that has come least far first; "" without any. */
export function matrixRows(rows: readonly PipelineRow[]): MatrixRow[] {
  return rows.flatMap((row) => {
    const versions = new Map<string, Record<string, { card: EnvironmentCard; runs: boolean }>>();
    const cellsOf = (version: string) => {
      const cells = versions.get(version) ?? {};
      versions.set(version, cells);
      return cells;
    };
    if (row.newest) cellsOf(row.newest);
    for (const card of environmentsOf(row)) {
      if (card.incoming) cellsOf(card.incoming)[card.name] = { card, runs: false };
      if (card.version) cellsOf(card.version)[card.name] = { card, runs: true };
    }
    if (!versions.size) cellsOf("");
    return [...versions].map(([version, cells], index) => ({ row, version, cells, first: index === 0 }));
  });
}

/** Return the names of all environments: those that are earlier in most Pipelines come first. */
export function environmentNames(rows: readonly PipelineRow[]): string[] {
  const places = new Map<string, { sum: number; count: number }>();
  for (const row of rows) {
    for (const card of Object.values(row.environments)) {
      const place = places.get(card.name) ?? { sum: 0, count: 0 };
      place.sum += card.order;
      place.count += 1;
      places.set(card.name, place);
    }
  }
  const mean = (place: { sum: number; count: number }) => place.sum / place.count;
  return [...places].sort(([a, x], [b, y]) => mean(x) - mean(y) || compare(a, b)).map(([name]) => name);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
