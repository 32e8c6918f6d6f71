/** timelineQuery: the spans of a team, fetched page by page and continued as events arrive. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { api, type Schemas, unwrap } from "@/api/client";
import { onNewEvents } from "@/live";
import type { Span, Tick } from "@/views/timeline/phases";

export interface LoadedTimeline {
  spans: Span[];
  open: Span[];
  ticks: Tick[];
  nodes: Map<string, Schemas["TimelineNodeView"]>;
  /** When all work of all teams was stopped. */
  stops: Schemas["StopView"][];
  /** What searches and side calls have cost: no event says when. */
  otherUsd: number;
  firstSeq: number;
  lastSeq: number;
}

const SPANS_PER_PAGE = 5000;
/** A longer timeline shows its newest spans: nobody can read more bars. */
const MAX_SPANS = 30_000;
const REFRESH_MS = 1000;
const key = (team: string) => ["timeline", team] as const;

/** Fetch what happened after the known part, and join it. */
async function fetchTimeline(team: string, known: LoadedTimeline | undefined): Promise<LoadedTimeline> {
  let spans = known?.spans ?? [];
  let ticks = known?.ticks ?? [];
  const nodes = new Map(known?.nodes);
  let after = known?.lastSeq ?? 0;
  for (;;) {
    const page: Schemas["TimelineView"] = await unwrap(api.GET("/api/teams/{team}/timeline", { params: { path: { team }, query: { after, limit: SPANS_PER_PAGE } } }));
    // Fewer events than before: the server has another database.
    if (known && page.last_seq < known.lastSeq) return fetchTimeline(team, undefined);
    spans = spans.concat(page.spans).slice(-MAX_SPANS);
    ticks = ticks.concat(page.ticks).slice(-MAX_SPANS);
    for (const node of page.nodes) nodes.set(node.id, node);
    if (page.next_seq === null) return { spans, ticks, nodes, open: page.open, stops: page.stops, otherUsd: page.other_usd, firstSeq: page.first_seq, lastSeq: page.last_seq };
    after = page.next_seq;
  }
}

export function useTimeline(team: string) {
  const client = useQueryClient();
  const query = useQuery({ queryKey: key(team), queryFn: () => fetchTimeline(team, client.getQueryData<LoadedTimeline>(key(team))) });
  const { refetch } = query;
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = onNewEvents((events) => {
      if (!events.some((event) => event.team_id === team)) return;
      timer ??= setTimeout(() => {
        timer = undefined;
        void refetch({ cancelRefetch: false });
      }, REFRESH_MS);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [refetch, team]);
  return query;
}
