import { CircleAlert } from "lucide-react";
import type { ReactNode } from "react";

import type { RequestError } from "../api/session";
import type { PageNotice, Sentence } from "../api/types";
import { Command, CopyButton } from "./Command";
import { OutLink } from "./OutLink";
import { ToneIcon } from "./StateIcon";
import { Countdown, Since } from "./Time";

/** The text of a sentence, in which its link is followed where it stands. */
export function SentenceText({ sentence }: { sentence: Sentence }) {
  const { text, link } = sentence;
  const at = link?.text ? text.indexOf(link.text) : -1;
  if (!link || at < 0)
    return (
      <>
        {text}
        {link && (
          <>
            {" "}
            · <OutLink link={link} />
          </>
        )}
      </>
    );
  return (
    <>
      {text.slice(0, at)}
      <OutLink link={link} />
      {text.slice(at + link.text.length)}
    </>
  );
}

/** The verdict at the top of a drawer, in its tint, with the countdown. */
export function Verdict({ sentence }: { sentence: Sentence }) {
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
            · <Countdown until={sentence.until} />
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
            since <Since at={notice.since} />.
          </>
        )}{" "}
        {notice.command && <code>{notice.command}</code>}
      </div>
      {notice.command && (
        <span className="end">
          <CopyButton text={notice.command} label="Copy the command" />
        </span>
      )}
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
