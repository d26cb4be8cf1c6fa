import { X } from "lucide-react";
import type { ReactNode } from "react";
import { Link } from "wouter";

import type { BundleCard, PipelineDocument } from "../api/types";
import { OutLink } from "../parts/OutLink";
import { StateIcon } from "../parts/StateIcon";
import { Ago } from "../parts/Time";
import { bundlePath } from "../words/routes";
import type { PipelinePlace } from "./place";

interface ComparisonProps {
  readonly document: PipelineDocument;
  readonly order: readonly string[];
  readonly place: PipelinePlace;
}

/** Two Bundles beside one another. */
export function Comparison({ document, order, place }: ComparisonProps) {
  const two = [document.shown, place.compare].flatMap((name) => (name ? (document.bundles[name] ?? []) : []));
  if (two.length < 2) return null;
  two.sort((a, b) => a.order - b.order);
  const line = (name: string, cell: (card: BundleCard) => ReactNode) => (
    <tr>
      <th scope="row">{name}</th>
      {two.map((card) => (
        <td key={card.name}>{cell(card)}</td>
      ))}
    </tr>
  );
  return (
    <section className="panel" aria-label="Comparison of two Bundles">
      <table className="lines comparison">
        <thead>
          <tr>
            <td>
              <button
                type="button"
                className="button plain"
                aria-label="Close the comparison"
                onClick={() => place.select(document.shown)}
              >
                <X aria-hidden />
              </button>
            </td>
            {two.map((card) => (
              <th key={card.name} scope="col">
                <Link className="version" to={bundlePath(card.namespace, card.name)}>
                  {card.versions}
                </Link>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {line("Created", (card) => (
            <>
              <Ago at={card.created} />
              {card.author && ` by ${card.author}`}
            </>
          ))}
          {line("Commit", (card) => (card.commit ? <OutLink link={card.commit} /> : "—"))}
          {line("CI run", (card) => (card.ciRun ? <OutLink link={card.ciRun} icon /> : "—"))}
          {line("Phase", (card) => (
            <StateIcon state={card.phase} />
          ))}
          {order.map((name) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              {two.map((card) => {
                const state = card.segments[name];
                return (
                  <td key={card.name}>
                    <span className="row">
                      {state ? <StateIcon state={state} /> : <span className="muted">not reached</span>}
                      {card.runsIn.includes(name) && <span className="chip">runs</span>}
                    </span>
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
