import { getBezierPath, Position, ViewportPortal } from "@xyflow/react";
import { memo } from "react";

import type { Edge } from "../api/types";
import { sizeOf, type Places } from "./graph";

interface EdgesProps {
  readonly edges: Readonly<Record<string, Edge>>;
  readonly places: Places;
}

/**
 * The edges below the nodes, as one path for all that look the same: the browser goes through all elements whenever the
 * DAG moves, and a large DAG has hundreds of edges.
 */
export const DagEdges = memo(function DagEdges({ edges, places }: EdgesProps) {
  const paths = new Map<string, string>();
  for (const edge of Object.values(edges)) {
    const look = edge.open ? "tone-ok open" : `tone-${edge.tone} closed`;
    paths.set(look, (paths.get(look) ?? "") + curveOf(edge, places));
  }
  const open = Object.values(edges).filter((edge) => edge.open).length;
  return (
    <ViewportPortal>
      <svg className="dag-edges" role="img" aria-label={`${open} of ${Object.keys(edges).length} edges are open`}>
        {[...paths].map(([look, path]) => (
          <path key={look} d={path} className={`edge ${look}`} />
        ))}
      </svg>
    </ViewportPortal>
  );
});

/** Return the curve from the right side of the source to the left side of the target. */
function curveOf({ source, target }: Edge, places: Places): string {
  const from = places[source];
  const to = places[target];
  if (!from || !to) return "";
  const [curve] = getBezierPath({
    sourceX: from.x + sizeOf(source).width,
    sourceY: from.y + sizeOf(source).height / 2,
    sourcePosition: Position.Right,
    targetX: to.x,
    targetY: to.y + sizeOf(target).height / 2,
    targetPosition: Position.Left,
  });
  return curve;
}
