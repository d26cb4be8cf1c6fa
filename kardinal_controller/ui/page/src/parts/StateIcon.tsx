import {
  Activity,
  ArrowRightLeft,
  Check,
  CircleDashed,
  Clock,
  GitPullRequest,
  Lock,
  Minus,
  Pause,
  Rewind,
  TriangleAlert,
  X,
  type LucideIcon,
} from "lucide-react";

import type { StateMark, Tone } from "../api/types";
import { stateTitle, stateWords } from "../words/states";

const ICONS: Readonly<Record<string, LucideIcon>> = {
  Verified: Check,
  PASS: Check,
  Promoting: ArrowRightLeft,
  HealthChecking: Activity,
  WaitingForMerge: GitPullRequest,
  Blocked: Lock,
  FAIL: Lock,
  Waiting: Clock,
  Pending: Clock,
  PENDING: Clock,
  Available: Clock,
  Failed: X,
  SkipDenied: X,
  Degraded: TriangleAlert,
  CannotBeSeen: TriangleAlert,
  Superseded: Rewind,
  Skipped: Minus,
  NotTargeted: Minus,
  NotReached: CircleDashed,
  Paused: Pause,
};
const OF_TONE: Readonly<Record<Tone, LucideIcon>> = {
  ok: Check,
  move: ArrowRightLeft,
  you: GitPullRequest,
  held: Lock,
  bad: X,
  warn: TriangleAlert,
  rest: CircleDashed,
};

/** The icon of a tone, where a sentence stands beside it. */
export function ToneIcon({ tone }: { tone: Tone }) {
  const Icon = OF_TONE[tone];
  return <Icon aria-hidden />;
}

/** A state: icon, word and colour. */
export function StateIcon({ state, word = true }: { state: StateMark; word?: boolean }) {
  const Icon = ICONS[state.name] ?? OF_TONE[state.tone];
  return (
    <span className={`state tone-${state.tone}`} title={stateTitle(state)}>
      <Icon aria-hidden />
      <span className={word ? "ellipsis" : "unseen"}>{stateWords(state.name)}</span>
    </span>
  );
}
