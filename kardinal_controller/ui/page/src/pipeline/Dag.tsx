import "@xyflow/react/dist/base.css";

import {
  Controls,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
  useStore,
  type Node,
  type NodeProps,
} from "@xyflow/react";
import { createContext, memo, useContext, useEffect, useMemo } from "react";

import type { DrawnEnvironment, DrawnGate, PipelineDocument } from "../api/types";
import { DagEdges } from "./DagEdges";
import { sizeOf, structureOf, type Places } from "./graph";
import { EnvironmentBox, GateBox } from "./NodeBox";
import { nodeKey, type PipelinePlace } from "./place";
import { useLayout } from "./places";

type Drawn = DrawnEnvironment | DrawnGate;
type FlowNode = Node<{ drawn: Drawn }>;

const PlaceContext = createContext<PipelinePlace | undefined>(undefined);
const NODE_TYPES = { drawn: memo(FlowNodeView) };
const FIT = { padding: 0.08, maxZoom: 1, minZoom: 0.5 };
/** The most nodes that are all in the document; to add and remove them while the DAG moves costs more than they do. */
const MOST = 300;

/** The DAG from left to right, with environments and the gates between them. */
export default function Dag({ document, place }: { document: PipelineDocument; place: PipelinePlace }) {
  const { nodes: drawn, edges } = document;
  const layout = useLayout(useMemo(() => structureOf({ nodes: drawn, edges }), [drawn, edges]));
  const flowNodes = useMemo(() => flowNodesAt(layout?.places ?? {}), [layout]);
  const nodes = useMemo(() => flowNodes(drawn), [flowNodes, drawn]);
  if (!layout) return null;
  return (
    <PlaceContext value={place}>
      <ReactFlowProvider key={layout.structure}>
        <ReactFlow
          nodes={nodes}
          nodeTypes={NODE_TYPES}
          fitView
          fitViewOptions={FIT}
          minZoom={0.2}
          maxZoom={1.5}
          nodesConnectable={false}
          nodesFocusable={false}
          elementsSelectable={false}
          zoomOnScroll={false}
          preventScrolling={false}
          zoomOnDoubleClick={false}
          onlyRenderVisibleElements={nodes.length > MOST}
          disableKeyboardA11y
          proOptions={{ hideAttribution: true }}
        >
          <DagEdges edges={edges} places={layout.places} />
          <Controls showInteractive={false} fitViewOptions={FIT} />
          <FitOnResize />
        </ReactFlow>
      </ReactFlowProvider>
    </PlaceContext>
  );
}

/** Return a function that makes the nodes of React Flow: for what has not changed the same one, which is not drawn again. */
function flowNodesAt(places: Places): (nodes: Readonly<Record<string, Drawn>>) => FlowNode[] {
  const made = new WeakMap<Drawn, FlowNode>();
  return (nodes) =>
    Object.entries(nodes).flatMap(([id, drawn]) => {
      const position = places[id];
      if (!position) return [];
      const size = sizeOf(id);
      // With its size and without handles, React Flow has nothing to measure.
      const node = made.get(drawn) ?? {
        id,
        type: "drawn",
        data: { drawn },
        position,
        ...size,
        measured: size,
        handles: [],
        draggable: false,
      };
      made.set(drawn, node);
      return [node];
    });
}

/** Fits the DAG into its panel when that changes its size, as when a drawer opens. */
function FitOnResize() {
  const flow = useReactFlow();
  const width = useStore((state) => state.width);
  const height = useStore((state) => state.height);
  useEffect(() => {
    if (width && height) void flow.fitView(FIT);
  }, [flow, width, height]);
  return null;
}

function FlowNodeView({ id, data }: NodeProps<FlowNode>) {
  const place = useContext(PlaceContext);
  if (!place) return null;
  const chosen = place.open !== undefined && nodeKey(place.open) === id;
  return data.drawn.kind === "gate" ? (
    <GateBox gate={data.drawn} place={place} chosen={chosen} />
  ) : (
    <EnvironmentBox drawn={data.drawn} place={place} chosen={chosen} />
  );
}
