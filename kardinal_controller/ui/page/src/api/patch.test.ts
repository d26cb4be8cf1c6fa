import { expect, test } from "vitest";

import { mergePatch } from "./patch";

// The examples of RFC 7396, appendix A.
const EXAMPLES: [unknown, unknown, unknown][] = [
  [{ a: "b" }, { a: "c" }, { a: "c" }],
  [{ a: "b" }, { b: "c" }, { a: "b", b: "c" }],
  [{ a: "b" }, { a: null }, {}],
  [{ a: "b", b: "c" }, { a: null }, { b: "c" }],
  [{ a: ["b"] }, { a: "c" }, { a: "c" }],
  [{ a: "c" }, { a: ["b"] }, { a: ["b"] }],
  [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
  [{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
  [
    ["a", "b"],
    ["c", "d"],
    ["c", "d"],
  ],
  [{ a: "b" }, ["c"], ["c"]],
  [{ a: "foo" }, null, null],
  [{ a: "foo" }, "bar", "bar"],
  [{ e: null }, { a: 1 }, { e: null, a: 1 }],
  [[1, 2], { a: "b", c: null }, { a: "b" }],
  [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
];

test.each(EXAMPLES)("%j patched by %j is %j", (target, patch, result) => {
  expect(mergePatch(target, patch)).toEqual(result);
});

test("what a patch does not touch stays the same object", () => {
  const before = { rows: { a: { need: "rest" }, b: { need: "held" } } };
  const after = mergePatch(before, { rows: { b: { need: "rest" } } }) as typeof before;
  expect(after.rows.a).toBe(before.rows.a);
  expect(before.rows.b.need).toBe("held");
});

test("a key that names the prototype is a field", () => {
  const patched = mergePatch({}, JSON.parse('{"__proto__": {"polluted": true}}')) as object;
  expect(Object.keys(patched)).toEqual(["__proto__"]);
  expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
});
