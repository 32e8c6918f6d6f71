/** Server queries: the sandbox, the channels, and the extensions and skills of this server. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { api, unwrap } from "@/api/client";
import type { AgentStatus } from "@/ui";

/** Whether work is stopped may change in another browser, so it is fetched again when the person comes back to the page. */
export const statusQuery = queryOptions({ queryKey: ["status"] as const, queryFn: () => unwrap(api.GET("/api/status")), staleTime: 30_000, refetchOnWindowFocus: true });
export const channelsQuery = queryOptions({ queryKey: ["channels"] as const, queryFn: () => unwrap(api.GET("/api/channels")), staleTime: 0 });
export const extensionsQuery = queryOptions({ queryKey: ["extensions"] as const, queryFn: () => unwrap(api.GET("/api/extensions")), staleTime: 0 });
export const skillsQuery = queryOptions({ queryKey: ["skills"] as const, queryFn: () => unwrap(api.GET("/api/skills")), staleTime: 0 });

/** What is said while all work is stopped, where something would start otherwise. */
export const WAITS = "Waits: all work is stopped";

/** Whether all work is stopped, as far as the page knows. It asks nothing itself: the warning at the top of every screen does. */
export const useIsStopped = (): boolean => !!useQuery({ ...statusQuery, enabled: false }).data?.stopped_at;

/** Return the status to show for an agent: while all work is stopped, no agent works, and none that is idle or queued begins. */
export const shownStatus = (status: AgentStatus, isStopped: boolean): AgentStatus => (isStopped && (status === "idle" || status === "queued" || status === "working") ? "stopped" : status);
