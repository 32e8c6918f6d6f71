import { describe, expect, it } from "vitest";
import type { Event, Frame } from "@/live/log";
import { LiveStore, EVENTS_PER_PAGE } from "@/live/store";

const event = (seq: number, team = "t"): Event =>
  ({ team_id: team, seq, type: "message.sent", at: "2026-01-01T10:00:00Z", data: { message_id: `m${seq}`, kind: "message", sender: "agent_a", recipient: "human", text: `${seq}`, node_id: null } }) as Event;
const eventFrame = (seq: number): Frame => ({ op: "event", event: event(seq) }) as Frame;
const hello = (heads: Record<string, number>, epoch = "e1", build = "1"): Frame => ({ op: "hello", epoch, build, heads });

/** Return a store, and a fake server with `count` events. */
function openStore(count: number) {
  const server = Array.from({ length: count }, (_, i) => event(i + 1));
  const requests: [number, number][] = [];
  const received: number[] = [];
  const reloads: (string | null)[] = [];
  const flushes: (() => void)[] = [];
  const live = new LiveStore({
    fetchEvents: async (_, after, limit) => {
      requests.push([after, limit]);
      return server.filter((one) => one.seq > after).slice(0, limit);
    },
    onEvents: (events) => received.push(...events.map((one) => one.seq)),
    onReload: (team) => reloads.push(team),
    scheduleFlush: (flush) => flushes.push(flush),
  });
  const flushAll = () => flushes.splice(0).forEach((flush) => flush());
  const record = (seq: number) => void (server[seq - 1] = event(seq));
  const seqs = () => live.store.getState().logs.t?.events.map((one) => one.seq) ?? [];
  return { live, flushAll, record, requests, received, reloads, seqs };
}
const range = (n: number, from = 1) => Array.from({ length: n - from + 1 }, (_, i) => from + i);

describe("the live store", () => {
  it("loads the newest page first, and older ones on demand", async () => {
    const { live, flushAll, requests, seqs } = openStore(1200);
    live.receive(hello({ t: 1200 }));
    flushAll();
    await live.loadNewest("t", "agent_a");
    expect(seqs()).toEqual(range(1200, 701));
    await live.loadOlder("t");
    await live.loadOlder("t");
    await live.loadOlder("t");
    expect(seqs()).toEqual(range(1200));
    expect(requests).toEqual([[700, EVENTS_PER_PAGE], [200, EVENTS_PER_PAGE], [0, 200]]);
  });

  it("applies a batch once, without duplicates", async () => {
    const { live, flushAll, record, received, seqs } = openStore(3);
    live.receive(hello({ t: 3 }));
    flushAll();
    await live.loadNewest("t", null);
    for (const seq of [4, 5, 5, 4, 6]) {
      record(seq);
      live.receive(eventFrame(seq));
    }
    flushAll();
    expect([received, seqs()]).toEqual([[4, 5, 6], range(6)]);
  });

  it("fetches the events of a gap", async () => {
    const { live, flushAll, record, seqs } = openStore(3);
    live.receive(hello({ t: 3 }));
    flushAll();
    await live.loadNewest("t", null);
    for (const seq of range(9, 4)) record(seq);
    live.receive(eventFrame(9));
    flushAll();
    await new Promise((resolve) => setTimeout(resolve));
    expect(seqs()).toEqual(range(9));
  });

  it("loses no event that arrives while a page is loading", async () => {
    const { live, flushAll, record, seqs } = openStore(3);
    live.receive(hello({ t: 3 }));
    flushAll();
    const loading = live.loadNewest("t", null);
    record(4);
    live.receive(eventFrame(4));
    flushAll();
    await loading;
    expect(seqs()).toEqual(range(4));
  });

  it("keeps its cursors at a reconnect, and drops everything for another database", async () => {
    const { live, flushAll, reloads, seqs } = openStore(3);
    live.receive(hello({ t: 3 }));
    flushAll();
    await live.loadNewest("t", null);
    live.receive(hello({ t: 5, u: 2 }));
    flushAll();
    expect(live.store.getState().cursors).toEqual({ t: 3, u: 2 });
    expect([seqs().length, reloads]).toEqual([3, [null]]);
    live.receive(hello({ t: 1 }, "e2"));
    flushAll();
    expect(live.store.getState()).toMatchObject({ cursors: { t: 1 }, logs: {}, epoch: "e2" });
  });

  it("drops everything when the server is behind its cursor", async () => {
    const { live, flushAll, seqs } = openStore(3);
    live.receive(hello({ t: 3 }));
    flushAll();
    await live.loadNewest("t", null);
    live.receive(hello({ t: 2 }));
    flushAll();
    expect([seqs(), live.store.getState().cursors]).toEqual([[], { t: 2 }]);
  });

  it("drops the log of a team whose missed events are gone", async () => {
    const { live, flushAll, reloads, seqs } = openStore(3);
    live.receive(hello({ t: 3 }));
    flushAll();
    await live.loadNewest("t", null);
    live.receive({ op: "resync", team_id: "t", head: 9000 });
    flushAll();
    expect([seqs(), live.store.getState().cursors, reloads]).toEqual([[], { t: 9000 }, ["t"]]);
  });

  it("shows streamed replies until their turn is recorded", () => {
    const { live, flushAll } = openStore(0);
    const about = { team_id: "t", agent_id: "a", node_id: "n", thread_id: "th", lane: "reply" as const };
    live.receive(hello({ t: 0 }));
    live.receive({ op: "draft", ...about, text: "Hello wo" });
    live.receive({ op: "delta", ...about, offset: 6, text: "world" });
    flushAll();
    expect(live.store.getState().drafts.th?.text).toBe("Hello world");
    live.receive({ op: "event", event: { team_id: "t", seq: 1, type: "turn.added", at: "2026-01-01T10:00:00Z", data: { node_id: "n" } } } as unknown as Frame);
    flushAll();
    expect(live.store.getState().drafts).toEqual({});
  });

  it("notices that the server has another version", () => {
    const { live, flushAll } = openStore(0);
    live.receive(hello({}));
    flushAll();
    expect(live.store.getState().isOutdated).toBe(false);
    live.receive(hello({}, "e1", "2"));
    flushAll();
    expect(live.store.getState().isOutdated).toBe(true);
  });
});
