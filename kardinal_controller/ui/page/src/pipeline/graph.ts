// The places of nodes: computed from which nodes and edges there are, and from nothing that changes while a Bundle walks.

import dagre from "@dagrejs/dagre";

import type { PipelineDocument } from "../api/types";

export const ENVIRONMENT_SIZE = { width: 184, height: 110 };
export const GATE_SIZE = { width: 158, height: 46 };

export interface Place {
  readonly x: number;
  readonly y: number;
}

/** Return a text that is the same as long as the DAG has the same nodes and edges. */
export function structureOf(document: Pick<PipelineDocument, "nodes" | "edges">): string {
  const nodes = Object.keys(document.nodes).sort();
  const edges = Object.values(document.edges).map((edge) => [edge.source, edge.target]);
  return JSON.stringify([nodes, edges.sort()]);
}

/** Return the upper left corner of each node, from left to right in the order of promotion. */
export function placesOf(structure: string): Readonly<Record<string, Place>> {
  const [nodes, edges] = JSON.parse(structure) as [string[], [string, string][]];
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "LR", ranksep: 44, nodesep: 28, marginx: 20, marginy: 20 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const key of nodes) graph.setNode(key, { ...sizeOf(key) });
  const known = new Set(nodes);
  for (const [source, target] of edges) if (known.has(source) && known.has(target)) graph.setEdge(source, target);
  dagre.layout(graph);
  return Object.fromEntries(
    nodes.map((key) => {
      const { x, y } = graph.node(key) as unknown as Place;
      const size = sizeOf(key);
      return [key, { x: x - size.width / 2, y: y - size.height / 2 }];
    }),
  );
}

/** Return the size of a node by its key, `environment/prod` or `gate/prod/platform/business-hours`. */
export function sizeOf(key: string): { width: number; height: number } {
  return key.startsWith("gate/") ? GATE_SIZE : ENVIRONMENT_SIZE;
}
