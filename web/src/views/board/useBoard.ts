/** useBoard: a team's nodes, kept current. An event changes the cached nodes at once; a short time later the board is fetched again. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { api, unwrap, type WorkNode } from "@/api/client";
import { onNewEvents } from "@/live";
import { applyEvents } from "@/views/board/applyEvents";

const NODES_PER_PAGE = 500;
/** A board with more nodes than this is truncated: nobody can read such a graph. */
const MAX_NODES = 3000;
const REFETCH_DELAY_MS = 700;

async function fetchBoard(team: string): Promise<WorkNode[]> {
  const nodes: WorkNode[] = [];
  for (;;) {
    const page: WorkNode[] = await unwrap(
      api.GET("/api/teams/{team}/board", { params: { path: { team }, query: { after: nodes.at(-1)?.id ?? "", limit: NODES_PER_PAGE } } }),
    );
    nodes.push(...page);
    if (page.length < NODES_PER_PAGE || nodes.length >= MAX_NODES) return nodes;
  }
}

/** Events that change a card. `node.output` is the output of a program and changes none. */
const BOARD_EVENTS = /^(node\.(?!output)|stage\.|turn\.added)/;

export function useBoard(team: string) {
  const client = useQueryClient();
  const query = useQuery({ queryKey: ["whole-board", team], queryFn: () => fetchBoard(team) });
  const { refetch } = query;
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isFetching = false;
    let isRefetchDue = false;
    // An event never cancels a running fetch. If it did, the board of a busy team would never finish loading.
    const refresh = async () => {
      timer = undefined;
      isFetching = true;
      const startedAt = Date.now();
      await refetch({ cancelRefetch: false });
      isFetching = false;
      if (isRefetchDue) timer = setTimeout(() => void refresh(), Math.max(REFETCH_DELAY_MS, 2 * (Date.now() - startedAt)));
      isRefetchDue = false;
    };
    const stop = onNewEvents((events) => {
      const boardEvents = events.filter((event) => event.team_id === team && BOARD_EVENTS.test(event.type));
      if (boardEvents.length === 0) return;
      // Show the change at once. The fetch below replaces the cached nodes with the server's.
      client.setQueryData<WorkNode[]>(["whole-board", team], (nodes) => nodes && applyEvents(nodes, boardEvents));
      if (isFetching) isRefetchDue = true;
      else timer ??= setTimeout(() => void refresh(), REFETCH_DELAY_MS);
    });
    return () => {
      stop();
      // What was not fetched any more is, when the board is opened again.
      if (timer) void client.invalidateQueries({ queryKey: ["whole-board", team], refetchType: "none" });
      clearTimeout(timer);
    };
  }, [client, refetch, team]);
  return query;
}
