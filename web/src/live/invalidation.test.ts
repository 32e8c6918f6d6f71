import { expect, it } from "vitest";
import { queryKeys } from "@/api/queries";
import { keysToInvalidate } from "@/live/invalidation";
import type { Event } from "@/live/log";

it("the inbox is fetched when a task ends or goes back into the queue: whether somebody waits for an answer has changed", () => {
  const types = ["node.started", "node.completed", "node.partial", "node.failed", "node.cancelled", "node.assigned", "node.output"];
  const fetching = types.filter((type) => keysToInvalidate({ type, team_id: "team_1", data: { node_id: "node_1" } } as unknown as Event).includes(queryKeys.inbox));
  expect(fetching).toEqual(["node.completed", "node.partial", "node.failed", "node.cancelled", "node.assigned"]);
});
