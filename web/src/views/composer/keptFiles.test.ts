import { beforeEach, expect, it, vi } from "vitest";
import type { Attachment } from "@/views/composer/attachments";
import { FakeDatabase } from "@/live/fakeDatabase";

const note: Attachment = { name: "note.txt", media_type: "text/plain", data: btoa("note"), bytes: 4 };
const plan: Attachment = { name: "plan.txt", media_type: "text/plain", data: btoa("plan"), bytes: 4 };

/** Open the page in a tab: it has its own state, and shares what the browser keeps. */
async function openTab() {
  vi.resetModules();
  const { restoreFiles, useComposer } = await import("@/views/composer/composerState");
  void restoreFiles("ada"); // when the page is drawn
  await restoreFiles("ada"); // when a message is sent
  return { names: () => useComposer.getState().files["ada"]?.map(({ name }) => name) ?? [], attach: (...files: Attachment[]) => useComposer.getState().setFiles("ada", [...(useComposer.getState().files["ada"] ?? []), ...files]), send: () => useComposer.getState().clear("ada", { text: "", files: useComposer.getState().files["ada"] ?? [] }) };
}
const afterReload = async () => (await openTab()).names();

beforeEach(() => {
  vi.stubGlobal("indexedDB", new FakeDatabase());
  vi.stubGlobal("IDBKeyRange", { bound: (from: string, to: string) => [from, to] });
});

it("a message without files from another tab leaves the files that are kept", async () => {
  const [one, other] = [await openTab(), await openTab()];
  one.attach(note, plan);
  await vi.waitFor(async () => expect(await afterReload()).toEqual(["note.txt", "plan.txt"]));
  other.send();
  expect(await afterReload()).toEqual(["note.txt", "plan.txt"]);
});

it("files that two tabs attach to the same message are all kept", async () => {
  const [one, other] = [await openTab(), await openTab()];
  one.attach(note);
  other.attach(plan);
  await vi.waitFor(async () => expect((await afterReload()).sort()).toEqual(["note.txt", "plan.txt"]));
});

it("a file that one tab has sent leaves the others; what they attached themselves stays", async () => {
  const one = await openTab();
  one.attach(note);
  await vi.waitFor(async () => expect(await afterReload()).toEqual(["note.txt"]));
  const later = await openTab();
  later.attach(plan);
  one.send();
  await vi.waitFor(() => expect(later.names()).toEqual(["plan.txt"]));
  await vi.waitFor(async () => expect(await afterReload()).toEqual(["plan.txt"]));
});
