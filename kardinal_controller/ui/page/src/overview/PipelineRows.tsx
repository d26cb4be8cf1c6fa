import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { memo, useCallback, useLayoutEffect, useRef, useState } from "react";
import { Link } from "wouter";

import type { EnvironmentCard, PipelineRow } from "../api/types";
import { CopyButton } from "../parts/Command";
import { SentenceText } from "../parts/Says";
import { StateIcon } from "../parts/StateIcon";
import { Age, Countdown } from "../parts/Time";
import { useFlash } from "../parts/useFlash";
import { environmentPath, pipelinePath } from "../words/routes";
import { environmentsOf } from "./rows";

/** The rows, of which only those near the window are in the document. */
export function PipelineRows({ rows }: { rows: readonly PipelineRow[] }) {
  const list = useRef<HTMLUListElement>(null);
  const [top, setTop] = useState(0);
  useLayoutEffect(() => setTop(list.current?.offsetTop ?? 0), []);
  // A new function would make it compute the place of every row again, at each turn of the wheel.
  const getItemKey = useCallback(
    (index: number) => {
      const row = rows[index];
      return row ? `${row.namespace}/${row.name}` : index;
    },
    [rows],
  );
  const virtualizer = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => 88,
    overscan: 6,
    scrollMargin: top,
    getItemKey,
  });
  return (
    <section className="panel rows" aria-label="Pipelines">
      <div className="rows-head small muted" aria-hidden>
        <span>Pipeline</span>
        <span>Environments, in the order of promotion</span>
        <span>Why it is where it is</span>
      </div>
      <ul ref={list} className="rows-list" style={{ height: virtualizer.getTotalSize() }}>
        {virtualizer.getVirtualItems().map((item) => {
          const row = rows[item.index];
          return (
            row && (
              <li
                key={item.key}
                ref={virtualizer.measureElement}
                data-index={item.index}
                style={{ transform: `translateY(${item.start - top}px)` }}
              >
                <Row row={row} />
              </li>
            )
          );
        })}
      </ul>
    </section>
  );
}

const Row = memo(function Row({ row }: { row: PipelineRow }) {
  const { why } = row;
  const environments = environmentsOf(row);
  return (
    <article className="pipeline-row">
      <div className="name">
        <Link to={pipelinePath(row.namespace, row.name)} className="title ellipsis" data-stop>
          {row.name}
        </Link>
        <span className="small muted ellipsis">
          {row.namespace} · {row.branch}
        </span>
        {row.paused !== undefined && <span className="chip tone-you toned">paused</span>}
      </div>
      <ol className="environments">
        {environments.map((card, index) => (
          <li key={card.name} className="environment">
            {index > 0 && <Arrow card={card} before={environments[index - 1]} />}
            <Card row={row} card={card} />
          </li>
        ))}
      </ol>
      <div className="why small">
        <p
          title={why.text}
          className={["bad", "warn"].includes(why.tone) ? `tone-${why.tone} toned` : row.need === "rest" ? "muted" : ""}
        >
          <SentenceText sentence={why} />
        </p>
        {(why.detail ?? why.until) && (
          <p className="muted">
            {why.detail}
            {why.detail && why.until && " · "}
            {why.until && (
              <>
                goes on <Countdown until={why.until} />
              </>
            )}
          </p>
        )}
        {why.command && row.need !== "rest" && row.need !== "moving" && (
          <p className="row next">
            <code className="ellipsis" title={why.command}>
              {why.command}
            </code>
            <CopyButton text={why.command} label="Copy the command" />
          </p>
        )}
      </div>
    </article>
  );
});

function Arrow({ card, before }: { card: EnvironmentCard; before: EnvironmentCard | undefined }) {
  // Environments that are promoted beside one another have no arrow between them.
  if (!before || !card.upstreams.includes(before.name)) return <span className="arrow none" aria-hidden />;
  const closed = before.state.name !== "Verified" || ["Blocked", "Waiting"].includes(card.state.name);
  const tone = before.state.name === "Verified" ? card.state.tone : before.state.tone;
  return <span className={`arrow ${closed ? `closed tone-${tone}` : ""}`} aria-hidden />;
}

function Card({ row, card }: { row: PipelineRow; card: EnvironmentCard }) {
  const state = card.health ?? card.state;
  const flash = useFlash(`${state.name} ${card.version}`);
  const tinted = state.tone !== "ok" && state.tone !== "rest";
  return (
    <Link
      to={environmentPath(row.namespace, row.name, card.name)}
      className={`card tone-${state.tone} ${tinted ? "tinted" : ""} ${flash}`}
    >
      <span className="row small muted">
        <span className="ellipsis">{card.name}</span>
        <span className={card.noAgentSince ? "end tone-warn toned" : "end"}>
          {card.noAgentSince ? "no agent" : <Age at={card.since} />}
        </span>
      </span>
      <span className="row">
        <span className={card.version ? "version ellipsis" : "small muted"} title={card.version}>
          {card.version || "nothing yet"}
        </span>
        {card.behind > 0 && <span className="chip">{card.behind} behind</span>}
      </span>
      <span className="row">
        <StateIcon state={state} />
      </span>
    </Link>
  );
}
