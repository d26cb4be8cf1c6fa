import { useMutation, useQuery } from "@tanstack/react-query";
import { useDeferredValue, useState, type ReactElement } from "react";

import { requestJson, type RequestError } from "../api/session";
import type { ActionAnswer, ActionRequest, PlannedChange } from "../api/types";
import { useViewer } from "../api/viewer";
import { commandOf, type ActionName } from "../words/commands";
import type { ActionProps } from "./ActionButton";
import { Diff } from "./Code";
import { Command } from "./Command";
import { Modal } from "./Modal";
import { Failure } from "./Says";

/** The labels of the reason, for the actions that have one. */
const reasons: Readonly<Partial<Record<ActionName, string>>> = {
  pause: "Why, for those who find it paused",
  approve: "Why, for those who read the evidence",
};

/** The dialog of an action: what it would do, its command, and where the viewer may act a button that does it. */
export function ActionDialog({
  action,
  label,
  request,
  environments,
  bundles,
  close,
}: ActionProps & { close: () => void }) {
  const { mayAct } = useViewer();
  const [chosen, choose] = useState<ActionRequest>(request);
  const body = useDeferredValue(chosen);
  const plan = useQuery<ActionAnswer, RequestError>({
    queryKey: ["plan", action, body],
    queryFn: ({ signal }) => act(`actions/${action}?dry-run=true`, body, signal),
    enabled: mayAct,
    staleTime: 0,
    gcTime: 0,
    retry: false,
  });
  const doing = useMutation<ActionAnswer, RequestError>({ mutationFn: () => act(`actions/${action}`, chosen) });
  const set = (field: "environment" | "bundle" | "reason", value: string) =>
    // A field without a value is absent; the API refuses an empty one.
    choose(
      (before) =>
        Object.fromEntries(
          [...Object.entries({ ...before, [field]: value })].filter(([, kept]) => kept !== ""),
        ) as unknown as ActionRequest,
    );
  const done = doing.data;
  return (
    <Modal open close={close} title={`${label} ${request.environment ?? request.pipeline}`}>
      {!done && bundles && (
        <Field label="Bundle">
          <select value={chosen.bundle ?? ""} onChange={(event) => set("bundle", event.target.value)}>
            <option value="">the one under way, else the newest</option>
            {[...bundles]
              .sort((a, b) => b.order - a.order)
              .map((card) => (
                <option key={card.name} value={card.name}>
                  {card.versions} · {card.name}
                </option>
              ))}
          </select>
        </Field>
      )}
      {!done && environments && (
        <Field label="Environment">
          <select value={chosen.environment ?? ""} onChange={(event) => set("environment", event.target.value)}>
            <option value="">everywhere the Bundle goes</option>
            {environments.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </Field>
      )}
      {!done && reasons[action] && (
        <Field label={reasons[action]}>
          <input
            type="text"
            maxLength={1024}
            value={chosen.reason ?? ""}
            onChange={(event) => set("reason", event.target.value)}
          />
        </Field>
      )}
      {!done && plan.data && <Answer answer={plan.data} />}
      {!done && plan.error && <Failure error={plan.error} />}
      {done && <Answer answer={done} />}
      {doing.error && <Failure error={doing.error} />}
      <Command text={done?.command ?? commandOf(action, chosen)} />
      <div className="choices">
        {!mayAct && <span className="muted small">This page changes nothing. The command does it as you.</span>}
        <button type="button" className="button" onClick={close}>
          {done || !mayAct ? "Close" : "Leave it"}
        </button>
        {mayAct && !done && (
          <button
            type="button"
            className="button first"
            disabled={doing.isPending || plan.isError}
            onClick={() => doing.mutate()}
          >
            {label}
          </button>
        )}
      </div>
    </Modal>
  );
}

function Field({ label, children }: { label: string; children: ReactElement }) {
  return (
    <label className="field">
      <span className="small muted">{label}</span>
      {children}
    </label>
  );
}

function Answer({ answer }: { answer: ActionAnswer }) {
  return (
    <div className="stack">
      {answer.lines.map((line, number) => (
        <p key={number} className="break">
          {line}
        </p>
      ))}
      {answer.plan?.map((change) => (
        <Planned key={change.environment} change={change} />
      ))}
    </div>
  );
}

function Planned({ change }: { change: PlannedChange }) {
  return (
    <section className="stack">
      <p className="break">
        <strong>{change.environment}</strong> {change.sentence}
      </p>
      {change.pullRequest && <p className="small muted break">Pull request: {change.pullRequest}</p>}
      {change.note && <p className="small muted break">{change.note}</p>}
      {change.error && <p className="tone-bad toned break">{change.error}</p>}
      {change.diff && <Diff text={change.diff} />}
    </section>
  );
}

function act(path: string, body: ActionRequest, signal?: AbortSignal): Promise<ActionAnswer> {
  return requestJson<ActionAnswer>(path, { method: "POST", body: JSON.stringify(body), ...(signal && { signal }) });
}
