// @vitest-environment jsdom
import { cleanup, render, screen } from "@testing-library/react";
import { Tooltip } from "radix-ui";
import { afterEach, expect, test } from "vitest";

import { Diff, Yaml } from "./Code";
import { OutLink } from "./OutLink";
import { SentenceText, Verdict } from "./Says";

afterEach(cleanup);

const HOSTILE = '<img src=x onerror="alert(1)"><script>alert(1)</script>';

test("text of an object stays text", () => {
  render(
    <Tooltip.Provider>
      <Verdict sentence={{ text: HOSTILE, tone: "bad", detail: HOSTILE }} />
      <Diff text={`+${HOSTILE}`} />
      <Yaml text={`name: ${HOSTILE}\n# ${HOSTILE}`} />
      <OutLink link={{ text: HOSTILE, url: "javascript:alert(1)" }} />
    </Tooltip.Provider>,
  );
  expect(document.querySelector("img, script, a")).toBeNull();
  expect(document.body.textContent).toContain(HOSTILE);
});

test("a link stands where its text stands in the sentence", () => {
  const link = { text: "#812", url: "https://git.example.com/pulls/812" };
  render(
    <p>
      <SentenceText sentence={{ text: "prod waits for a review of #812 since today", tone: "you", link }} />
    </p>,
  );
  expect(screen.getByRole("link").textContent).toBe("#812");
  expect(screen.getByRole("paragraph").textContent).toBe("prod waits for a review of #812 since today");
});

test("the URL of a pull request is as long as its number", () => {
  const text = "WaitingForMerge: waits for file:///srv/gitops.git#pull/7 to be merged";
  render(
    <p>
      <SentenceText sentence={{ text, tone: "you", link: { text: "#7" } }} />
    </p>,
  );
  expect(screen.getByRole("paragraph").textContent).toBe("WaitingForMerge: waits for #7 to be merged");
});
