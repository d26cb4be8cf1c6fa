// The places of the nodes of a DAG, which a worker computes, so that the page answers meanwhile.

import { useEffect, useState } from "react";

import type { Places } from "./graph";

const KEPT = 20;

/** The layouts that were asked for last, oldest first. */
const layouts = new Map<string, Promise<Places>>();
let worker: Worker | undefined;

export interface Layout {
  readonly structure: string;
  readonly places: Places;
}

/** Return the newest layout that is computed; until that of the structure is, the one before it. */
export function useLayout(structure: string): Layout | undefined {
  const [layout, setLayout] = useState<Layout>();
  useEffect(() => {
    let asked = true;
    void layOut(structure).then((places) => {
      if (asked) setLayout({ structure, places });
    });
    return () => {
      asked = false;
    };
  }, [structure]);
  return layout;
}

function layOut(structure: string): Promise<Places> {
  const found = layouts.get(structure) ?? computed(structure);
  layouts.delete(structure);
  layouts.set(structure, found);
  for (const oldest of [...layouts.keys()].slice(0, -KEPT)) layouts.delete(oldest);
  return found;
}

async function computed(structure: string): Promise<Places> {
  try {
    return await byWorker(structure);
  } catch {
    // No worker, or not its file, as after an upgrade of the server: the page computes it itself.
    const { placesOf } = await import("./layout");
    return placesOf(structure);
  }
}

function byWorker(structure: string): Promise<Places> {
  worker ??= new Worker(new URL("./layout.worker.ts", import.meta.url), { type: "module" });
  const asked = worker;
  return new Promise((resolve, reject) => {
    const done = new AbortController();
    const options = { signal: done.signal };
    asked.addEventListener(
      "message",
      ({ data: [of, places] }: MessageEvent<[string, Places]>) => {
        if (of !== structure) return;
        done.abort();
        resolve(places);
      },
      options,
    );
    asked.addEventListener(
      "error",
      () => {
        done.abort();
        worker = undefined;
        reject(new Error("the worker of layouts failed"));
      },
      options,
    );
    asked.postMessage(structure);
  });
}
