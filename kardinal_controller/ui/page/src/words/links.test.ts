import { expect, test } from "vitest";

import { safeUrl } from "./links";

test.each(["https://git.example.com/shop/env/pulls/812", "http://argocd.internal/applications/x?view=tree"])(
  "%s is followed",
  (url) => {
    expect(safeUrl(url)).toBe(url);
  },
);

test.each([
  undefined,
  "",
  "javascript:alert(1)",
  "JaVaScRiPt:alert(1)",
  " javascript:alert(1)",
  "java\nscript:alert(1)",
  "\u0001javascript:alert(1)",
  "data:text/html,<script>alert(1)</script>",
  "vbscript:msgbox(1)",
  "blob:https://host/1",
  "file:///etc/passwd",
  "//host/path",
  "/path",
  "https://token@git.example.com/shop",
  "https://",
])("%s is not followed", (url) => {
  expect(safeUrl(url)).toBeUndefined();
});
