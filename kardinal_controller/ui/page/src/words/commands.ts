// The command of an action, as it is typed in a shell.

import type { ActionRequest } from "../api/types";

export type ActionName = "promote" | "retry" | "pause" | "resume" | "rollback" | "merge" | "approve";

/** Return a word so that a shell reads it as one. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

/** Return the command that does what an action does. */
export function commandOf(action: ActionName, request: ActionRequest): string {
  const option = (name: string, value: string | undefined) => (value ? [name, value] : []);
  const environment = option("--env", request.environment);
  const words: Readonly<Record<ActionName, readonly string[]>> = {
    promote: ["promote", request.pipeline, ...environment, ...option("--bundle", request.bundle)],
    retry: ["retry", request.bundle ?? "BUNDLE", ...environment],
    pause: ["pause", request.pipeline, ...option("--reason", request.reason)],
    resume: ["resume", request.pipeline, ...environment],
    rollback: [
      "rollback",
      request.pipeline,
      ...environment,
      ...option("--to", request.bundle),
      ...(request.emergency ? ["--emergency"] : []),
      ...(request.hold === false ? ["--no-hold"] : []),
    ],
    merge: ["pr", "merge", String(request.pullRequest ?? "NUMBER")],
    approve: [
      "approve",
      request.bundle ?? "BUNDLE",
      ...environment,
      ...option("--gate", request.gate),
      ...option("--reason", request.reason),
    ],
  };
  return ["kardinal", ...words[action], "-n", request.namespace].map(quoted).join(" ");
}
