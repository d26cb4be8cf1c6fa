import "../styles/overview.css";

import { useDeferredValue, useMemo } from "react";

import { useReported } from "../api/connection";
import type { Overview } from "../api/types";
import { useStream, useTimeWords } from "../api/use";
import { AbsentPage, Empty, Notices } from "../parts/Says";
import { useFilters } from "../shell/search";
import { NEED_WORDS } from "../words/states";
import { midnight } from "../words/time";
import { Matrix } from "./Matrix";
import { PipelineRows } from "./PipelineRows";
import { counted, ordered, promotionsSince, searched } from "./rows";
import { Tiles } from "./Tiles";

/** All Pipelines: which version is where, and who has to do something. */
export function OverviewPage() {
  const state = useStream<Overview>("stream/overview", { inParts: true });
  useReported(state);
  const [filters, setFilter] = useFilters();
  const rows = state.document?.rows;
  const q = useDeferredValue(filters.q);
  const found = useMemo(
    () => searched(Object.values(rows ?? {}), { q, namespace: filters.namespace }),
    [rows, q, filters.namespace],
  );
  const shown = useMemo(
    () => ordered(filters.need ? found.filter((row) => row.need === filters.need) : found),
    [found, filters.need],
  );
  const today = Number(useTimeWords((now) => String(midnight(now))));
  const promotions = useMemo(() => promotionsSince(found, today), [found, today]);
  const matrix = filters.view === "matrix";
  if (!state.document) return <AbsentPage title="Pipelines" error={state.error} />;
  const all = Object.keys(state.document.rows).length;
  return (
    <main className={`main ${state.live ? "" : "stale"}`}>
      <h1 className="unseen">Pipelines</h1>
      {all > 0 && (
        <Tiles
          counts={counted(found)}
          promotions={promotions}
          chosen={filters.need}
          choose={(need) => setFilter("need", need)}
        />
      )}
      <Notices notices={state.document.notices} />
      {all === 0 && <Empty text="There is no Pipeline yet that you may list." command="kardinal init" />}
      {all > 0 && shown.length === 0 && (
        <Empty text={nothingFound(filters.need, filters.q)}>
          <button
            type="button"
            className="button"
            onClick={() => {
              setFilter("need", "");
              setFilter("q", "");
            }}
          >
            Show all
          </button>
        </Empty>
      )}
      {shown.length > 0 && (matrix ? <Matrix rows={shown} /> : <PipelineRows rows={shown} />)}
      {shown.length > 0 && (
        <p className="muted foot">
          {shown.length.toLocaleString("en")} {shown.length === 1 ? "pipeline" : "pipelines"} · those that need someone
          first ·{" "}
          <button type="button" className="as-link" onClick={() => setFilter("view", matrix ? "" : "matrix")}>
            {matrix ? "as rows of environments" : "as matrix of versions"}
          </button>
        </p>
      )}
    </main>
  );
}

function nothingFound(need: string, q: string): string {
  const words = need in NEED_WORDS ? NEED_WORDS[need as keyof typeof NEED_WORDS].label : "";
  const which = words ? `No Pipeline is among those that are “${words}”` : "No Pipeline has what you look for";
  return q ? `${which}: “${q}”.` : `${which}.`;
}
