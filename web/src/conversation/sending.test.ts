import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Attachment } from "@/conversation/attachments";
import "@/conversation/sending"; // compiled before the first test begins
import { FakeDatabase } from "@/live/fakeDatabase";

const note: Attachment = { name: "note.txt", media_type: "text/plain", data: btoa("note"), bytes: 4 };
const OUTBOX = "agiraph";
const FILES = "agiraph-attachments";
let browser: FakeDatabase;
/** The messages that the server got, and its status for the next ones. */
let received: { message: string; client_id: string }[];
let status: number;

afterEach(() => void vi.useRealTimers());
beforeEach(() => {
  const stored = new Map<string, string>();
  vi.stubGlobal("localStorage", { getItem: (key: string) => stored.get(key) ?? null, setItem: (key: string, value: string) => stored.set(key, value), removeItem: (key: string) => stored.delete(key) });
  vi.stubGlobal("indexedDB", (browser = new FakeDatabase()));
  vi.stubGlobal("IDBKeyRange", { bound: (from: string, to: string) => [from, to] });
  vi.stubGlobal("location", { origin: "http://127.0.0.1" });
  [received, status] = [[], 202];
  vi.stubGlobal("fetch", async (request: Request) => {
    received.push((await request.json()) as (typeof received)[number]);
    return Response.json(status < 300 ? { id: "msg_1" } : { title: "Refused", detail: "The server is full.", status }, { status });
  });
});

/** Open the page: what the browser stored is there, and what was in memory is not. */
async function openPage() {
  vi.resetModules();
  const { currentFiles, currentText, restoreFiles, useComposer } = await import("@/conversation/composerState");
  const { editUnsent, sendWritten } = await import("@/conversation/sending");
  const { discardUnsent, live, putBackUnsent, resendMessage } = await import("@/live");
  await restoreFiles("ada");
  return {
    field: () => ({ text: currentText("ada"), files: currentFiles("ada").map(({ name }) => name) }),
    write: async (text: string, files: Attachment[] = []) => {
      useComposer.getState().setText("ada", text);
      await useComposer.getState().setFiles("ada", files);
    },
    type: (more: string) => useComposer.getState().setText("ada", currentText("ada") + more),
    send: () => sendWritten("ada", [], "send"),
    unsent: () => live.store.getState().unsent.map(({ text, state }) => `${text} ${state}`),
    edit: () => editUnsent(live.store.getState().unsent[0]!),
    discard: () => discardUnsent(live.store.getState().unsent[0]!),
    retry: () => resendMessage(live.store.getState().unsent[0]!),
    live,
    putBackUnsent,
  };
}
const outbox = () => [...(browser.rows.get(OUTBOX)?.values() ?? [])].map(({ text }) => text);
const EMPTY = { text: "", files: [] };

it("words and files are still there if the tab crashes before the outbox has stored them", async () => {
  const page = await openPage();
  await page.write("Read this.", [note]);
  browser.fails.set(OUTBOX, "hangs");
  void page.send();
  await vi.waitFor(() => expect(browser.rows.has(OUTBOX)).toBe(true));
  expect((await openPage()).field()).toEqual({ text: "Read this.", files: ["note.txt"] });
  expect(received).toEqual([]);
});

it("words and files leave the field once the outbox has them, and what was typed meanwhile stays", async () => {
  vi.stubGlobal("fetch", () => new Promise(() => {}));
  const page = await openPage();
  await page.write("Read this.", [note]);
  browser.onChange = (database) => database === OUTBOX && page.type(" And");
  await page.send();
  expect([page.field(), outbox()]).toEqual([{ text: "And", files: [] }, ["Read this."]]);
});

it("two presses of Enter send a message once", async () => {
  const page = await openPage();
  await page.write("Hello");
  await Promise.all([page.send(), page.send()]);
  await vi.waitFor(() => expect(received.map(({ message }) => message)).toEqual(["Hello"]));
  expect(page.field()).toEqual(EMPTY);
});

it("a message that the browser does not store stays in the field until the server has it", async () => {
  const page = await openPage();
  browser.fails.set(OUTBOX, "refuses");
  await page.write("Read this.", [note]);
  status = 503;
  expect(await page.send()).toBe("The server is full. Your message is still in the text field: this browser did not store it to send it later.");
  expect(page.field()).toEqual({ text: "Read this.", files: ["note.txt"] });
  status = 202;
  expect([await page.send(), page.field()]).toEqual([null, EMPTY]);
  // The server takes a client id once, if the first request arrived after all.
  expect(received.map(({ client_id }) => client_id)).toEqual([received[0]!.client_id, received[0]!.client_id]);
});

it("a message is sent also if the browser never says whether it has stored it", async () => {
  const page = await openPage();
  await page.write("Read this.");
  browser.fails.set(OUTBOX, "hangs");
  vi.useFakeTimers();
  const sent = page.send();
  await vi.advanceTimersByTimeAsync(2_000);
  expect([await sent, received.map(({ message }) => message), page.field()]).toEqual([null, ["Read this."], EMPTY]);
});

it("a message that the browser does not store waits for the message before it", async () => {
  const page = await openPage();
  let answer = () => {};
  const take = fetch;
  vi.stubGlobal("fetch", async (request: Request) => {
    const taken = await take(request);
    if (received.length === 1) await new Promise<void>((resolve) => (answer = resolve));
    return taken;
  });
  await page.write("One");
  await page.send();
  await vi.waitFor(() => expect(received.length).toBe(1));
  browser.fails.set(OUTBOX, "refuses");
  browser.onChange = vi.fn();
  await page.write("Two");
  const second = page.send();
  await vi.waitFor(() => expect(browser.onChange).toHaveBeenCalled());
  expect(received.map(({ message }) => message)).toEqual(["One"]);
  answer();
  expect([await second, received.map(({ message }) => message)]).toEqual([null, ["One", "Two"]]);
});

it("a message that is edited leaves its conversation at once, and the outbox once its files are stored elsewhere", async () => {
  const page = await openPage();
  status = 400;
  await page.write("Read this.", [note]);
  await page.send();
  await vi.waitFor(() => expect(page.unsent()).toEqual(["Read this. refused"]));
  let seen: unknown;
  browser.onChange = (database) => database === FILES && (seen = [page.field(), page.unsent(), outbox()]);
  await page.edit();
  const edited = { text: "Read this.", files: ["note.txt"] };
  expect(seen).toEqual([edited, [], ["Read this."]]);
  expect([page.field(), page.unsent(), outbox()]).toEqual([edited, [], []]);
});

it("a queued message that is edited comes before what stands in the field, and is not sent", async () => {
  const page = await openPage();
  status = 503;
  await page.write("Read this.", [note]);
  await page.send();
  await vi.waitFor(() => expect(page.unsent()).toEqual(["Read this. queued"]));
  await page.write("And this.", [{ ...note, name: "later.txt" }]);
  expect(await page.edit()).toBe(true);
  expect([page.field(), page.unsent(), outbox()]).toEqual([{ text: "Read this.\n\nAnd this.", files: ["note.txt", "later.txt"] }, [], []]);
  expect(received.length).toBe(1);
});

it("a queued message that is discarded is forgotten by the outbox and by other tabs, and can be put back", async () => {
  const page = await openPage();
  status = 503;
  await page.write("Read this.", [note]);
  await page.send();
  await vi.waitFor(() => expect(page.unsent()).toEqual(["Read this. queued"]));
  const unsent = page.live.store.getState().unsent[0]!;
  const other = await openPage();
  other.live.putUnsent(unsent); // as an earlier page has left it
  expect(await page.discard()).toBe(true);
  expect([page.field(), page.unsent(), outbox()]).toEqual([EMPTY, [], []]);
  await vi.waitFor(() => expect(other.unsent()).toEqual([]));
  status = 202;
  await page.putBackUnsent(unsent);
  await vi.waitFor(() => expect([received.length, page.unsent(), outbox()]).toEqual([2, [], []]));
});

it("a message that is on its way to the server is not discarded", async () => {
  const page = await openPage();
  status = 503;
  await page.write("Read this.");
  await page.send();
  await vi.waitFor(() => expect(page.unsent()).toEqual(["Read this. queued"]));
  page.retry();
  expect([await page.discard(), page.unsent(), outbox()]).toEqual([false, ["Read this. sending"], ["Read this."]]);
});

it("a message that another tab takes back while it is sent is not kept when the server refuses it", async () => {
  const page = await openPage();
  let answer = () => {};
  const take = fetch;
  status = 503;
  vi.stubGlobal("fetch", async (request: Request) => {
    const taken = await take(request);
    await new Promise<void>((resolve) => (answer = resolve));
    return taken;
  });
  await page.write("Read this.");
  await page.send();
  const unsent = page.live.store.getState().unsent[0]!;
  const other = await openPage();
  other.live.putUnsent({ ...unsent, state: "queued" });
  await other.discard();
  await vi.waitFor(() => expect(page.unsent()).toEqual([]));
  await page.write("Two");
  await page.send();
  answer();
  // The messages to one agent are sent one after the other.
  await vi.waitFor(() => expect(received.length).toBe(2));
  answer();
  await vi.waitFor(() => expect(page.unsent()).toEqual(["Two queued"]));
  expect(outbox()).toEqual(["Two"]);
});
