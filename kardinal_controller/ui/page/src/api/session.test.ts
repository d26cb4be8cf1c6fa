// @vitest-environment jsdom
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { logIn, logOut, request, SESSION_HEADER, takeCode } from "./session";

const fetched = vi.fn<typeof fetch>();
const sent = () => new Headers(fetched.mock.lastCall?.[1]?.headers).get(SESSION_HEADER);

beforeEach(() => {
  vi.stubGlobal("fetch", fetched);
  fetched.mockResolvedValue(Response.json({ secret: "s3", viewer: {} }));
});
afterEach(() => {
  vi.unstubAllGlobals();
  sessionStorage.clear();
});

test("secret is sent as a header and is neither in a cookie nor in what other tabs read", async () => {
  await logIn({ code: "c0de" });
  fetched.mockImplementation(async () => Response.json({}));
  await request("viewer");
  expect(sent()).toBe("s3");
  expect(document.cookie + JSON.stringify({ ...localStorage })).not.toContain("s3");
});

test("secret outlives a reload of its tab", async () => {
  await logIn({ code: "c0de" });
  vi.resetModules();
  const reloaded = await import("./session");
  await reloaded.request("viewer");
  expect(sent()).toBe("s3");
});

test("secret is forgotten at log out, even where the server does not answer", async () => {
  await logIn({ code: "c0de" });
  fetched.mockRejectedValue(new TypeError("lost"));
  await expect(logOut()).rejects.toThrow("cannot be reached");
  fetched.mockResolvedValue(Response.json({}));
  await request("viewer");
  expect(sent()).toBeNull();
});

test("code leaves the address and its history", () => {
  history.replaceState(null, "", "/ui/pipelines/shop/search?bundle=x#code=c0de");
  expect(takeCode()).toBe("c0de");
  expect(location.href).toMatch(/\/ui\/pipelines\/shop\/search\?bundle=x$/);
  expect(takeCode()).toBeUndefined();
});
