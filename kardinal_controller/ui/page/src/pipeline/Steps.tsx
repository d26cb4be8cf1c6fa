import { Activity, Check, CircleDashed, Minus, X } from "lucide-react";

import type { StepLine } from "../api/types";
import { Lasted } from "../parts/Time";

const LOOKS = {
  Pending: [CircleDashed, "rest"],
  Running: [Activity, "move"],
  Succeeded: [Check, "ok"],
  Failed: [X, "bad"],
  Skipped: [Minus, "rest"],
} as const;

/** The sequence of steps, with how long each took. */
export function Steps({ steps }: { steps: Readonly<Record<string, StepLine>> }) {
  const lines = Object.entries(steps).sort(([a], [b]) => Number(a) - Number(b));
  if (!lines.length) return null;
  return (
    <section>
      <h3>Steps</h3>
      <ol className="steps">
        {lines.map(([number, step]) => {
          const [Icon, tone] = LOOKS[step.state];
          return (
            <li key={number} className={step.state === "Pending" || step.state === "Skipped" ? "muted" : ""}>
              <span className={`state tone-${tone}`} title={step.state}>
                <Icon aria-hidden />
                <span className="unseen">{step.state}</span>
              </span>
              <code>{step.uses}</code>
              <span className="end small muted">
                {step.startedAt && <Lasted from={step.startedAt} to={step.finishedAt ?? undefined} />}
              </span>
              {step.message && (
                <span className={`small break step-message ${step.state === "Failed" ? "tone-bad toned" : "muted"}`}>
                  {step.message}
                </span>
              )}
            </li>
          );
        })}
      </ol>
    </section>
  );
}
