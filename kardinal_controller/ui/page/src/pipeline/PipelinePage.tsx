import "../styles/pipeline.css";

import { lazy, Suspense, useState, useSyncExternalStore } from "react";
import { Link } from "wouter";

import { useReported } from "../api/connection";
import type { PipelineDocument } from "../api/types";
import { useStream } from "../api/use";
import { ActionButton } from "../parts/ActionButton";
import { OutLink } from "../parts/OutLink";
import { AbsentPage, Empty, Failure, Notices } from "../parts/Says";
import { yamlPath } from "../words/routes";
import { Comparison } from "./Comparison";
import { DagList } from "./DagList";
import { Drawer } from "./Drawer";
import { usePlace } from "./place";
import { Timeline } from "./Timeline";

const Dag = lazy(() => import("./Dag"));
const NARROW = window.matchMedia("(max-width: 700px)");

function useNarrow(): boolean {
  return useSyncExternalStore(
    (listener) => {
      NARROW.addEventListener("change", listener);
      return () => NARROW.removeEventListener("change", listener);
    },
    () => NARROW.matches,
  );
}

/** One Pipeline: its Bundles over time, the DAG of the selected one, and what holds it. */
export default function PipelinePage({ namespace, name }: { namespace: string; name: string }) {
  const place = usePlace(namespace, name);
  const state = useStream<PipelineDocument>(place.stream());
  useReported(state);
  const narrow = useNarrow();
  // While another Bundle is read, the last one stays, dimmed.
  const [kept, keep] = useState(state.document);
  if (state.document && state.document !== kept) keep(state.document);
  const document = state.document ?? kept;

  if (!document) return <AbsentPage title={name} error={state.error} />;
  const { paused } = document;
  const request = { namespace, pipeline: name };
  const environments = Object.values(document.nodes).flatMap((node) =>
    node.kind === "environment" ? [node.card] : [],
  );
  const order = environments.sort((a, b) => a.order - b.order).map((card) => card.name);
  return (
    <main className="main pipeline">
      <div className="heading">
        <h1 className="break">{document.name}</h1>
        <span className="muted break">
          {document.namespace} · <OutLink link={document.repository} /> · {document.branch}
        </span>
        <span className="space" />
        <Link className="button" to={yamlPath("pipeline", namespace, name)}>
          YAML
        </Link>
        {paused === undefined ? (
          <ActionButton action="pause" label="Pause" request={request} />
        ) : (
          <ActionButton action="resume" label="Resume" request={request} />
        )}
        <ActionButton
          action="promote"
          label="Promote"
          request={request}
          environments={order}
          bundles={Object.values(document.bundles)}
        />
      </div>
      {state.error && state.error.status !== 401 && <Failure error={state.error} />}
      <Notices notices={document.notices} />
      <div className={state.live ? "content" : "content stale"}>
        {Object.keys(document.bundles).length === 0 ? (
          <Empty
            text="No Bundle has been created yet; below is the way that one would take."
            command={`kardinal create bundle ${name} --image REPOSITORY:TAG -n ${namespace}`}
          />
        ) : (
          <Timeline document={document} order={order} place={place} />
        )}
        {place.compare && <Comparison document={document} order={order} place={place} />}
        <div className={`walk ${place.open ? "with-drawer" : ""}`}>
          {narrow ? (
            <DagList document={document} place={place} />
          ) : (
            <div className="panel dag">
              <Suspense fallback={null}>
                <Dag document={document} place={place} />
              </Suspense>
            </div>
          )}
          {place.open && <Drawer key={place.stream(place.open)} document={document} open={place.open} place={place} />}
        </div>
      </div>
    </main>
  );
}
