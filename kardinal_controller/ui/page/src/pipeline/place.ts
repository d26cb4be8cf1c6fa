// What of a Pipeline is open, as the address says it: `…/environments/prod?bundle=search-7&compare=search-6`.

import { useMemo } from "react";
import { useLocation, useSearchParams } from "wouter";

import { endpoint, environmentPath, gatePath, ofBundle, pipelinePath } from "../words/routes";

export type Open =
  | { readonly kind: "environment"; readonly environment: string }
  | { readonly kind: "gate"; readonly environment: string; readonly namespace: string; readonly gate: string };

/** Return what the rest of the path opens: `environments/prod`, or `gates/prod/platform/business-hours`. */
export function openOf(path: string): Open | undefined {
  const parts = path.split("/").filter(Boolean).slice(3).map(decoded);
  const [kind, environment, namespace, gate] = parts;
  if (kind === "environments" && environment) return { kind: "environment", environment };
  if (kind === "gates" && environment && namespace && gate) return { kind: "gate", environment, namespace, gate };
  return undefined;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The key of the node in the document. */
export function nodeKey(open: Open): string {
  if (open.kind === "environment") return `environment/${open.environment}`;
  return `gate/${open.environment}/${open.namespace}/${open.gate}`;
}

/** The address of a node, and of the endpoint of its drawer. */
export function openPath(namespace: string, name: string, open: Open): string {
  if (open.kind === "environment") return environmentPath(namespace, name, open.environment);
  return gatePath(namespace, name, open.environment, open.namespace, open.gate);
}

export interface PipelinePlace {
  readonly namespace: string;
  readonly name: string;
  readonly open: Open | undefined;
  readonly bundle: string | undefined;
  readonly compare: string | undefined;
  /** Return the address of a node, with the Bundle that is selected. */
  readonly to: (open: Open) => string;
  readonly stream: (open?: Open) => string;
  readonly close: () => void;
  readonly select: (bundle: string | undefined, compare?: string) => void;
}

/** Return what is open of a Pipeline, and how to open something else; the same object until that changes. */
export function usePlace(namespace: string, name: string): PipelinePlace {
  const [path, go] = useLocation();
  const [parameters, setParameters] = useSearchParams();
  const bundle = parameters.get("bundle") ?? undefined;
  const compare = parameters.get("compare") ?? undefined;
  return useMemo(() => {
    const query = ofBundle(bundle);
    const own = pipelinePath(namespace, name);
    return {
      namespace,
      name,
      open: openOf(path),
      bundle,
      compare,
      to: (open) => openPath(namespace, name, open) + query,
      stream: (open) => `stream/${endpoint(open ? openPath(namespace, name, open) : own)}${query}`,
      close: () => go(own + query),
      select: (selected, other) =>
        setParameters(() => {
          const after = new URLSearchParams();
          if (selected) after.set("bundle", selected);
          if (other) after.set("compare", other);
          return after;
        }),
    };
  }, [namespace, name, path, bundle, compare, go, setParameters]);
}
