// The layout of a DAG, which takes some tenths of a second for 200 nodes: `places.ts` has it computed by a worker.

import dagre from "@dagrejs/dagre";

import { sizeOf, type Place, type Places } from "./graph";

/** Return the upper left corner of each node, from left to right in the order of promotion. */
export function placesOf(structure: string): Places {
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
