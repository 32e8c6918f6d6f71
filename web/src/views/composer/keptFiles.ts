/**
 * Kept files: the files of messages that are being written, in IndexedDB until they are sent.
 *
 * Several tabs may write to one agent. Each file is a record of its own, and a tab deletes only the records of files that
 * it has shown.
 */
import { randomId } from "@/lib/randomId";
import { keptStore } from "@/live/kept";
import type { Attachment } from "@/views/composer/attachments";

interface KeptFile {
  /** Begins with the agent and the time: the files of an agent are found by it, in their order. */
  id: string;
  file: Attachment;
}
const { run } = keptStore("agiraph-attachments", "files", "id");

/** The record of each file that this tab has put or brought back. */
const records = new WeakMap<Attachment, { id: string; isKept: Promise<boolean> }>();

function keep(agentId: string, file: Attachment, index: number): void {
  const id = `${agentId} ${Date.now()} ${String(index).padStart(2, "0")} ${randomId()}`;
  const isKept = run("readwrite", (store) => store.put({ id, file } satisfies KeptFile)).then((done) => done !== undefined || (records.delete(file), false));
  records.set(file, { id, isKept });
}

/** Keep the files that are new in the message to an agent, and forget those that are not in it any more. Return whether a reload would bring all of them back. */
export async function keepFiles(agentId: string, before: readonly Attachment[], now: readonly Attachment[]): Promise<boolean> {
  for (const id of keptIds(before.filter((file) => !now.includes(file)))) void run("readwrite", (store) => store.delete(id));
  now.forEach((file, index) => records.has(file) || keep(agentId, file, index));
  return (await Promise.all(now.map((file) => records.get(file)!.isKept))).every(Boolean);
}

/** Return the ids of the files' records. */
export const keptIds = (files: readonly Attachment[]): string[] => files.flatMap((file) => records.get(file)?.id ?? []);

/** Return the files that an earlier page or another tab has kept for the message to an agent. */
export async function keptFiles(agentId: string): Promise<Attachment[]> {
  const found = await run("readonly", (store) => store.getAll(IDBKeyRange.bound(`${agentId} `, `${agentId} \uffff`)) as IDBRequest<KeptFile[]>);
  return (found?.result ?? []).map(({ id, file }) => {
    records.set(file, { id, isKept: Promise.resolve(true) });
    return file;
  });
}
