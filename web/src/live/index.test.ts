import { expect, it, vi } from "vitest";
import { FakeDatabase } from "@/live/fakeDatabase";

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
