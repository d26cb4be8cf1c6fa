import { ExternalLink } from "lucide-react";
import type { ReactNode } from "react";

import type { Link as PageLink } from "../api/types";
import { safeUrl } from "../words/links";

/** A link to a page of another program, or its text where the address is none that is followed. */
export function OutLink({ link, children, icon = false }: { link: PageLink; children?: ReactNode; icon?: boolean }) {
  const url = safeUrl(link.url);
  const text = children ?? link.text;
  if (!url) return <span className="break">{text}</span>;
  return (
    <a className="break" href={url} target="_blank" rel="noreferrer noopener">
      {text}
      {icon && <ExternalLink aria-hidden style={{ width: 12, height: 12, marginLeft: 4, verticalAlign: "-1px" }} />}
    </a>
  );
}
