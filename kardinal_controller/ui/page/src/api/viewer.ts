// The person who looks.

import { useQuery } from "@tanstack/react-query";
import { createContext, useContext } from "react";

import { logIn, requestJson, RequestError, takeCode } from "./session";
import type { Viewer } from "./types";

let code = takeCode();

async function readViewer(): Promise<Viewer> {
  const once = code;
  code = undefined;
  // The code of the link works once; a tab that has a session already needs none.
  if (once) return logIn({ code: once });
  return requestJson<Viewer>("viewer");
}

/** Read the viewer; the error has status 401 where they have to log in. */
export function useViewerQuery() {
  return useQuery<Viewer, RequestError>({
    queryKey: ["viewer"],
    queryFn: readViewer,
    staleTime: Infinity,
    retry: (count, error) => count < 5 && (error.status === 0 || error.status >= 500),
  });
}

export const ViewerContext = createContext<Viewer | undefined>(undefined);

/** Return the viewer, inside the pages. */
export function useViewer(): Viewer {
  const viewer = useContext(ViewerContext);
  if (!viewer) throw new Error("there is no viewer outside of the pages");
  return viewer;
}
