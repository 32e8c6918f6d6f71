import { describe, expect, it } from "vitest";
import type { Event, Frame } from "@/live/log";
import { Live, PAGE } from "@/live/store";

const event = (seq: number, team = "t"): Event =>
  ({ team_id: team, seq, type: "message.sent", at: "2026-01-01T10:00:00Z", data: { message_id: `m${seq}`, kind: "message", sender: "agent_a", recipient: "human", text: `${seq}`, node_id: null } }) as Event;
const told = (seq: number): Frame => ({ op: "event", event: event(seq) }) as Frame;
const hello = (heads: Record<string, number>, epoch = "e1", build = "1"): Frame => ({ op: "hello", epoch, build, heads });

/** A server with so many events, and a page that hears of them. */
function world(count: number) {
  const server = Array.from({ length: count }, (_, i) => event(i + 1));
  const asked: [number, number][] = [];
  const news: number[] = [];
  const stale: (string | null)[] = [];
  const flushes: (() => void)[] = [];
  const live = new Live({
    events: async (_, after, limit) => {
      asked.push([after, limit]);
      return server.filter((one) => one.seq > after).slice(0, limit);
    },
    onEvents: (events) => news.push(...events.map((one) => one.seq)),
    onStale: (team) => stale.push(team),
    schedule: (flush) => flushes.push(flush),
  });
  const draw = () => flushes.splice(0).forEach((flush) => flush());
  const happen = (seq: number) => void (server[seq - 1] = event(seq));
  const seqs = () => live.store.getState().logs.t?.events.map((one) => one.seq) ?? [];
  return { live, draw, happen, asked, news, stale, seqs };
}
const upTo = (n: number, from = 1) => Array.from({ length: n - from + 1 }, (_, i) => from + i);

describe("the live store", () => {
  it("loads the newest page when somebody looks, and older ones on demand", async () => {
    const { live, draw, asked, seqs } = world(1200);
    live.receive(hello({ t: 1200 }));
    draw();
    await live.look("t", "agent_a");
    expect(seqs()).toEqual(upTo(1200, 701));
    await live.older("t");
    await live.older("t");
    await live.older("t");
    expect(seqs()).toEqual(upTo(1200));
    expect(asked).toEqual([[700, PAGE], [200, PAGE], [0, 200]]);
  });

  it("takes a batch together and nothing twice", async () => {
    const { live, draw, happen, news, seqs } = world(3);
    live.receive(hello({ t: 3 }));
    draw();
    await live.look("t", null);
    for (const seq of [4, 5, 5, 4, 6]) {
      happen(seq);
      live.receive(told(seq));
    }
    draw();
    expect([news, seqs()]).toEqual([[4, 5, 6], upTo(6)]);
  });

  it("fills a gap by asking", async () => {
    const { live, draw, happen, seqs } = world(3);
    live.receive(hello({ t: 3 }));
    draw();
    await live.look("t", null);
    for (const seq of upTo(9, 4)) happen(seq);
    live.receive(told(9));
    draw();
    await new Promise((resolve) => setTimeout(resolve));
    expect(seqs()).toEqual(upTo(9));
  });

  it("loses nothing that is told while a page is on its way", async () => {
    const { live, draw, happen, seqs } = world(3);
    live.receive(hello({ t: 3 }));
    draw();
    const looking = live.look("t", null);
    happen(4);
    live.receive(told(4));
    draw();
    await looking;
    expect(seqs()).toEqual(upTo(4));
  });

  it("comes again with what it has, and drops everything for another database", async () => {
    const { live, draw, stale, seqs } = world(3);
    live.receive(hello({ t: 3 }));
    draw();
    await live.look("t", null);
    live.receive(hello({ t: 5, u: 2 }));
    draw();
    expect(live.store.getState().cursors).toEqual({ t: 3, u: 2 });
    expect([seqs().length, stale]).toEqual([3, [null]]);
    live.receive(hello({ t: 1 }, "e2"));
    draw();
    expect(live.store.getState()).toMatchObject({ cursors: { t: 1 }, logs: {}, epoch: "e2" });
  });

  it("drops everything when the server is behind it", async () => {
    const { live, draw, seqs } = world(3);
    live.receive(hello({ t: 3 }));
    draw();
    await live.look("t", null);
    live.receive(hello({ t: 2 }));
    draw();
    expect([seqs(), live.store.getState().cursors]).toEqual([[], { t: 2 }]);
  });

  it("loads one team anew when it missed too much of it", async () => {
    const { live, draw, stale, seqs } = world(3);
    live.receive(hello({ t: 3 }));
    draw();
    await live.look("t", null);
    live.receive({ op: "resync", team_id: "t", head: 9000 });
    draw();
    expect([seqs(), live.store.getState().cursors, stale]).toEqual([[], { t: 9000 }, ["t"]]);
  });

  it("writes replies as they come, and ends them with their turn", () => {
    const { live, draw } = world(0);
    const about = { team_id: "t", agent_id: "a", node_id: "n", thread_id: "th", lane: "reply" as const };
    live.receive(hello({ t: 0 }));
    live.receive({ op: "draft", ...about, text: "Hello wo" });
    live.receive({ op: "delta", ...about, offset: 6, text: "world" });
    draw();
    expect(live.store.getState().drafts.th?.text).toBe("Hello world");
    live.receive({ op: "event", event: { team_id: "t", seq: 1, type: "turn.added", at: "2026-01-01T10:00:00Z", data: { node_id: "n" } } } as unknown as Frame);
    draw();
    expect(live.store.getState().drafts).toEqual({});
  });

  it("notices that the server is of another version", () => {
    const { live, draw } = world(0);
    live.receive(hello({}));
    draw();
    expect(live.store.getState().isOutdated).toBe(false);
    live.receive(hello({}, "e1", "2"));
    draw();
    expect(live.store.getState().isOutdated).toBe(true);
  });
});
