// Lists that the server answers page by page.

import { useInfiniteQuery } from "@tanstack/react-query";

import { requestJson, type RequestError } from "./session";

interface PageOf<T> {
  readonly items: ReadonlyArray<T>;
  readonly next?: string;
}

/** Read a list page by page; what is open is read again every 15 seconds. */
export function usePages<T>(path: string, parameters: Readonly<Record<string, string>>) {
  const query = useInfiniteQuery<PageOf<T>, RequestError, T[], unknown[], string>({
    queryKey: ["pages", path, parameters],
    queryFn: ({ pageParam, signal }) => {
      const asked = new URLSearchParams({ ...parameters, limit: "100", ...(pageParam && { after: pageParam }) });
      for (const [key, value] of [...asked]) if (!value) asked.delete(key);
      return requestJson<PageOf<T>>(`${path}?${asked}`, { signal });
    },
    initialPageParam: "",
    getNextPageParam: (last) => last.next,
    select: (data) => data.pages.flatMap((page) => page.items),
    refetchInterval: 15_000,
  });
  return query;
}
