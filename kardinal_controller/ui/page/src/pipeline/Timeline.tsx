import { GitCompareArrows } from "lucide-react";
import { useEffect, useRef } from "react";

import type { BundleCard, PipelineDocument } from "../api/types";
import { Age } from "../parts/Time";
import { stateWords } from "../words/states";
import type { PipelinePlace } from "./place";

interface TimelineProps {
  readonly document: PipelineDocument;
  readonly order: readonly string[];
  readonly place: PipelinePlace;
}

/** The Bundles in the order of their creation; new ones enter at the right. */
export function Timeline({ document, order, place }: TimelineProps) {
  const list = useRef<HTMLOListElement>(null);
  const cards = Object.values(document.bundles).sort((a, b) => a.order - b.order);
  const shown = document.shown;
  useEffect(() => {
    const chosen = list.current?.querySelector<HTMLElement>("[data-shown]");
    if (chosen && list.current) {
      list.current.scrollLeft = chosen.offsetLeft - list.current.clientWidth + chosen.offsetWidth * 2;
    }
  }, [shown]);
  return (
    <section aria-label="Bundles, oldest first">
      <ol className="timeline" ref={list}>
        {document.moreBundles > 0 && <li className="more small muted">{document.moreBundles} older</li>}
        {cards.map((card) => (
          <li key={card.name} data-shown={card.name === shown || undefined} className="panel bundle">
            <button
              type="button"
              className="bundle-main"
              data-stop
              aria-pressed={card.name === shown}
              title={`${card.name}: ${card.phase.name}. ${card.message}`}
              onClick={() => place.select(card.name)}
            >
              <span className="version ellipsis">{card.versions}</span>
              <span className="small muted ellipsis">
                {card.author || card.name} · <Age at={card.created} />
              </span>
              <Segments card={card} order={order} />
            </button>
            {card.name !== shown && shown && (
              <button
                type="button"
                className="button plain compare"
                aria-label={`Compare ${card.versions} with the selected Bundle`}
                title="Compare with the selected Bundle"
                aria-pressed={card.name === place.compare}
                onClick={() => place.select(shown, card.name === place.compare ? undefined : card.name)}
              >
                <GitCompareArrows aria-hidden />
              </button>
            )}
          </li>
        ))}
      </ol>
    </section>
  );
}

/** One segment an environment: full where the Bundle runs now, its colour elsewhere where it is on its way. */
export function Segments({ card, order }: { card: BundleCard; order: readonly string[] }) {
  const runs = new Set(card.runsIn);
  const says = order.map((name) => {
    const state = card.segments[name];
    return `${name}: ${state ? stateWords(state.name) : "not reached"}${runs.has(name) ? ", runs there" : ""}`;
  });
  return (
    <span className="segments" role="img" aria-label={says.join("; ")}>
      {order.map((name, index) => {
        const state = card.segments[name];
        // What was Verified and has been replaced since is history: it is drawn fainter than what runs.
        const past = state?.tone === "ok" && !runs.has(name);
        return (
          <span
            key={name}
            title={says[index]}
            className={state ? `segment tone-${state.tone} ${past ? "was" : "full"}` : "segment"}
          />
        );
      })}
    </span>
  );
}
