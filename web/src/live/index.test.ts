import { afterEach, expect, it, vi } from "vitest";
import { FakeDatabase } from "@/live/fakeDatabase";

afterEach(() => {
  vi.useRealTimers();
  vi.resetModules();
});

it("a message that the server could not take is sent again while the connection stays open", async () => {
  vi.stubGlobal("location", { origin: "http://127.0.0.1" });
  const statuses = [503, 503, 202];
  const sent: string[] = [];
  vi.stubGlobal("fetch", async (request: Request) => {
    sent.push(((await request.json()) as { client_id: string }).client_id);
    return Response.json({ id: "msg_1" }, { status: statuses[sent.length - 1] });
  });
  vi.stubGlobal("indexedDB", new FakeDatabase());
  const { live, sendMessage } = await import("@/live");
  vi.useFakeTimers();
  const states = () => live.store.getState().unsent.map((one) => one.state);
  live.setConnection("live", null);
  await sendMessage({ clientId: "one", agentId: "agent_a", text: "Hello", mode: "send", attachments: [] });
  await vi.advanceTimersByTimeAsync(1_999);
  expect([sent.length, states()]).toEqual([1, ["queued"]]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect([sent.length, states()]).toEqual([2, ["queued"]]);
  await vi.advanceTimersByTimeAsync(4_000);
  expect([sent.length, states()]).toEqual([3, []]);
  // The server takes a client id once.
  expect(sent).toEqual(["one", "one", "one"]);
});

it("a database that opens late is used: the messages of an earlier page are sent, and new ones are stored", async () => {
  vi.stubGlobal("location", { origin: "http://127.0.0.1" });
  vi.stubGlobal("document", { addEventListener: () => {} });
  vi.stubGlobal("addEventListener", () => {});
  vi.stubGlobal("WebSocket", class {});
  const sent: string[] = [];
  vi.stubGlobal("fetch", async (request: Request) => {
    sent.push(((await request.json()) as { client_id: string }).client_id);
    return Response.json({ id: sent.at(-1) }, { status: 202 });
  });
  const browser = new FakeDatabase();
  vi.stubGlobal("indexedDB", browser);
  const message = { agentId: "agent_a", text: "Hello", mode: "send", attachments: [] } as const;
  browser.rows.set("agiraph", new Map([["earlier", { ...message, clientId: "earlier", at: "2026-01-01", state: "queued", reason: "" }]]));
  let open = () => {};
  browser.opens = new Promise<void>((resolve) => (open = resolve));
  const { live, sendMessage, startLive } = await import("@/live");
  vi.useFakeTimers();
  startLive();
  live.setConnection("live", null);
  const first = sendMessage({ ...message, attachments: [], clientId: "at once" });
  await vi.advanceTimersByTimeAsync(2_100);
  await first;
  expect(sent).toEqual(["at once"]);
  open();
  await vi.advanceTimersByTimeAsync(0);
  expect(sent).toEqual(["at once", "earlier"]);
  let stored: string[] = [];
  browser.onChange = () => (stored = [...browser.rows.get("agiraph")!.keys()]);
  await sendMessage({ ...message, attachments: [], clientId: "stored" });
  await vi.advanceTimersByTimeAsync(0);
  expect([sent, stored, live.store.getState().unsent, browser.rows.get("agiraph")]).toEqual([["at once", "earlier", "stored"], ["stored"], [], new Map()]);
});
