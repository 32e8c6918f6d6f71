import { QueryClient } from "@tanstack/react-query";
import { expect, it, vi } from "vitest";
import { queryKeys } from "@/api/queries";
import { batchedInvalidation, keysToInvalidate } from "@/live/invalidation";
import type { Event } from "@/live/log";

it("the inbox is fetched when a task ends or goes back into the queue: whether somebody waits for an answer has changed", () => {
  const types = ["node.started", "node.completed", "node.partial", "node.failed", "node.cancelled", "node.assigned", "node.output"];
  const fetching = types.filter((type) => keysToInvalidate({ type, team_id: "team_1", data: { node_id: "node_1" } } as unknown as Event).includes(queryKeys.inbox));
  expect(fetching).toEqual(["node.completed", "node.partial", "node.failed", "node.cancelled", "node.assigned"]);
});

it("what all teams have spent is fetched after a turn of any of them, and once a second at most", async () => {
  vi.useFakeTimers();
  const client = new QueryClient();
  const invalidated = vi.spyOn(client, "invalidateQueries");
  const invalidate = batchedInvalidation(client);
  const fetches = () => invalidated.mock.calls.filter(([filter]) => filter?.queryKey === queryKeys.dayCost).length;
  const counts: number[] = [];
  for (let n = 0; n < 8; n++) {
    invalidate([{ type: "turn.added", team_id: `team_${n}`, data: { thread_id: "thread_1", node_id: "node_1" } } as unknown as Event]);
    await vi.advanceTimersByTimeAsync(250);
    counts.push(fetches());
  }
  expect(counts).toEqual([1, 1, 1, 1, 2, 2, 2, 2]);
});
