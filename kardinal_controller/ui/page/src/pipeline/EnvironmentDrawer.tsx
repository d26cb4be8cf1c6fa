import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";

import { requestJson, type RequestError } from "../api/session";
import type { EnvironmentDocument, EventList, PastPromotion, PipelineDocument } from "../api/types";
import { useViewer } from "../api/viewer";
import { ActionButton } from "../parts/ActionButton";
import { Diff } from "../parts/Code";
import { Command } from "../parts/Command";
import { Evidence } from "../parts/Evidence";
import { OutLink } from "../parts/OutLink";
import { Failure, Verdict } from "../parts/Says";
import { StateIcon } from "../parts/StateIcon";
import { Ago, Countdown } from "../parts/Time";
import { bundlePath, yamlPath } from "../words/routes";
import type { PipelinePlace } from "./place";
import { Steps } from "./Steps";

interface EnvironmentProps {
  readonly environment: EnvironmentDocument;
  readonly pipeline: PipelineDocument;
  readonly place: PipelinePlace;
}

/** An environment: why not yet, the sequence of its steps, the change, its evidence, and what was there before. */
export function EnvironmentDrawer({ environment, pipeline, place }: EnvironmentProps) {
  const { card, why, evidence } = environment;
  const number = pullRequestNumber(environment.pullRequest?.text);
  const request = { namespace: environment.namespace, pipeline: environment.pipeline, environment: card.name };
  const ofBundle = environment.bundle ? { ...request, bundle: environment.bundle } : request;
  const isLocal = environment.pullRequest && !environment.pullRequest.url;
  return (
    <div className="drawer-body">
      {why && <Verdict sentence={why} />}
      <div className="row wrap">
        <StateIcon state={card.health ?? card.state} />
        <span className="muted small">
          <Ago at={card.since} />
        </span>
        <span className="version break">
          {card.version || "nothing yet"}
          {card.incoming && ` → ${card.incoming}`}
        </span>
        {card.behind > 0 && <span className="chip">{card.behind} behind</span>}
        {card.shard && <span className="chip">shard {card.shard}</span>}
      </div>
      {card.noAgentSince && (
        <p className="tone-warn toned">
          No agent serves its shard since <Ago at={card.noAgentSince} />.
        </p>
      )}
      {environment.error && !why?.text.includes(environment.error) && (
        <div className="notice tone-bad">
          <span className="break">{environment.error}</span>
        </div>
      )}
      {(environment.attempt > 1 || environment.nextTry) && (
        <p className="small muted">
          attempt {environment.attempt}
          {environment.retries > 0 && ` of ${environment.retries + 1}`}
          {environment.nextTry && (
            <>
              {" "}
              · next <Countdown until={environment.nextTry} />
            </>
          )}
        </p>
      )}
      <div className="row wrap">
        {card.state.name === "Failed" && environment.bundle && (
          <ActionButton action="retry" label="Retry" request={ofBundle} />
        )}
        {card.state.name === "WaitingForMerge" && isLocal && number !== undefined && (
          <ActionButton action="merge" label="Merge" request={{ ...request, pullRequest: number }} />
        )}
        {environment.bundle && card.state.name !== "Verified" && (
          <ActionButton action="promote" label="Promote" request={ofBundle} />
        )}
        {environment.history.length > 1 && <ActionButton action="rollback" label="Roll back" request={request} />}
      </div>
      <Steps steps={environment.steps} />
      {(environment.commit ?? environment.pullRequest ?? environment.links[0]) && (
        <section>
          <h3>Links</h3>
          <ul className="links">
            {environment.pullRequest && (
              <li>
                pull request <OutLink link={environment.pullRequest} icon />
              </li>
            )}
            {environment.commit && (
              <li>
                commit{" "}
                <code>
                  <OutLink link={environment.commit} icon />
                </code>
              </li>
            )}
            {environment.links.map((link) => (
              <li key={link.text}>
                <OutLink link={link} icon />
              </li>
            ))}
          </ul>
        </section>
      )}
      {environment.diff && (
        <section>
          <h3>Planned change</h3>
          <Diff text={environment.diff} />
        </section>
      )}
      {evidence && (
        <section>
          <h3>Evidence</h3>
          <Evidence evidence={evidence} />
        </section>
      )}
      {environment.history.length > 0 && (
        <section>
          <h3>What was promoted here</h3>
          <ol className="list">
            {environment.history.map((past) => (
              <Past key={`${past.bundle} ${past.at}`} past={past} namespace={environment.namespace} />
            ))}
          </ol>
        </section>
      )}
      {environment.bundle && <Events namespace={environment.namespace} bundle={environment.bundle} />}
      <section className="stack tight">
        <h3>In a terminal</h3>
        {environment.commands.map((command) => (
          <Command key={command} text={command} />
        ))}
      </section>
      {environment.bundle && (
        <p className="small row wrap">
          <Link to={bundlePath(environment.namespace, environment.bundle)}>Bundle {environment.bundle}</Link>
          <Link to={yamlPath("pipeline", pipeline.namespace, place.name)}>YAML of the Pipeline</Link>
        </p>
      )}
    </div>
  );
}

/** Return the number of a pull request as it is written, `#812`. */
function pullRequestNumber(text: string | undefined): number | undefined {
  const found = text === undefined ? null : /(\d+)$/.exec(text);
  return found ? Number(found[1]) : undefined;
}

function Past({ past, namespace }: { past: PastPromotion; namespace: string }) {
  return (
    <li className="past">
      <div className="row">
        <Link className="version ellipsis" to={bundlePath(namespace, past.bundle)}>
          {past.versions}
        </Link>
        <StateIcon state={past.state} />
        <span className="end small muted">
          {past.commit && (
            <code>
              <OutLink link={past.commit} />
            </code>
          )}{" "}
          <Ago at={past.at} />
        </span>
      </div>
      {past.rollback && <Command text={past.rollback} />}
    </li>
  );
}

/** The Events, which no informer holds: they are read with the identity of the viewer, when one asks for them. */
function Events({ namespace, bundle }: { namespace: string; bundle: string }) {
  const { readsAsViewer } = useViewer();
  const path = `events?namespace=${encodeURIComponent(namespace)}&bundle=${encodeURIComponent(bundle)}`;
  const events = useQuery<EventList, RequestError>({
    queryKey: ["events", namespace, bundle],
    queryFn: ({ signal }) => requestJson(path, { signal }),
    enabled: false,
  });
  if (!readsAsViewer) {
    return (
      <section>
        <h3>Events</h3>
        <Command text={`kubectl get events --namespace ${namespace}`} />
      </section>
    );
  }
  return (
    <section>
      <div className="row">
        <h3>Events</h3>
        <button type="button" className="button end" disabled={events.isFetching} onClick={() => void events.refetch()}>
          {events.data ? "Read again" : "Read"}
        </button>
      </div>
      {events.error && <Failure error={events.error} />}
      {events.data?.items.length === 0 && <p className="muted small">There are none; Events are kept for an hour.</p>}
      <ol className="list">
        {events.data?.items.map((event, number) => (
          <li key={number} className="past small">
            <strong className={event.type === "Warning" ? "tone-warn toned" : ""}>{event.reason}</strong>{" "}
            <span className="muted">
              {event.about}
              {event.count > 1 && ` × ${event.count}`} · <Ago at={event.at} />
            </span>
            <div className="break">{event.message}</div>
          </li>
        ))}
      </ol>
    </section>
  );
}
