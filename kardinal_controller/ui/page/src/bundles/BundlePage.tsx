import "../styles/bundle.css";

import { Link } from "wouter";

import { useReported } from "../api/connection";
import type { BundleDocument } from "../api/types";
import { useStream } from "../api/use";
import { ActionButton } from "../parts/ActionButton";
import { CopyButton } from "../parts/Command";
import { Conditions } from "../parts/Conditions";
import { Evidence } from "../parts/Evidence";
import { OutLink } from "../parts/OutLink";
import { AbsentPage, Failure } from "../parts/Says";
import { StateIcon } from "../parts/StateIcon";
import { Ago } from "../parts/Time";
import { bundlePath, endpoint, environmentPath, graphPath, ofBundle, pipelinePath, yamlPath } from "../words/routes";
import { Hours } from "./Hours";

/** One Bundle: where it comes from, what shows that it was promoted, and where the hours went. */
export default function BundlePage({ namespace, name }: { namespace: string; name: string }) {
  const state = useStream<BundleDocument>(`stream/${endpoint(bundlePath(namespace, name))}`);
  useReported(state);
  const { document } = state;
  if (!document) return <AbsentPage title={name} error={state.error} />;
  const { card } = document;
  const query = ofBundle(card.name);
  return (
    <main className={`main ${state.live ? "" : "stale"}`}>
      <div className="heading">
        <h1 className="version heading-version break">{card.versions}</h1>
        <StateIcon state={card.phase} />
        <span className="muted break">
          {card.name} · {card.namespace} ·{" "}
          <Link to={pipelinePath(card.namespace, card.pipeline) + query}>{card.pipeline}</Link>
        </span>
        <span className="space" />
        <Link className="button" to={graphPath(card.namespace, card.name)}>
          Graph
        </Link>
        <Link className="button" to={yamlPath("bundle", card.namespace, card.name)}>
          YAML
        </Link>
        <ActionButton
          action="promote"
          label="Promote"
          request={{ namespace: card.namespace, pipeline: card.pipeline, bundle: card.name }}
          environments={Object.keys(document.environments)}
        />
      </div>
      {state.error && state.error.status !== 401 && <Failure error={state.error} />}
      {card.message && <p className="break">{card.message}</p>}
      <div className="columns">
        <section className="panel pad">
          <h2>Where it comes from</h2>
          <dl className="facts">
            <div>
              <dt>Created</dt>
              <dd>
                <Ago at={card.created} />
                {card.author && (
                  <>
                    {" "}
                    by <strong>{card.author}</strong>
                  </>
                )}
              </dd>
            </div>
            {card.commit && (
              <div>
                <dt>Commit</dt>
                <dd>
                  <code>
                    <OutLink link={card.commit} icon />
                  </code>
                </dd>
              </div>
            )}
            {card.ciRun && (
              <div>
                <dt>CI run</dt>
                <dd>
                  <OutLink link={card.ciRun} icon />
                </dd>
              </div>
            )}
            <div>
              <dt>Type</dt>
              <dd>{document.type}</dd>
            </div>
            {document.intent && (
              <div>
                <dt>Goes to</dt>
                <dd>{document.intent}</dd>
              </div>
            )}
            {Object.entries(document.artifacts).map(([artifact, digest]) => (
              <div key={artifact} className="artifact">
                <dt>{artifact}</dt>
                <dd>
                  <code>{digest}</code>
                  <CopyButton
                    text={digest.startsWith("sha256:") ? `${artifact}@${digest}` : artifact}
                    label={`Copy ${artifact}`}
                  />
                </dd>
              </div>
            ))}
          </dl>
        </section>
        <section className="panel pad">
          <h2>What is still to come</h2>
          {document.ahead.length === 0 ? (
            <p className="muted">Nothing: it is everywhere it goes, or has ended.</p>
          ) : (
            <ul className="stack">
              {document.ahead.map((line) => (
                <li key={line} className="break">
                  {line}
                </li>
              ))}
            </ul>
          )}
          {document.conditions.length > 0 && <Conditions conditions={document.conditions} />}
        </section>
      </div>
      <Hours bundle={document} />
      {Object.keys(document.environments).length > 0 && <h2>Evidence</h2>}
      <div className="evidence">
        {Object.values(document.environments).map((evidence) => (
          <section key={evidence.environment} className="panel pad">
            <div className="row">
              <h2>
                <Link data-stop to={environmentPath(card.namespace, card.pipeline, evidence.environment) + query}>
                  {evidence.environment}
                </Link>
              </h2>
              <span className="end">
                <StateIcon state={evidence.state} />
              </span>
            </div>
            <Evidence evidence={evidence} />
          </section>
        ))}
      </div>
    </main>
  );
}
