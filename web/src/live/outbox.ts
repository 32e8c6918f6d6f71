/**
 * Outbox: messages that the server has not acknowledged, kept in IndexedDB.
 *
 * They survive a reload, a crash of the tab and a server that is away. Each has a client id, and the server accepts an id
 * once, so a message that is sent again arrives once. Where the browser has no IndexedDB (some private windows), messages
 * last until the page is closed.
 */
import type { UnsentMessage } from "@/live/store";

const STORE = "outbox";
let opened: Promise<IDBDatabase | null> | undefined;

function database(): Promise<IDBDatabase | null> {
  opened ??= new Promise((resolve) => {
    try {
      const request = indexedDB.open("agiraph", 1);
      request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: "clientId" });
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => resolve(null);
    } catch {
      resolve(null);
    }
  });
  return opened;
}

/** Run one request on the store and wait until its change is on disk. Failures are not reported: the page still has the message. */
async function run<T>(mode: IDBTransactionMode, act: (store: IDBObjectStore) => IDBRequest<T>): Promise<T | undefined> {
  const db = await database();
  if (db === null) return undefined;
  return new Promise((resolve) => {
    try {
      const transaction = db.transaction(STORE, mode, { durability: "strict" });
      const request = act(transaction.objectStore(STORE));
      transaction.oncomplete = () => resolve(request.result);
      transaction.onerror = transaction.onabort = () => resolve(undefined);
    } catch {
      resolve(undefined);
    }
  });
}

/** Keep a message, or replace the kept one with the same client id. */
export const keepUnsent = async (unsent: UnsentMessage): Promise<void> => void (await run("readwrite", (store) => store.put(unsent)));

/** Forget a message: the server has it, or the person discarded it. */
export const forgetUnsent = async (clientId: string): Promise<void> => void (await run("readwrite", (store) => store.delete(clientId)));

/** Return the kept messages, oldest first. */
export async function keptUnsent(): Promise<UnsentMessage[]> {
  const kept = (await run("readonly", (store) => store.getAll() as IDBRequest<UnsentMessage[]>)) ?? [];
  return kept.sort((one, other) => one.at.localeCompare(other.at));
}
