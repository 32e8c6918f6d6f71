/** Operations queries: the state of the server, its providers, MCP servers, tokens and audit. */
import { queryOptions } from "@tanstack/react-query";
import { api, type Schemas, unwrap } from "@/api/client";

export type Operations = Schemas["OperationsView"];
export type McpServer = Schemas["McpServerView"];

/** After a stop, running tasks end within a few seconds. */
const isStopping = (state: Operations | undefined): boolean => !!state?.stopped && state.queue.running > 0;

/** The numbers of the overview change by themselves, and no event tells of them all. */
export const operationsQuery = queryOptions({ queryKey: ["operations"] as const, queryFn: () => unwrap(api.GET("/api/operations")), refetchInterval: (query) => (isStopping(query.state.data) ? 1_000 : 10_000), staleTime: 0 });
export const providersQuery = queryOptions({ queryKey: ["operations", "providers"] as const, queryFn: () => unwrap(api.GET("/api/operations/providers")), refetchInterval: 15_000, staleTime: 0 });
export const mcpQuery = queryOptions({ queryKey: ["mcp servers"] as const, queryFn: () => unwrap(api.GET("/api/mcp-servers")), staleTime: 0 });
export const tokensQuery = queryOptions({ queryKey: ["tokens"] as const, queryFn: () => unwrap(api.GET("/api/tokens")), staleTime: 0 });
