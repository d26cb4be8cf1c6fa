import "@xyflow/react/dist/base.css";

import {
  Background,
  Controls,
  Handle,
  Position,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
  useStore,
  type Edge,
  type Node,
  type NodeProps,
} from "@xyflow/react";
import { createContext, memo, useContext, useEffect, useMemo } from "react";

import type { DrawnEnvironment, DrawnGate, PipelineDocument } from "../api/types";
import { placesOf, sizeOf, structureOf } from "./graph";
import { EnvironmentBox, GateBox } from "./NodeBox";
import { nodeKey, type PipelinePlace } from "./place";

type FlowNode = Node<{ drawn: DrawnEnvironment | DrawnGate }>;

const PlaceContext = createContext<PipelinePlace | undefined>(undefined);
const NODE_TYPES = { drawn: memo(FlowNodeView) };
const FIT = { padding: 0.08, maxZoom: 1, minZoom: 0.5 };

/** The DAG from left to right, with environments and the gates between them. */
export default function Dag({ document, place }: { document: PipelineDocument; place: PipelinePlace }) {
  const structure = structureOf(document);
  const places = useMemo(() => placesOf(structure), [structure]);
  const nodes = Object.entries(document.nodes).map(([id, drawn]): FlowNode => ({
    id,
    type: "drawn",
    data: { drawn },
    position: places[id] ?? { x: 0, y: 0 },
    ...sizeOf(id),
    draggable: false,
  }));
  const edges = Object.entries(document.edges).map(([id, edge]): Edge => ({
    id,
    source: edge.source,
    target: edge.target,
    className: `edge tone-${edge.open ? "ok" : edge.tone} ${edge.open ? "open" : "closed"}`,
    focusable: false,
    ariaLabel: `${edge.source} to ${edge.target}: ${edge.open ? "open" : "closed"}`,
  }));
  return (
    <PlaceContext value={place}>
      <ReactFlowProvider key={structure}>
        <ReactFlow
          nodes={nodes}
          edges={edges}
          nodeTypes={NODE_TYPES}
          fitView
          fitViewOptions={FIT}
          minZoom={0.2}
          maxZoom={1.5}
          nodesConnectable={false}
          nodesFocusable={false}
          edgesFocusable={false}
          elementsSelectable={false}
          zoomOnScroll={false}
          preventScrolling={false}
          zoomOnDoubleClick={false}
          onlyRenderVisibleElements={nodes.length > 60}
          disableKeyboardA11y
          proOptions={{ hideAttribution: true }}
        >
          <Background gap={18} size={1.5} className="dots" />
          <Controls showInteractive={false} fitViewOptions={FIT} />
          <FitOnResize />
        </ReactFlow>
      </ReactFlowProvider>
    </PlaceContext>
  );
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
  return (
    <>
      <Handle type="target" position={Position.Left} isConnectable={false} />
      {data.drawn.kind === "gate" ? (
        <GateBox gate={data.drawn} place={place} chosen={chosen} />
      ) : (
        <EnvironmentBox drawn={data.drawn} place={place} chosen={chosen} />
      )}
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </>
  );
}
