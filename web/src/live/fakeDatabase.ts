/** Fake database: IndexedDB for tests, as far as the page uses it. Node has none. */

type Row = Record<string, unknown>;

export class FakeDatabase {
  /** The rows of each database, by their keys. They outlive a page. */
  readonly rows = new Map<string, Map<string, Row>>();
  /** What happens to changes of each database: they are refused, or never stored, as by a tab that crashes first. */
  readonly fails = new Map<string, "refuses" | "hangs">();
  /** When databases open. */
  opens: Promise<unknown> = Promise.resolve();
  /** When pages get what they have read. */
  reads: Promise<unknown> = Promise.resolve();
  /** Called when a change begins. */
  onChange: (database: string) => void = () => {};

  open(database: string): IDBOpenDBRequest {
    const rows = this.rows.get(database) ?? new Map<string, Row>();
    this.rows.set(database, rows);
    const request = { result: { transaction: (_: string, mode: IDBTransactionMode) => this.#begin(database, rows, mode) }, onsuccess: () => {} };
    void this.opens.then(() => request.onsuccess());
    return request as unknown as IDBOpenDBRequest;
  }

  #begin(database: string, rows: Map<string, Row>, mode: IDBTransactionMode) {
    const begun = { objectStore: () => store, oncomplete: () => {}, onabort: () => {} };
    let isChanging = false;
    const change = (act: () => void) => {
      isChanging = true;
      this.onChange(database);
      const fails = this.fails.get(database);
      if (fails === undefined) act();
      if (fails !== "hangs") queueMicrotask(() => (fails ? begun.onabort() : begun.oncomplete()));
      return { result: undefined };
    };
    const get = (key: string) => {
      const request = { result: undefined as Row | undefined, onsuccess: () => {} };
      // Read when the answer comes, so that no other transaction comes between this and the change that it leads to.
      queueMicrotask(() => {
        request.result = structuredClone(rows.get(key));
        request.onsuccess();
        if (!isChanging) begun.oncomplete();
      });
      return request;
    };
    const store = {
      get,
      put: (row: Row) => change(() => rows.set(String(row["id"] ?? row["clientId"]), structuredClone(row))),
      delete: (key: string) => change(() => rows.delete(key)),
      getAll: ([from, to] = ["", "\uffff"]) => ({ result: [...rows].filter(([key]) => from <= key && key <= to).sort(([one], [other]) => (one < other ? -1 : 1)).map(([, row]) => structuredClone(row)) }),
    };
    if (mode === "readonly") void this.reads.then(() => begun.oncomplete());
    return begun;
  }
}
