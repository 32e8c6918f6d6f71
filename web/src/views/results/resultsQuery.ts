/** resultsQuery: what a team has delivered, page by page, newest first. */
import { infiniteQueryOptions } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "@/api/client";

export type Result = Schemas["ResultView"];
export type Filter = "all" | "reports" | "files" | "changes";

const PER_PAGE = 30;
const KINDS: Record<Filter, Result["kind"] | undefined> = { all: undefined, reports: "result", files: "result", changes: "changes" };

export const resultsQuery = (team: string, filter: Filter, hasParts: boolean) => {
  const kind = KINDS[filter];
  return infiniteQueryOptions({
    queryKey: ["results", team, kind ?? "all", String(hasParts)],
    queryFn: ({ pageParam }) => unwrap(api.GET("/api/teams/{team}/results", { params: { path: { team }, query: { kind, parts: hasParts, before: pageParam, limit: PER_PAGE } } })),
    initialPageParam: "",
    getNextPageParam: (page) => page.next ?? undefined,
  });
};
