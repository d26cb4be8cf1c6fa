import { expect, test } from "vitest";

import { commandOf } from "./commands";

const of = { namespace: "shop", pipeline: "search" };

test("a command has the arguments of its action", () => {
  expect(commandOf("promote", { ...of, environment: "prod", bundle: "search-7" })).toBe(
    "kardinal promote search --env prod --bundle search-7 -n shop",
  );
  expect(commandOf("rollback", { ...of, environment: "prod", hold: false })).toBe(
    "kardinal rollback search --env prod --no-hold -n shop",
  );
  expect(commandOf("merge", { ...of, pullRequest: 7 })).toBe("kardinal pr merge 7 -n shop");
  expect(
    commandOf("approve", { ...of, bundle: "search-7", environment: "prod", gate: "platform/signoff", reason: "seen" }),
  ).toBe("kardinal approve search-7 --env prod --gate platform/signoff --reason seen -n shop");
});

test("a reason is one word of the shell, whatever is in it", () => {
  expect(commandOf("pause", { ...of, reason: "it's $(date)" })).toBe(
    `kardinal pause search --reason 'it'"'"'s $(date)' -n shop`,
  );
});
