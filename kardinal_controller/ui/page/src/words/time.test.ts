import { expect, test } from "vitest";

import { exactly, roughly } from "./time";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

test.each([
  [-5, "0 s"],
  [20_400, "20 s"],
  [41 * MINUTE, "41 min"],
  [3.9 * HOUR, "3 h"],
  [47 * HOUR, "47 h"],
  [8 * 24 * HOUR, "8 d"],
])("%d ms are roughly %s", (length, words) => {
  expect(roughly(length)).toBe(words);
});

test.each([
  [0, "0 s"],
  [4 * MINUTE + 12_000, "4 min 12 s"],
  [61 * HOUR + 5 * MINUTE, "2 d 13 h"],
  [24 * HOUR, "1 d"],
])("%d ms are exactly %s", (length, words) => {
  expect(exactly(length)).toBe(words);
});
