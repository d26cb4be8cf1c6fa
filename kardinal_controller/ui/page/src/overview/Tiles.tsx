import type { Need } from "../api/types";
import { NEED_WORDS, NEEDS } from "../words/states";

interface TilesProps {
  readonly counts: Readonly<Record<Need, number>>;
  readonly chosen: string;
  readonly choose: (need: string) => void;
}

/** The counts, which are the filters: those who need someone come first, at rest comes last. */
export function Tiles({ counts, chosen, choose }: TilesProps) {
  return (
    <div className="tiles" role="group" aria-label="Filter by what Pipelines need">
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
  );
}
