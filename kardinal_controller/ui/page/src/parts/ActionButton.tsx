import { useState } from "react";

import type { ActionRequest, BundleCard } from "../api/types";
import type { ActionName } from "../words/commands";
import { ActionDialog } from "./ActionDialog";

export interface ActionProps {
  readonly action: ActionName;
  readonly label: string;
  readonly request: ActionRequest;
  /** The environments and Bundles among which the dialog lets one choose. */
  readonly environments?: readonly string[];
  readonly bundles?: readonly BundleCard[];
}

/** A button that opens a dialog, which shows what will happen before it does. */
export function ActionButton(properties: ActionProps) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" className="button" onClick={() => setOpen(true)}>
        {properties.label} …
      </button>
      {open && <ActionDialog {...properties} close={() => setOpen(false)} />}
    </>
  );
}
