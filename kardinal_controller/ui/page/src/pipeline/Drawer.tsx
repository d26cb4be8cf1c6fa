import { X } from "lucide-react";
import { useEffect, useRef } from "react";

import type { EnvironmentDocument, GateDocument, PipelineDocument } from "../api/types";
import { useStream } from "../api/use";
import { Failure } from "../parts/Says";
import { EnvironmentDrawer } from "./EnvironmentDrawer";
import { GateDrawer } from "./GateDrawer";
import type { Open, PipelinePlace } from "./place";

interface DrawerProps {
  readonly document: PipelineDocument;
  readonly open: Open;
  readonly place: PipelinePlace;
}

/** What is known of the node that is open. Esc closes it; below 1,000 px it is a page of its own. */
export function Drawer({ document, open, place }: DrawerProps) {
  const state = useStream<EnvironmentDocument | GateDocument>(place.stream(open));
  const panel = useRef<HTMLElement>(null);
  const { close } = place;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (
        event.key !== "Escape" ||
        event.defaultPrevented ||
        window.document.querySelector("[role=dialog], [role=menu]")
      )
        return;
      close();
    };
    window.document.addEventListener("keydown", onKey);
    return () => window.document.removeEventListener("keydown", onKey);
  });
  useEffect(() => {
    // In newer browsers `scrollTo` returns a promise, which React would take for the end of the effect.
    void panel.current?.scrollTo(0, 0);
  }, []);
  const name = open.kind === "gate" ? open.gate : open.environment;
  return (
    <aside
      ref={panel}
      className={`panel drawer ${state.live || !state.document ? "" : "stale"}`}
      aria-label={`${open.kind === "gate" ? "Gate" : "Environment"} ${name}`}
    >
      <div className="row drawer-head">
        <h2 className="break">{name}</h2>
        <button type="button" className="button plain end" aria-label="Close" onClick={close}>
          <X aria-hidden />
        </button>
      </div>
      {state.error && state.error.status !== 401 && <Failure error={state.error} />}
      {state.document &&
        ("gate" in state.document ? (
          <GateDrawer gate={state.document} />
        ) : (
          <EnvironmentDrawer environment={state.document} pipeline={document} place={place} />
        ))}
    </aside>
  );
}
