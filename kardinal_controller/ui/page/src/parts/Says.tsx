import { CircleAlert } from "lucide-react";
import type { ReactNode } from "react";

import type { RequestError } from "../api/session";
import type { PageNotice, Sentence } from "../api/types";
import { Command, CopyButton } from "./Command";
import { OutLink } from "./OutLink";
import { ToneIcon } from "./StateIcon";
import { Countdown, Since } from "./Time";

/** The text of a sentence, in which its link is followed where it stands; a URL is as long as its number, `#7`. */
export function SentenceText({ sentence }: { sentence: Sentence }) {
  const { text, link } = sentence;
  if (!link) return <>{text}</>;
  const named = text.includes(link.text) ? link.text : urlOf(text, link.text);
  if (!named) {
    return (
      <>
        {text} · <OutLink link={link} />
      </>
    );
  }
  const at = text.indexOf(named);
  return (
    <>
      {text.slice(0, at)}
      <OutLink link={link} />
      {text.slice(at + named.length)}
    </>
  );
}

/** Return the URL in a text that ends with the number of a pull request, as `…/pulls/7` with `#7`. */
function urlOf(text: string, number: string): string | undefined {
  const last = `/${number.replace("#", "")}`;
  return text.split(" ").find((word) => word.includes("://") && word.endsWith(last));
}

/** The verdict at the top of a drawer, in its tint, with what time alone will change: "opens", or "goes on". */
export function Verdict({ sentence, changes = "goes on" }: { sentence: Sentence; changes?: string }) {
  return (
    <div className={`notice tone-${sentence.tone}`}>
      <ToneIcon tone={sentence.tone} />
      <div className="break">
        <strong>
          <SentenceText sentence={sentence} />
        </strong>
        {sentence.until && (
          <>
            {" "}
            · {changes} <Countdown until={sentence.until} />
          </>
        )}
        {sentence.detail && <div className="small">{sentence.detail}</div>}
      </div>
    </div>
  );
}

/** The lines above everything else. */
export function Notices({ notices }: { notices: Readonly<Record<string, PageNotice>> }) {
  return Object.entries(notices).map(([key, notice]) => (
    <div key={key} className={`notice tone-${notice.tone}`}>
      <ToneIcon tone={notice.tone} />
      <div className="break">
        <strong>{notice.text}</strong> {notice.detail}{" "}
        {notice.since && (
          <>
            Since <Since at={notice.since} />.
          </>
        )}{" "}
        {notice.command && (
          <span className="copied">
            <code>{notice.command}</code>
            <CopyButton text={notice.command} label="Copy the command" />
          </span>
        )}
      </div>
    </div>
  ));
}

/** An error: what, why, and the remedy, with a button that copies all of it. */
export function Failure({ error, children }: { error: RequestError; children?: ReactNode }) {
  const copied = [error.message, error.remedy, error.command, error.status && `HTTP ${error.status}`];
  return (
    <div className="notice tone-bad" role="alert">
      <CircleAlert aria-hidden />
      <div className="stack break" style={{ flex: 1 }}>
        <div>
          <strong>{error.message}</strong>
          {error.remedy && <div>{error.remedy}</div>}
        </div>
        {error.command && <Command text={error.command} />}
        {children}
      </div>
      <CopyButton text={copied.filter(Boolean).join("\n")} label="Copy the error" />
    </div>
  );
}

/** The page of a document that is not here: why not, or nothing as long as it is read. */
export function AbsentPage({ title, error }: { title: string; error: RequestError | undefined }) {
  if (!error || error.status === 401) return <main className="main" aria-busy />;
  return (
    <main className="main">
      <h1 className="unseen">{title}</h1>
      <Failure error={error} />
    </main>
  );
}

/** A place without content: one sentence and the next command. */
export function Empty({ text, command, children }: { text: string; command?: string; children?: ReactNode }) {
  return (
    <div className="panel empty">
      <p>{text}</p>
      {command && <Command text={command} />}
      {children}
    </div>
  );
}
