import { Check, Copy } from "lucide-react";
import { useEffect, useState } from "react";

/** A button that copies a text, and says that it did. */
export function CopyButton({ text, label = "Copy" }: { text: string; label?: string }) {
  const [said, say] = useState("");
  useEffect(() => {
    if (!said) return undefined;
    const timer = setTimeout(() => say(""), 2000);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = () => {
    // A page that is served without TLS beyond loopback has no clipboard.
    navigator.clipboard?.writeText(text).then(
      () => say("Copied"),
      () => say("Select the text to copy it"),
    );
    if (!navigator.clipboard) say("Select the text to copy it");
  };
  return (
    <button type="button" className="button plain" aria-label={said || label} title={said || label} onClick={copy}>
      {said === "Copied" ? <Check aria-hidden /> : <Copy aria-hidden />}
      <span className="unseen" role="status">
        {said}
      </span>
    </button>
  );
}

/** A command to type, with its copy button. */
export function Command({ text }: { text: string }) {
  return (
    <div className="command">
      <code>{text}</code>
      <CopyButton text={text} label={`Copy the command ${text}`} />
    </div>
  );
}
