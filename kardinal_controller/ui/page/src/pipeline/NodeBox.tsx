import { Link } from "wouter";

import type { DrawnEnvironment, DrawnGate, StepPosition } from "../api/types";
import { SentenceText } from "../parts/Says";
import { StateIcon } from "../parts/StateIcon";
import { Age, Countdown } from "../parts/Time";
import { useFlash } from "../parts/useFlash";
import type { PipelinePlace } from "./place";

interface BoxProps {
  readonly place: PipelinePlace;
  readonly chosen: boolean;
}

/** An environment in the DAG: what runs, what comes, its state, and one sentence why not yet. */
export function EnvironmentBox({ drawn, place, chosen }: BoxProps & { drawn: DrawnEnvironment }) {
  const { card, why, progress } = drawn;
  const state = card.health ?? card.state;
  const flash = useFlash(`${state.name} ${card.version}`);
  const tinted = !["ok", "rest", "held"].includes(state.tone);
  const to = place.to({ kind: "environment", environment: card.name });
  const line = drawn.commit ? `${drawn.commit.text}${drawn.health && ` · ${drawn.health}`}` : drawn.health;
  return (
    <Link
      to={to}
      data-stop
      aria-current={chosen || undefined}
      className={`box environment-box tone-${state.tone} ${tinted ? "tinted" : ""} ${flash}`}
    >
      <span className="row">
        <span className="strong ellipsis">{card.name}</span>
        <span className="end small muted">
          <Age at={card.since} />
        </span>
      </span>
      <span className="row">
        <span
          className={(card.incoming ?? card.version) ? "version ellipsis" : "small muted"}
          title={card.incoming ?? card.version}
        >
          {card.incoming ?? (card.version || "nothing yet")}
        </span>
        {card.incoming && card.version && (
          <span className="chip ellipsis" title={`runs ${card.version}`}>
            from {card.version}
          </span>
        )}
        {card.incoming && !card.version && <span className="chip">comes</span>}
        {!card.incoming && card.behind > 0 && <span className="chip">{card.behind} behind</span>}
      </span>
      <StateIcon state={state} />
      {progress ? (
        <span className="small muted ellipsis" title={progress.message}>
          step {progress.index} of {progress.of} · {progress.message || progress.uses}
        </span>
      ) : (
        <span className="small muted two-lines" title={why?.text ?? line}>
          {why && state.name !== "Verified" ? <SentenceText sentence={{ text: why.text, tone: why.tone }} /> : line}
        </span>
      )}
      {progress && (
        <progress max={1} value={partOf(progress)} aria-label={`step ${progress.index} of ${progress.of}`} />
      )}
    </Link>
  );
}

/** Return how far it is: of a step that counts, as `4 of 6 pods`, that; else of the steps. */
function partOf({ message, index, of }: StepPosition): number {
  const counts = /(\d{1,6}) of (\d{1,6})/.exec(message.slice(0, 200));
  if (counts && Number(counts[2]) > 0) return Number(counts[1]) / Number(counts[2]);
  return (index - 1) / Math.max(1, of);
}

/** A gate in the DAG, before the environment that it holds. */
export function GateBox({ gate, place, chosen }: BoxProps & { gate: DrawnGate }) {
  const flash = useFlash(gate.answer.name);
  const to = place.to({ kind: "gate", environment: gate.environment, namespace: gate.namespace, gate: gate.name });
  const closed = gate.answer.tone !== "ok" && gate.answer.tone !== "rest";
  const why = gate.opensAt ? <Countdown until={gate.opensAt} onlyRest /> : gate.detail;
  return (
    <Link
      to={to}
      data-stop
      aria-current={chosen || undefined}
      className={`box gate-box tone-${gate.answer.tone} ${closed ? "tinted" : ""} ${flash}`}
      title={`${gate.namespace}/${gate.name} before ${gate.environment}: ${gate.detail}`}
    >
      <StateIcon state={gate.answer} word={false} />
      <span className="gate-words">
        <span className="ellipsis toned small">{gate.name}</span>
        <span className="ellipsis muted tiny">
          {gate.answer.name}
          {closed && why && <> · {why}</>}
        </span>
      </span>
    </Link>
  );
}
