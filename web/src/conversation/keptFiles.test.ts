import { beforeEach, expect, it, vi } from "vitest";
import type { Attachment } from "@/conversation/attachments";

const note: Attachment = { name: "note.txt", media_type: "text/plain", data: btoa("note"), bytes: 4 };
const plan: Attachment = { name: "plan.txt", media_type: "text/plain", data: btoa("plan"), bytes: 4 };

/** IndexedDB, as far as the page uses it: Node has none. */
function database(records: Map<string, { id: string }>): Partial<IDBFactory> {
  const store = {
    put: (one: { id: string }) => ({ result: records.set(one.id, structuredClone(one)) }),
    delete: (id: string) => ({ result: records.delete(id) }),
    getAll: ([from, to]: [string, string]) => ({ result: [...records.values()].filter(({ id }) => from <= id && id <= to).sort((a, b) => (a.id < b.id ? -1 : 1)).map((one) => structuredClone(one)) }),
  };
  const transaction = () => {
    const begun = { objectStore: () => store, oncomplete: () => {} };
    queueMicrotask(() => begun.oncomplete());
    return begun;
  };
  return {
    open: () => {
      const request = { result: { transaction }, onsuccess: () => {} };
      queueMicrotask(() => request.onsuccess());
      return request as unknown as IDBOpenDBRequest;
    },
  };
}

/** Open the page in a tab: it has its own state, and shares what the browser keeps. */
async function openTab() {
  vi.resetModules();
  const { restoreFiles, useComposer } = await import("@/conversation/composerState");
  void restoreFiles("ada"); // when the page is drawn
  await restoreFiles("ada"); // when a message is sent
  return { names: () => useComposer.getState().files["ada"]?.map(({ name }) => name) ?? [], attach: (...files: Attachment[]) => useComposer.getState().setFiles("ada", [...(useComposer.getState().files["ada"] ?? []), ...files]), send: () => useComposer.getState().clear("ada") };
}
const afterReload = async () => (await openTab()).names();

beforeEach(() => {
  vi.stubGlobal("indexedDB", database(new Map()));
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
