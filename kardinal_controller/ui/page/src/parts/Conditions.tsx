import { Check, CircleDashed, X } from "lucide-react";

import type { ConditionLine } from "../api/types";
import { Ago } from "./Time";

/** The conditions of an object, each with its reason. */
export function Conditions({ conditions }: { conditions: readonly ConditionLine[] }) {
  return (
    <ul className="stack conditions">
      {conditions.map((condition) => (
        <li key={condition.type}>
          <div className="row">
            <Truth value={condition.status} label={condition.type} />
            <span className="muted small end">
              <Ago at={condition.since} />
            </span>
          </div>
          <p className="small break">
            {condition.reason && <strong>{condition.reason}. </strong>}
            {condition.message}
          </p>
        </li>
      ))}
    </ul>
  );
}

/** A status of a condition: True, False or Unknown, with icon and word. */
export function Truth({ value, label }: { value: string; label: string }) {
  const [Icon, tone] =
    value === "True"
      ? ([Check, "ok"] as const)
      : value === "False"
        ? ([X, "rest"] as const)
        : ([CircleDashed, "rest"] as const);
  return (
    <span className={`state tone-${tone}`}>
      <Icon aria-hidden />
      {label}
      {value === "True" ? "" : `: ${value || "Unknown"}`}
    </span>
  );
}
