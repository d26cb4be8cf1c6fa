import type { DrawnEnvironment, DrawnGate, PipelineDocument } from "../api/types";
import { EnvironmentBox, GateBox } from "./NodeBox";
import { nodeKey, type PipelinePlace } from "./place";

/** The DAG as a list in the order of promotion, for narrow windows: each environment below its gates. */
export function DagList({ document, place }: { document: PipelineDocument; place: PipelinePlace }) {
  const nodes = Object.values(document.nodes);
  const environments = nodes.filter((node): node is DrawnEnvironment => node.kind === "environment");
  const gates = nodes.filter((node): node is DrawnGate => node.kind === "gate");
  const chosen = place.open && nodeKey(place.open);
  return (
    <ol className="dag-list">
      {environments
        .sort((a, b) => a.card.order - b.card.order)
        .map((drawn) => (
          <li key={drawn.card.name}>
            {gates
              .filter((gate) => gate.environment === drawn.card.name)
              .map((gate) => {
                const key = `gate/${gate.environment}/${gate.namespace}/${gate.name}`;
                return <GateBox key={key} gate={gate} place={place} chosen={chosen === key} />;
              })}
            <EnvironmentBox drawn={drawn} place={place} chosen={chosen === `environment/${drawn.card.name}`} />
          </li>
        ))}
    </ol>
  );
}
