// What places of nodes are computed from: which nodes and edges there are, and nothing that changes while a Bundle walks.

import type { PipelineDocument } from "../api/types";

export const ENVIRONMENT_SIZE = { width: 184, height: 110 };
export const GATE_SIZE = { width: 158, height: 46 };

export interface Place {
  readonly x: number;
  readonly y: number;
}

/** The upper left corner of each node. */
export type Places = Readonly<Record<string, Place>>;

/** Return a text that is the same as long as the DAG has the same nodes and edges. */
export function structureOf(document: Pick<PipelineDocument, "nodes" | "edges">): string {
  const nodes = Object.keys(document.nodes).sort();
  const edges = Object.values(document.edges).map((edge) => [edge.source, edge.target]);
  return JSON.stringify([nodes, edges.sort()]);
}

/** Return the size of a node by its key, `environment/prod` or `gate/prod/platform/business-hours`. */
export function sizeOf(key: string): { width: number; height: number } {
  return key.startsWith("gate/") ? GATE_SIZE : ENVIRONMENT_SIZE;
}
