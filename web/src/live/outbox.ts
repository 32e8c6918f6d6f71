/**
 * Outbox: messages that the server has not acknowledged, kept in IndexedDB.
 *
 * They survive a reload, a crash of the tab and a server that is away. Each has a client id, and the server accepts an id
 * once, so a message that is sent again arrives once.
 */
import { keptStore } from "@/live/kept";
import type { UnsentMessage } from "@/live/store";

const { run } = keptStore("agiraph", "outbox", "clientId");

/** How long a message waits for the browser to store it. Some browsers never answer. */
const STORE_MS = 2_000;

/** Keep a message, or replace the kept one with the same client id. Return false if the browser refuses (it has no room, or is a private window), or takes so long that it may store the message later. */
export function keepUnsent(unsent: UnsentMessage): Promise<boolean> {
  return new Promise((resolve) => {
    setTimeout(() => resolve(false), STORE_MS);
    void run("readwrite", (store) => store.put(unsent)).then((done) => resolve(done !== undefined));
  });
}

/** Forget a message: the server has it, or the person discarded it. */
export const forgetUnsent = async (clientId: string): Promise<void> => void (await run("readwrite", (store) => store.delete(clientId)));

/** Return the kept messages, oldest first. */
export async function keptUnsent(): Promise<UnsentMessage[]> {
  const kept = (await run("readonly", (store) => store.getAll() as IDBRequest<UnsentMessage[]>))?.result ?? [];
  return kept.sort((one, other) => one.at.localeCompare(other.at));
}
