import type { ActionRequest, GateAnswer, GateDocument } from "../api/types";
import { ActionButton } from "../parts/ActionButton";
import { CopyButton, Command } from "../parts/Command";
import { Verdict } from "../parts/Says";
import { StateIcon } from "../parts/StateIcon";
import { Ago, Countdown, Lasted } from "../parts/Time";
import { useTimeWords } from "../api/use";
import { exactly } from "../words/time";

/** A gate: the verdict first, then what it asks, what it saw, and who can change that. */
export function GateDrawer({ gate: document }: { gate: GateDocument }) {
  const { gate, verdict } = document;
  return (
    <div className="drawer-body">
      <p className="muted break">
        {gate.scope === "org" ? "org gate" : "team gate"} of <strong>{gate.namespace}</strong> before {gate.environment}
        {gate.scope === "org" && " · applies to every Pipeline that it selects"}
      </p>
      <Verdict sentence={verdict} changes="opens" />
      {document.approvable && gate.answer.name !== "PASS" && (
        <div className="row wrap">
          <ActionButton action="approve" label="Approve" request={approvalOf(document)} />
        </div>
      )}
      {document.message && ![verdict.text, verdict.detail].includes(document.message) && (
        <p className="break">{document.message}</p>
      )}
      <section>
        <div className="row">
          <h3>Expression</h3>
          <span className="end">
            <CopyButton text={document.expression} label="Copy the expression" />
          </span>
        </div>
        <pre className="code folded">{document.expression}</pre>
      </section>
      {document.values.length > 0 && (
        <section>
          <h3>
            What it saw
            {gate.seenAt && (
              <>
                , <Ago at={gate.seenAt} />
              </>
            )}
          </h3>
          <table className="lines values">
            <tbody>
              {document.values.map((value) => (
                <tr key={value.name}>
                  <th scope="row">
                    <code>{value.name}</code>
                  </th>
                  <td>
                    <code className={value.needed && gate.answer.name === "FAIL" ? "tone-bad toned" : ""}>
                      {value.value}
                    </code>
                  </td>
                  <td className="muted small">{value.needed}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
      {document.nextLook ? (
        <p className="small muted">
          Looks again <Countdown until={document.nextLook} />
        </p>
      ) : (
        document.recheckSeconds !== undefined && (
          <p className="small muted">
            Looks again at each change of what it reads, and every {exactly(document.recheckSeconds * 1000)}; only
            another answer is noted
          </p>
        )
      )}
      {document.history.length > 0 && <History answers={document.history} />}
      <section className="stack tight">
        <h3>Who may open it</h3>
        <p className="break">
          Everyone {document.owner}, for example by ClusterRole <code>kardinal-policy-admin</code> in namespace{" "}
          {gate.namespace}. Whether you may:
        </p>
        <Command text={document.rightCommand} />
      </section>
      <section className="stack tight">
        <h3>In a terminal</h3>
        {document.commands.map((command) => (
          <Command key={command} text={command} />
        ))}
      </section>
    </div>
  );
}

/** Return the request to approve the Bundle at a gate. */
function approvalOf({ namespace, pipeline, bundle, gate }: GateDocument): ActionRequest {
  return { namespace, pipeline, bundle, environment: gate.environment, gate: `${gate.namespace}/${gate.name}` };
}

/** The answers over time, as a band with the same answers as a list beneath. */
function History({ answers }: { answers: readonly GateAnswer[] }) {
  const oldest = answers[answers.length - 1];
  // The band ends now; a minute is fine enough for its parts.
  const minute = Number(useTimeWords((now) => String(Math.ceil(now / 60_000)))) * 60_000;
  const start = oldest ? Date.parse(oldest.since) : minute;
  const whole = Math.max(1, minute - start);
  return (
    <section>
      <h3>Its answers</h3>
      <div className="band" aria-hidden>
        {[...answers].reverse().map((answer, index, all) => {
          const until = all[index + 1];
          const length = (until ? Date.parse(until.since) : minute) - Date.parse(answer.since);
          return (
            <span
              key={answer.since}
              className={`tone-${answer.answer.tone}`}
              style={{ flexGrow: Math.max(0.004, length / whole) }}
            />
          );
        })}
      </div>
      <ol className="answers small">
        {answers.map((answer, index) => (
          <li key={answer.since}>
            <StateIcon state={answer.answer} />
            <span className="muted">
              <Ago at={answer.since} />, for <Lasted from={answer.since} to={answers[index - 1]?.since} />
            </span>
            {answer.reason && <span className="break answer-reason">{answer.reason}</span>}
          </li>
        ))}
      </ol>
    </section>
  );
}
