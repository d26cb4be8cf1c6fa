import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useLayoutEffect, useMemo, useRef, useState, type CSSProperties } from "react";
import { Link } from "wouter";

import type { PipelineRow } from "../api/types";
import { StateIcon } from "../parts/StateIcon";
import { Age } from "../parts/Time";
import { environmentPath, pipelinePath } from "../words/routes";
import { environmentNames, matrixRows } from "./rows";

const HEIGHT = 38;

/** Version by environment: where each version runs, and where it is on its way. */
export function Matrix({ rows }: { rows: readonly PipelineRow[] }) {
  const lines = useMemo(() => matrixRows(rows), [rows]);
  const names = useMemo(() => environmentNames(rows), [rows]);
  const body = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  useLayoutEffect(() => setTop(body.current?.offsetTop ?? 0), []);
  const virtualizer = useWindowVirtualizer({
    count: lines.length,
    estimateSize: () => HEIGHT,
    overscan: 12,
    scrollMargin: top,
  });
  // Every row is a grid of its own, so its columns may not depend on what is in them.
  const columns = { "--environments": names.length } as CSSProperties;
  return (
    <div className="panel matrix" role="table" aria-label="Versions by environment" aria-rowcount={lines.length + 1}>
      <div role="row" className="matrix-row head" style={columns}>
        {["Pipeline", "Version", ...names].map((name) => (
          <span role="columnheader" key={name} className="ellipsis">
            {name}
          </span>
        ))}
      </div>
      <div ref={body} role="rowgroup" className="matrix-body" style={{ height: virtualizer.getTotalSize() }}>
        {virtualizer.getVirtualItems().map((item) => {
          const line = lines[item.index];
          if (!line) return null;
          const { row } = line;
          return (
            <div
              role="row"
              key={item.key}
              aria-rowindex={item.index + 2}
              className={`matrix-row ${line.first ? "first" : ""}`}
              style={{ ...columns, height: HEIGHT, transform: `translateY(${item.start - top}px)` }}
            >
              <span role="cell" className="ellipsis">
                {line.first && (
                  <Link
                    to={pipelinePath(row.namespace, row.name)}
                    className="title"
                    data-stop
                    title={`${row.namespace}/${row.name}`}
                  >
                    {row.name}
                  </Link>
                )}
              </span>
              <span role="cell" className="version ellipsis" title={line.version}>
                {line.version || "nothing yet"}
              </span>
              {names.map((name) => {
                const cell = line.cells[name];
                return (
                  <span role="cell" key={name} className="cell">
                    {cell && (
                      <Link
                        to={environmentPath(row.namespace, row.name, name)}
                        className={`row mark-${cell.runs ? "runs" : "comes"}`}
                      >
                        {cell.runs &&
                        (cell.card.incoming || cell.card.state.name !== "Verified") &&
                        !cell.card.health ? (
                          <span className="state tone-ok">
                            <span className="pip" />
                            runs
                          </span>
                        ) : (
                          <StateIcon state={cell.card.health ?? cell.card.state} />
                        )}
                        <span className="small muted">
                          <Age at={cell.card.since} />
                        </span>
                      </Link>
                    )}
                  </span>
                );
              })}
            </div>
          );
        })}
      </div>
    </div>
  );
}
