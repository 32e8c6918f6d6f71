/**
 * Outbox: messages that the server has not acknowledged, kept in IndexedDB.
 *
 * They survive a reload, a crash of the tab and a server that is away. Each has a client id, and the server accepts an id
 * once, so a message that is sent again arrives once. Several tabs send the same messages. A message that the person took
 * back leaves a record without its words: no tab keeps or sends it again, and if the server has it after all, a page says so.
 */
import { keptStore } from "@/live/kept";
import type { UnsentMessage } from "@/live/store";

type KeptMessage = Omit<UnsentMessage, "state"> & { state: UnsentMessage["state"] | "taken-back" };

const { run } = keptStore("agiraph", "outbox", "clientId");

/** How long a message waits for the browser to store it. Some browsers never answer. */
const STORE_MS = 2_000;
/** How long a page remembers what was taken back. */
const REMEMBER_MS = 7 * 24 * 3_600_000;

/**
 * Replace a kept message by what `next` makes of it (null: forget it) in one transaction, so that no other tab changes it in
 * between. Resolve to what was kept before, or to undefined if the browser refuses (it has no room, or is a private window),
 * or takes so long that it may store the change later.
 */
function change(clientId: string, next: (kept: KeptMessage | undefined) => KeptMessage | null | undefined): Promise<{ result: KeptMessage | undefined } | undefined> {
  const changed = run("readwrite", (store) => {
    const found = store.get(clientId) as IDBRequest<KeptMessage | undefined>;
    found.onsuccess = () => {
      const after = next(found.result);
      if (after) store.put(after);
      else if (after === null) store.delete(clientId);
    };
    return found;
  });
  return Promise.race([changed, new Promise<undefined>((resolve) => setTimeout(resolve, STORE_MS))]);
}

const isTakenBack = (kept: KeptMessage | undefined): boolean => kept?.state === "taken-back";

/** Keep a message, or replace the kept one with the same client id, unless it was taken back. Return false if the browser does not store it. */
export const keepUnsent = async (unsent: UnsentMessage): Promise<boolean> => (await change(unsent.clientId, (kept) => (isTakenBack(kept) ? undefined : unsent))) !== undefined;

/** Forget a message: the server has it. */
export const forgetUnsent = async (clientId: string): Promise<void> => void (await change(clientId, (kept) => (isTakenBack(kept) ? undefined : null)));

/** Remember that a message was taken back, without its words. */
export const keepTakenBack = async (unsent: UnsentMessage): Promise<void> =>
  void (await change(unsent.clientId, () => ({ ...unsent, state: "taken-back", at: new Date().toISOString(), reason: "", text: "", attachments: [], mentions: [] })));

/** Keep a message that was taken back, as it was. */
export const keepPutBack = async (unsent: UnsentMessage): Promise<void> => void (await change(unsent.clientId, () => unsent));

/** Forget that a message was taken back. Return false if another tab has done so, or has put the message back. */
export async function forgetTakenBack(clientId: string): Promise<boolean> {
  const changed = await change(clientId, (kept) => (isTakenBack(kept) ? null : undefined));
  return changed === undefined || isTakenBack(changed.result);
}

/** Return the kept messages, oldest first, and the client ids of those that were taken back. */
export async function keptUnsent(): Promise<{ unsent: UnsentMessage[]; takenBack: string[] }> {
  const kept = (await run("readonly", (store) => store.getAll() as IDBRequest<KeptMessage[]>))?.result ?? [];
  const takenBack = kept.filter(isTakenBack);
  for (const one of takenBack) if (Date.now() - Date.parse(one.at) > REMEMBER_MS) void forgetTakenBack(one.clientId);
  const unsent = kept.filter((one): one is UnsentMessage => !isTakenBack(one)).sort((one, other) => one.at.localeCompare(other.at));
  return { unsent, takenBack: takenBack.map(({ clientId }) => clientId) };
}
