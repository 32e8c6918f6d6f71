/** The board, live: what events tell is shown at once; the whole is read again when that settles. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { api, unwrap, type WorkNode } from "@/api/client";
import { onNews } from "@/live";
import { patched } from "@/views/board/applyEvents";

const PAGE = 500;
/** Beyond this a board is no picture any more. */
export const MOST = 3000;
const REST_MS = 700;

async function read(team: string): Promise<WorkNode[]> {
  const found: WorkNode[] = [];
  for (;;) {
    const page: WorkNode[] = await unwrap(
      api.GET("/api/teams/{team}/board", { params: { path: { team }, query: { after: found.at(-1)?.id ?? "", limit: PAGE } } }),
    );
    found.push(...page);
    if (page.length < PAGE || found.length >= MOST) return found;
  }
}

const COUNTS = /^(node\.(?!output)|stage\.|turn\.added)/;

export function useBoard(team: string) {
  const client = useQueryClient();
  const query = useQuery({ queryKey: ["whole-board", team], queryFn: () => read(team) });
  const { refetch } = query;
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isReading = false;
    let again = false;
    // A reading is never broken off by the next event: a busy team would keep its board waiting for ever.
    const refresh = async () => {
      timer = undefined;
      isReading = true;
      const begun = Date.now();
      await refetch({ cancelRefetch: false });
      isReading = false;
      if (again) timer = setTimeout(() => void refresh(), Math.max(REST_MS, 2 * (Date.now() - begun)));
      again = false;
    };
    const stop = onNews((events) => {
      const mine = events.filter((event) => event.team_id === team && COUNTS.test(event.type));
      if (mine.length === 0) return;
      client.setQueryData<WorkNode[]>(["whole-board", team], (now) => now && patched(now, mine));
      if (isReading) again = true;
      else timer ??= setTimeout(() => void refresh(), REST_MS);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [client, refetch, team]);
  return query;
}
