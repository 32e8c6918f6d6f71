import { afterEach, expect, it } from "vitest";
import type { TeamOverview } from "@/api/client";
import { overviewQuery, queryClient, queryKeys } from "@/api/queries";
import { catchUp } from "@/live/invalidation";

afterEach(() => queryClient.clear());

it("what a team has done between the first requests of the page and its first event is fetched again", async () => {
  const read = [queryKeys.agents("team_1"), queryKeys.board("team_1"), queryKeys.agents("team_2"), queryKeys.conversation("agent_1"), ["models"]];
  for (const key of read) queryClient.setQueryData(key, []);
  const stale = () => read.map((key) => queryClient.getQueryState(key)?.isInvalidated);
  const known = [{ id: "team_1", head: 3 }, { id: "team_2", head: 9 }] as TeamOverview[];

  queryClient.setQueryData(overviewQuery.queryKey, known);
  await catchUp({ team_1: 3, team_2: 9 });
  expect(stale()).toEqual([false, false, false, false, false]);

  queryClient.setQueryData(overviewQuery.queryKey, known);
  await catchUp({ team_1: 4, team_2: 9 });
  expect(stale()).toEqual([true, true, false, true, false]);
});
