import type { BundleDocument } from "../api/types";
import { useTimeWords } from "../api/use";
import { absolute, exactly } from "../words/time";
import { spansOf, totals, type Span } from "./hours";

const LOOKS: Readonly<Record<Span["what"], { readonly tone: string; readonly label: string }>> = {
  waiting: { tone: "held", label: "waiting to begin" },
  changing: { tone: "move", label: "the change itself" },
  review: { tone: "you", label: "review" },
  health: { tone: "ok", label: "health" },
};

/** The picture of where the hours went: a line for each environment, from the creation of the Bundle to now. */
export function Hours({ bundle }: { bundle: BundleDocument }) {
  const now = Number(useTimeWords((moment) => String(Math.ceil(moment / 10_000)))) * 10_000;
  const lines = Object.values(bundle.environments).map((evidence) => ({
    name: evidence.environment,
    spans: spansOf(evidence, now),
  }));
  const spans = lines.flatMap((line) => line.spans);
  if (!spans.length) return null;
  const start = Math.min(Date.parse(bundle.card.created), ...spans.map((span) => span.from));
  const end = Math.max(...spans.map((span) => span.to));
  const percent = (time: number) => `${(100 * time) / Math.max(1, end - start)}%`;
  return (
    <section className="panel pad">
      <h2>Where the time went</h2>
      <p className="muted small">
        {exactly(end - start)} from its creation:{" "}
        {totals(spans)
          .map(([what, sum]) => `${LOOKS[what].label} ${exactly(sum)}`)
          .join(" · ")}
      </p>
      <div className="hours">
        {lines.map((line) => (
          <div key={line.name} className="hours-line">
            <span className="ellipsis small">{line.name}</span>
            <span className="hours-track" role="img" aria-label={line.spans.map(words).join("; ") || "not begun"}>
              {line.spans.map((span) => (
                <span
                  key={span.what}
                  className={`tone-${LOOKS[span.what].tone}`}
                  style={{ left: percent(span.from - start), width: percent(span.to - span.from) }}
                  title={`${words(span)}, from ${absolute(span.from)}`}
                />
              ))}
            </span>
          </div>
        ))}
      </div>
      <p className="row wrap small muted hours-legend">
        {Object.entries(LOOKS).map(([what, { tone, label }]) => (
          <span key={what} className={`row tone-${tone}`}>
            <span className="pip" />
            {label}
          </span>
        ))}
      </p>
    </section>
  );
}

function words(span: Span): string {
  return `${LOOKS[span.what].label} ${exactly(span.to - span.from)}`;
}
