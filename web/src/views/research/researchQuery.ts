/** Research query: a research job with its plan, ledger and sources. Events of the team's work invalidate it. */
import { queryOptions } from "@tanstack/react-query";
import { ApiError, api, unwrap } from "@/api/client";

export const researchQuery = (node: string) =>
  queryOptions({
    queryKey: ["research", node] as const,
    queryFn: () => unwrap(api.GET("/api/nodes/{node}/research", { params: { path: { node } } })),
    retry: (failures, error) => failures < 2 && !(error instanceof ApiError && error.status === 404),
  });
