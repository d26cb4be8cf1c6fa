import type { Need } from "../api/types";
import { NEED_WORDS, NEEDS } from "../words/states";

interface TilesProps {
  readonly counts: Readonly<Record<Need, number>>;
  /** How many environments were Verified since midnight. */
  readonly promotions: number;
  readonly chosen: string;
  readonly choose: (need: string) => void;
}

/** The counts, which are the filters: those who need someone come first, at rest comes last; and what came of the day. */
export function Tiles({ counts, promotions, chosen, choose }: TilesProps) {
  return (
    <div className="tiles">
      <div role="group" aria-label="Filter by what Pipelines need">
        {NEEDS.map((need) => {
          const { label, tone } = NEED_WORDS[need];
          const pressed = chosen === need;
          const quiet = counts[need] === 0 || need === "rest";
          return (
            <button
              key={need}
              type="button"
              className={`tile panel ${quiet ? "" : `tone-${tone} toned`}`}
              aria-pressed={pressed}
              onClick={() => choose(pressed ? "" : need)}
            >
              <span className="count">{counts[need].toLocaleString("en")}</span>
              <span className="label">{label}</span>
            </button>
          );
        })}
      </div>
      <p
        className="tile panel told"
        title="Environments that were Verified since midnight, of the Bundles that are kept"
      >
        <span className="count">{promotions.toLocaleString("en")}</span>
        <span className="label">{promotions === 1 ? "promotion today" : "promotions today"}</span>
      </p>
    </div>
  );
}
