/** Kept: a store of IndexedDB. What is put there survives a reload and a crash of the tab. Some private windows have no IndexedDB: there nothing is kept. */

interface KeptStore {
  /**
   * Run one request and wait until its change is on disk. Return undefined if the browser refuses it.
   *
   * Some browsers take long, and some never answer. The requests run in the order of the calls, however late.
   */
  run: <T>(mode: IDBTransactionMode, act: (store: IDBObjectStore) => IDBRequest<T>) => Promise<{ result: T } | undefined>;
}

/** Return a store of its own database: to add a store to a database, every other tab would have to close it first. */
export function keptStore(database: string, name: string, keyPath: string): KeptStore {
  let opened: Promise<IDBDatabase | null> | undefined;
  const open = (): Promise<IDBDatabase | null> =>
    (opened ??= new Promise((resolve) => {
      try {
        const request = indexedDB.open(database, 1);
        request.onupgradeneeded = () => request.result.createObjectStore(name, { keyPath });
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => resolve(null);
      } catch {
        resolve(null);
      }
    }));
  return {
    run: async (mode, act) => {
      const db = await open();
      if (db === null) return undefined;
      return new Promise((resolve) => {
        try {
          const transaction = db.transaction(name, mode, { durability: "strict" });
          const request = act(transaction.objectStore(name));
          transaction.oncomplete = () => resolve({ result: request.result });
          transaction.onerror = transaction.onabort = () => resolve(undefined);
        } catch {
          resolve(undefined);
        }
      });
    },
  };
}
