import type { EnvironmentEvidence } from "../api/types";
import { OutLink } from "./OutLink";
import { StateIcon } from "./StateIcon";
import { Ago } from "./Time";

/** The evidence of a Bundle in an environment: gates, people, commit, health and figures. */
export function Evidence({ evidence }: { evidence: EnvironmentEvidence }) {
  return (
    <dl className="facts">
      {evidence.pullRequest && (
        <div>
          <dt>Pull request</dt>
          <dd>
            <OutLink link={evidence.pullRequest} icon />
          </dd>
        </div>
      )}
      {evidence.people.length > 0 && (
        <div>
          <dt>People</dt>
          <dd>
            {evidence.people.map((person, number) => (
              <div key={number}>
                <strong>{person.name}</strong> {person.did} it <Ago at={person.at} />
              </div>
            ))}
          </dd>
        </div>
      )}
      {evidence.commit && (
        <div>
          <dt>Commit</dt>
          <dd>
            <code>
              <OutLink link={evidence.commit} icon />
            </code>
          </dd>
        </div>
      )}
      {evidence.gates.length > 0 && (
        <div>
          <dt>Gates</dt>
          <dd>
            {evidence.gates.map((gate) => (
              <div key={`${gate.namespace}/${gate.name}`} className="row">
                <StateIcon state={gate.answer} />{" "}
                <span className="break">
                  {gate.name} {gate.detail && <span className="muted">{gate.detail}</span>}
                </span>
              </div>
            ))}
          </dd>
        </div>
      )}
      {evidence.delegate && (
        <div>
          <dt>Delivered by</dt>
          <dd>{evidence.delegate}</dd>
        </div>
      )}
      {evidence.health && (
        <div>
          <dt>Health</dt>
          <dd>{evidence.health}</dd>
        </div>
      )}
      {Object.entries(evidence.metrics).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <code>{value}</code>
          </dd>
        </div>
      ))}
      {evidence.landedAt && (
        <div>
          <dt>Landed</dt>
          <dd>
            <Ago at={evidence.landedAt} />
          </dd>
        </div>
      )}
      {evidence.verifiedAt && (
        <div>
          <dt>Verified</dt>
          <dd>
            <Ago at={evidence.verifiedAt} />
          </dd>
        </div>
      )}
    </dl>
  );
}
