import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Message } from "@/api/client";
import type { Attachment } from "@/views/composer/attachments";
import "@/views/composer/sending"; // compiled before the first test begins
import { FakeDatabase } from "@/live/fakeDatabase";

const note: Attachment = { name: "note.txt", media_type: "text/plain", data: btoa("note"), bytes: 4 };
const OUTBOX = "agiraph";
const FILES = "agiraph-attachments";
const Channel = BroadcastChannel;
let browser: FakeDatabase;
/** The messages that the server got, and its status for the next ones. */
let received: { message: string; client_id: string; edits: string | null; stop_work: boolean }[];
let status: number;

/** To whom the messages of this test go. Nothing closes the pages of earlier tests, which may still send theirs. */
let agent: string;
let tests = 0;

afterEach(() => void vi.useRealTimers());
beforeEach(() => {
  const stored = new Map<string, string>();
  vi.stubGlobal("localStorage", { getItem: (key: string) => stored.get(key) ?? null, setItem: (key: string, value: string) => stored.set(key, value), removeItem: (key: string) => stored.delete(key) });
  vi.stubGlobal("indexedDB", (browser = new FakeDatabase()));
  vi.stubGlobal("IDBKeyRange", { bound: (from: string, to: string) => [from, to] });
  vi.stubGlobal("location", { origin: "http://127.0.0.1" });
  vi.stubGlobal("document", { addEventListener: () => {} });
  vi.stubGlobal("addEventListener", () => {});
  vi.stubGlobal("WebSocket", class {});
  vi.stubGlobal("BroadcastChannel", Channel);
  [received, status, agent] = [[], 202, `agent_${++tests}`];
  vi.stubGlobal("fetch", async (request: Request) => {
    const message = (await request.json()) as (typeof received)[number];
    if (request.url.includes(`/agents/${agent}/`)) received.push(message);
    return Response.json(status < 300 ? { id: "msg_1" } : { title: "Refused", detail: "The server is full.", status }, { status });
  });
});

/** Open the page: what the browser stored is there, and what was in memory is not. */
async function openPage() {
  vi.resetModules();
  const { currentFiles, currentText, restoreFiles, useComposer } = await import("@/views/composer/composerState");
  const { editUnsent, sendWritten } = await import("@/views/composer/sending");
  const { currentEditing, endEditing, setStopsWork, startEditing } = await import("@/views/composer/editing");
  const { discardUnsent, hasArrivedAfterAll, live, putBackUnsent, resendMessage, startLive } = await import("@/live");
  await restoreFiles(agent);
  return {
    field: () => ({ text: currentText(agent), files: currentFiles(agent).map(({ name }) => name) }),
    write: async (text: string, files: Attachment[] = []) => {
      useComposer.getState().setText(agent, text);
      await useComposer.getState().setFiles(agent, files);
    },
    type: (more: string) => useComposer.getState().setText(agent, currentText(agent) + more),
    send: (mode: "send" | "nudge" = "send") => sendWritten(agent, [], mode),
    begin: (id: string, text: string) => startEditing(agent, { id, text, kind: "message", attachments: [] } as unknown as Message),
    stopWork: () => setStopsWork(agent, true),
    leave: () => endEditing(agent),
    editing: () => currentEditing(agent)?.edits ?? null,
    isNudge: () => useComposer.getState().nudges[agent],
    hasArrived: (clientId: string) => hasArrivedAfterAll([{ client_id: null }, { client_id: clientId }]),
    startLive,
    unsent: () => live.store.getState().unsent.map(({ text, state }) => `${text} ${state}`),
    edit: (unsent = live.store.getState().unsent[0]!) => editUnsent(unsent),
    discard: () => discardUnsent(live.store.getState().unsent[0]!),
    retry: () => resendMessage(live.store.getState().unsent[0]!),
    live,
    putBackUnsent,
  };
}
type Page = Awaited<ReturnType<typeof openPage>>;
/** Connect a page with the server: it sends what the outbox holds for it. */
async function start(page: Page) {
  vi.useFakeTimers(); // the files of all screens are fetched later
  page.live.setConnection("live", null);
  page.startLive();
  await vi.advanceTimersByTimeAsync(0);
  vi.useRealTimers();
}
async function reload() {
  const page = await openPage();
  await start(page);
  return page;
}
/** Open a page with a message that waits for the server. */
async function openQueued(mode: "send" | "nudge" = "send") {
  const page = await openPage();
  status = 503;
  await page.write("Read this.", [note]);
  await page.send(mode);
  await vi.waitFor(() => expect(page.unsent()).toEqual(["Read this. queued"]));
  status = 202;
  return { ...page, message: page.live.store.getState().unsent[0]! };
}
/** The words in the outbox. A message that was taken back has none there. */
const outbox = () => [...(browser.rows.get(OUTBOX)?.values() ?? [])].map(({ text }) => text).filter(Boolean);
const EMPTY = { text: "", files: [] };

it("an edited message names the one before, and the draft that comes back is not sent by a second press", async () => {
  const page = await openPage();
  await page.write("A draft");
  page.begin("msg_0", "Helo");
  page.type(" there");
  page.stopWork();
  await Promise.all([page.send(), page.send()]);
  await vi.waitFor(() => expect(received).toHaveLength(1));
  expect(received[0]).toMatchObject({ message: "Helo there", edits: "msg_0", stop_work: true });
  expect([page.field().text, page.editing()]).toEqual(["A draft", null]);
});

it("editing survives a reload, and what is left as it is brings the draft back", async () => {
  const page = await openPage();
  await page.write("A draft");
  page.begin("msg_0", "Helo");
  page.begin("msg_0", "Helo");
  const next = await openPage();
  expect([next.field().text, next.editing()]).toEqual(["Helo", "msg_0"]);
  next.leave();
  expect([next.field().text, next.editing()]).toEqual(["A draft", null]);
});

it("an edited message that waits for the server is edited again as what it was", async () => {
  const page = await openPage();
  status = 503;
  page.begin("msg_0", "Helo");
  await page.send();
  await vi.waitFor(() => expect(page.unsent()).toEqual(["Helo queued"]));
  await page.write("A draft");
  await page.edit();
  expect([page.field().text, page.editing()]).toEqual(["Helo", "msg_0"]);
  status = 202;
  await page.send();
  await vi.waitFor(() => expect(received.at(-1)).toMatchObject({ message: "Helo", edits: "msg_0" }));
  expect(page.field().text).toBe("A draft");
});

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
  let answer: (() => void) | undefined;
  const take = fetch;
  vi.stubGlobal("fetch", async (request: Request) => {
    const taken = await take(request);
    if (received.length === 1) await new Promise<void>((resolve) => (answer = resolve));
    return taken;
  });
  await page.write("One");
  await page.send();
  await vi.waitFor(() => expect(answer).toBeDefined());
  browser.fails.set(OUTBOX, "refuses");
  browser.onChange = vi.fn();
  await page.write("Two");
  const second = page.send();
  await vi.waitFor(() => expect(browser.onChange).toHaveBeenCalled());
  expect(received.map(({ message }) => message)).toEqual(["One"]);
  answer?.();
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
  await vi.waitFor(() => expect([page.field(), page.unsent(), outbox()]).toEqual([edited, [], []]));
});

it("a queued message that is edited comes before what stands in the field, and is not sent", async () => {
  const page = await openQueued();
  await page.write("And this.", [{ ...note, name: "later.txt" }]);
  expect(await Promise.all([page.edit(), page.edit(page.message)])).toEqual(["taken back", "on its way"]);
  const edited = { text: "Read this.\n\nAnd this.", files: ["note.txt", "later.txt"] };
  await vi.waitFor(() => expect([page.field(), page.unsent(), outbox()]).toEqual([edited, [], []]));
  const next = await reload();
  expect([next.field().text, next.unsent(), received.length]).toEqual([edited.text, [], 1]);
});

it("a queued message that is discarded is forgotten by the outbox and by other tabs, and can be put back", async () => {
  const page = await openQueued();
  const other = await openPage();
  other.live.putUnsent(page.message); // as an earlier page has left it
  expect(await page.discard()).toBe("taken back");
  await vi.waitFor(() => expect([page.field(), page.unsent(), outbox()]).toEqual([EMPTY, [], []]));
  await vi.waitFor(() => expect(other.unsent()).toEqual([]));
  expect([(await reload()).unsent(), received.length]).toEqual([[], 1]);
  await page.putBackUnsent(page.message);
  await vi.waitFor(() => expect([received.length, page.unsent(), browser.rows.get(OUTBOX)]).toEqual([2, [], new Map()]));
  expect(await page.hasArrived(page.message.clientId)).toBe(false);
});

it("a message that is on its way to the server is not discarded", async () => {
  const page = await openPage();
  status = 503;
  await page.write("Read this.");
  await page.send();
  await vi.waitFor(() => expect(page.unsent()).toEqual(["Read this. queued"]));
  page.retry();
  expect([await page.discard(), page.unsent(), outbox()]).toEqual(["on its way", ["Read this. sending"], ["Read this."]]);
});

it("a message that another tab takes back while it is sent is not kept when the server refuses it", async () => {
  const page = await openPage();
  const waiting: (() => void)[] = [];
  const take = fetch;
  status = 503;
  vi.stubGlobal("fetch", async (request: Request) => {
    const taken = await take(request);
    await new Promise<void>((resolve) => waiting.push(resolve));
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
  await vi.waitFor(() => {
    for (const answer of waiting.splice(0)) answer();
    expect(page.unsent()).toEqual(["Two queued"]);
  });
  expect(outbox()).toEqual(["Two"]);
});

it("a message that was put back into the field before the tab crashed is not sent by the next page", async () => {
  const page = await openQueued();
  browser.fails.set(FILES, "hangs");
  void page.edit();
  await vi.waitFor(() => expect(page.field().text).toBe("Read this."));
  const next = await reload();
  expect([next.field().text, next.unsent(), received.length]).toEqual(["Read this.", ["Read this. refused"], 1]);
});

it.each(["hangs", "refuses"] as const)("a message leaves its conversation also if the outbox %s to store that", async (fails) => {
  const page = await openQueued();
  browser.fails.set(OUTBOX, fails);
  vi.useFakeTimers();
  const discarded = page.discard();
  await vi.advanceTimersByTimeAsync(2_000);
  expect([await discarded, page.unsent()]).toEqual(["not stored", []]);
});

it.each([503, 202])("a message that was taken back while another tab sends it stays taken back, also if that tab has not heard of it (%i)", async (answered) => {
  vi.stubGlobal("BroadcastChannel", undefined);
  const page = await openQueued();
  const other = await openPage();
  let answer = () => {};
  const mayAnswer = new Promise<void>((resolve) => (answer = resolve));
  vi.stubGlobal("fetch", async () => {
    await mayAnswer;
    return Response.json({ id: "msg_1", title: "Refused", detail: "Later.", status: answered }, { status: answered });
  });
  other.live.putUnsent(page.message);
  other.retry();
  await vi.waitFor(() => expect(other.unsent()).toEqual(["Read this. sending"]));
  await page.discard();
  await vi.waitFor(() => expect(outbox()).toEqual([]));
  answer();
  await vi.waitFor(() => expect(other.unsent()).toEqual(answered === 503 ? ["Read this. queued"] : []));
  expect([(await reload()).unsent(), outbox()]).toEqual([[], []]);
  // The page that took it back says that it has arrived.
  expect(await page.hasArrived(page.message.clientId)).toBe(true);
});

it("a tab that has read the outbox before a message was taken back does not send it", async () => {
  const page = await openQueued();
  const other = await openPage();
  let read = () => {};
  browser.reads = new Promise<void>((resolve) => (read = resolve));
  await start(other);
  other.live.putUnsent(page.message);
  await page.discard();
  await vi.waitFor(() => expect(other.unsent()).toEqual([])); // it has heard of it
  read();
  await browser.reads;
  await other.hasArrived("another"); // after the outbox was read
  expect([other.unsent(), received.length]).toEqual([[], 1]);
});

it("a message that was taken back and had arrived before is reported once, also by a later page", async () => {
  const page = await openQueued();
  await page.discard();
  await vi.waitFor(() => expect(outbox()).toEqual([]));
  const [next, another] = [await reload(), await reload()];
  const { clientId } = page.message;
  expect([await next.hasArrived("another"), await next.hasArrived(clientId), await next.hasArrived(clientId)]).toEqual([false, true, false]);
  expect([await another.hasArrived(clientId), await page.hasArrived(clientId)]).toEqual([false, false]);
  expect(browser.rows.get(OUTBOX)).toEqual(new Map());
});

it("a message that is edited while another one is sent comes into the field after that one has left it", async () => {
  const page = await openQueued();
  await page.write("Two");
  vi.useFakeTimers();
  browser.fails.set(OUTBOX, "hangs");
  const sent = page.send();
  await vi.advanceTimersByTimeAsync(0);
  browser.fails.clear();
  const edited = page.edit();
  await vi.advanceTimersByTimeAsync(2_000);
  expect(await Promise.all([sent, edited])).toEqual([null, "taken back"]);
  expect(page.field()).toEqual({ text: "Read this.", files: ["note.txt"] });
});

it.each(["send", "nudge"] as const)("a message that is edited stays a %s", async (mode) => {
  const page = await openQueued(mode);
  await page.edit();
  expect(page.isNudge()).toBe(mode === "nudge");
});
