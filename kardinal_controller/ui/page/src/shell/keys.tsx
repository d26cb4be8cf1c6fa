import { useEffect, useState } from "react";
import { useLocation } from "wouter";

import { Modal } from "../parts/Modal";

const KEYS: readonly [string, string][] = [
  ["/", "search"],
  ["j  k", "next, previous"],
  ["← ↑ ↓ →", "to the next thing in that direction"],
  ["Enter", "open"],
  ["Esc", "close"],
  ["g p", "go to Pipelines"],
  ["g b", "go to Bundles"],
  ["g g", "go to Graphs"],
  ["?", "this list"],
];
const GO: Readonly<Record<string, string>> = { p: "/", b: "/bundles", g: "/graphs" };
const GO_WITHIN_MS = 1500;

/** Listen to the keys of the page; return whether their list is open. */
export function useKeys() {
  const [help, setHelp] = useState(false);
  const [, go] = useLocation();
  useEffect(() => {
    let pressedG = 0;
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      if (document.querySelector("[role=dialog]")) return;
      const target = performance.now() - pressedG < GO_WITHIN_MS ? GO[event.key] : undefined;
      pressedG = 0;
      if (target !== undefined) go(target);
      else if (event.key === "/") document.getElementById("search")?.focus();
      else if (event.key === "?") setHelp(true);
      else if (event.key === "g") pressedG = performance.now();
      else if (!moveFocus(event.key)) return;
      event.preventDefault();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [go]);
  return { help, closeHelp: () => setHelp(false) };
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.matches("input, textarea, select") || target.isContentEditable);
}

/** Move the focus among the things with `data-stop`; return whether the key is one of those that do. */
export function moveFocus(key: string): boolean {
  const stops = [...document.querySelectorAll<HTMLElement>("[data-stop]")].filter(
    (each) => each.getClientRects().length,
  );
  const at = stops.findIndex((each) => each === document.activeElement);
  const chosen = key === "j" ? stops[at + 1] : key === "k" ? stops[Math.max(0, at - 1)] : undefined;
  const next = chosen ?? inDirection(key, stops, stops[at]);
  if (!next) return false;
  next.focus();
  next.scrollIntoView({ block: "nearest", inline: "nearest" });
  return true;
}

const DIRECTIONS: Readonly<Record<string, readonly [number, number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

function inDirection(key: string, stops: HTMLElement[], from: HTMLElement | undefined): HTMLElement | undefined {
  const direction = DIRECTIONS[key];
  if (!direction) return undefined;
  if (!from) return key === "ArrowDown" || key === "ArrowRight" ? stops[0] : undefined;
  const [x, y] = centre(from);
  let nearest: HTMLElement | undefined;
  let least = Infinity;
  for (const stop of stops) {
    if (stop === from) continue;
    const [toX, toY] = centre(stop);
    const along = (toX - x) * direction[0] + (toY - y) * direction[1];
    const across = Math.abs((toX - x) * direction[1]) + Math.abs((toY - y) * direction[0]);
    // What is more beside than ahead is in another direction.
    if (along < 4 || across > along * 2) continue;
    if (along + across * 2 < least) {
      least = along + across * 2;
      nearest = stop;
    }
  }
  return nearest;
}

function centre(element: HTMLElement): [number, number] {
  const box = element.getBoundingClientRect();
  return [box.left + box.width / 2, box.top + box.height / 2];
}

/** The list of the keys. */
export function KeyHelp({ open, close }: { open: boolean; close: () => void }) {
  return (
    <Modal open={open} close={close} title="Keys">
      <dl className="keys">
        {KEYS.map(([key, does]) => (
          <div key={key} className="row">
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </Modal>
  );
}
