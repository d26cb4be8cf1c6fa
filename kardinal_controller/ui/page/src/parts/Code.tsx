import { Fragment } from "react";

/** A unified diff, with its lines coloured by their first character. */
export function Diff({ text }: { text: string }) {
  return (
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls, so the keyboard has to reach it
    <pre className="code" tabIndex={0} aria-label="Planned change">
      {text
        .trimEnd()
        .split("\n")
        .map((line, number) => (
          <Fragment key={number}>
            <span className={lineClass(line)}>{line}</span>
            {"\n"}
          </Fragment>
        ))}
    </pre>
  );
}

function lineClass(line: string): string | undefined {
  if (/^(\+\+\+|---|@@|diff |index )/.test(line)) return "diff-at";
  if (line.startsWith("+")) return "diff-add";
  return line.startsWith("-") ? "diff-del" : undefined;
}

const LINE = /^(\s*(?:- )*)([^\s#"'][^:#]*|"[^"]*"|'[^']*')(:)(?=\s|$)(.*)$/;

/** YAML with keys, texts, words and comments in their colours. */
export function Yaml({ text }: { text: string }) {
  return (
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- it scrolls, so the keyboard has to reach it
    <pre className="code" tabIndex={0} aria-label="YAML">
      {text.split("\n").map((line, number) => (
        <Fragment key={number}>
          <YamlLine line={line} />
          {"\n"}
        </Fragment>
      ))}
    </pre>
  );
}

function YamlLine({ line }: { line: string }) {
  if (/^\s*#/.test(line)) return <span className="yaml-note">{line}</span>;
  // The pattern is tried on lines of a bounded length only: a line of others may be long.
  const parts = line.length < 500 ? LINE.exec(line) : null;
  if (!parts) return <YamlValue text={line} />;
  return (
    <>
      {parts[1]}
      <span className="yaml-key">{parts[2]}</span>:<YamlValue text={parts[4] ?? ""} />
    </>
  );
}

function YamlValue({ text }: { text: string }) {
  const value = text.trim().replace(/^(- )+/, "");
  const word = /^(true|false|null|~|-?\d+(\.\d+)?)$/.test(value.slice(0, 40)) && value.length < 40;
  return <span className={word ? "yaml-word" : "yaml-text"}>{text}</span>;
}
