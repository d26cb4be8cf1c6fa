// The words of `docs/states.md` as they are read: `WaitingForMerge` is "Waiting for merge".

import type { Need, StateMark } from "../api/types";

/** Return the name of a state as words. The answers of gates, in capitals, stay; `-` is no state. */
export function stateWords(name: string): string {
  if (name === "-") return "No Bundle yet";
  if (name === name.toUpperCase()) return name;
  const words = name.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Return what a screen reader and a tooltip say about a state. */
export function stateTitle(state: StateMark): string {
  return `${state.name}: ${state.meaning}`;
}

export const NEEDS: readonly Need[] = ["person", "failed", "held", "moving", "rest"];

export const NEED_WORDS: Readonly<Record<Need, { readonly label: string; readonly tone: string }>> = {
  person: { label: "wait for a person", tone: "you" },
  failed: { label: "failed", tone: "bad" },
  held: { label: "held by gates", tone: "held" },
  moving: { label: "on their way", tone: "move" },
  rest: { label: "at rest", tone: "plain" },
};
