/** Composer state: the unsent message to each agent. Its text and references are kept in localStorage and its files in IndexedDB, so that they survive navigation and a reload. */
import { create } from "zustand";
import { errorMessage } from "@/api/client";
import { writeStored, readStored } from "@/lib/storage";
import { addUnsavedCheck } from "@/live/unsaved";
import { type Attachment, fitting, toAttachment } from "@/views/composer/attachments";
import { keepFiles, keptFiles, keptIds } from "@/views/composer/keptFiles";
import type { Reference } from "@/views/composer/references";

interface ComposerState {
  texts: Record<string, string>;
  files: Record<string, Attachment[]>;
  references: Record<string, Reference[]>;
  /** Whether the agent is asked not to reply. */
  nudges: Record<string, boolean>;
  /** Whether the composer is asked to take the focus. It takes it once, also if it is drawn later. */
  wantsFocus: boolean;
  setText: (agentId: string, text: string) => void;
  /** Resolve to whether a reload would bring the files back. */
  setFiles: (agentId: string, files: Attachment[]) => Promise<boolean>;
  addReference: (agentId: string, reference: Reference) => void;
  setNudge: (agentId: string, isNudge: boolean) => void;
  /** Put a text and files before what is written already, and take the focus. Nothing is replaced. Resolve when the files are kept, or cannot be. */
  putBefore: (agentId: string, text: string, files?: Attachment[]) => Promise<void>;
  /** Forget what was sent. What was written or attached since then stays. */
  clear: (agentId: string, sent: { text: string; files: readonly Attachment[] }) => void;
}

export const useComposer = create<ComposerState>((set, get) => ({
  texts: {},
  files: {},
  references: {},
  nudges: {},
  wantsFocus: false,
  setText: (agentId, text) => {
    writeStored(`words.${agentId}`, text || null);
    set({ texts: { ...get().texts, [agentId]: text } });
  },
  setFiles: async (agentId, files) => {
    const before = currentFiles(agentId);
    set({ files: { ...get().files, [agentId]: files } });
    unkept.add(agentId);
    const isKept = await keepFiles(agentId, before, files);
    if (isKept && get().files[agentId] === files) unkept.delete(agentId);
    return isKept;
  },
  addReference: (agentId, reference) => {
    const known = currentReferences(agentId).filter((one) => one.token !== reference.token);
    const references = [...known, reference];
    writeStored(`references.${agentId}`, JSON.stringify(references));
    set({ references: { ...get().references, [agentId]: references } });
  },
  setNudge: (agentId, isNudge) => set({ nudges: { ...get().nudges, [agentId]: isNudge } }),
  putBefore: async (agentId, text, files = []) => {
    const written = currentText(agentId);
    get().setText(agentId, written ? `${text.trimEnd()}\n\n${written}` : text);
    const kept = files.length > 0 && get().setFiles(agentId, [...files, ...currentFiles(agentId)]);
    set({ wantsFocus: true });
    await kept;
  },
  clear: (agentId, { text, files }) => {
    const now = currentText(agentId);
    if (now.startsWith(text)) get().setText(agentId, now.slice(text.length).trimStart());
    const sent = keptIds(files);
    if (sent.length > 0) otherTabs?.postMessage({ agentId, sent } satisfies SentFiles);
    if (files.length > 0) void get().setFiles(agentId, currentFiles(agentId).filter((file) => !files.includes(file)));
    if (currentText(agentId) !== "") return;
    writeStored(`references.${agentId}`, null);
    set({ references: { ...get().references, [agentId]: [] } });
  },
}));

/** The agents whose files a reload would lose: the browser has not stored them yet, or refuses to. */
const unkept = new Set<string>();
const wouldLoseFiles = (): boolean => [...unkept].some((agentId) => (useComposer.getState().files[agentId]?.length ?? 0) > 0);
addUnsavedCheck(wouldLoseFiles);
// The browser asks the person whether to leave the page.
globalThis.addEventListener?.("beforeunload", (event) => wouldLoseFiles() && event.preventDefault());

/** Files that another tab has sent, by the ids of their records. */
interface SentFiles {
  agentId: string;
  sent: string[];
}
const otherTabs = globalThis.BroadcastChannel && new BroadcastChannel("agiraph-sent-files");
// A tab that was opened later shows the same kept files. They are sent once.
otherTabs?.addEventListener("message", ({ data: { agentId, sent } }: MessageEvent<SentFiles>) => {
  const { files, setFiles } = useComposer.getState();
  const left = files[agentId]?.filter((file) => !keptIds([file]).some((id) => sent.includes(id)));
  if (left && left.length < files[agentId]!.length) void setFiles(agentId, left);
});

/** How long a message waits for its kept files. Some browsers never answer. */
const RESTORE_MS = 2_000;
const restoring = new Map<string, Promise<unknown>>();
/** Bring back the files that an earlier page kept for the message to an agent, once. */
export function restoreFiles(agentId: string): Promise<unknown> {
  const known = restoring.get(agentId);
  if (known) return known;
  const restored = keptFiles(agentId).then((kept) => {
    // Files that were attached meanwhile come after them.
    if (kept.length > 0) void useComposer.getState().setFiles(agentId, [...kept, ...currentFiles(agentId)]);
  });
  const first = Promise.race([restored, new Promise((resolve) => setTimeout(resolve, RESTORE_MS))]);
  restoring.set(agentId, first);
  return first;
}

/** Return the files of the message to an agent at this moment. */
export const currentFiles = (agentId: string): Attachment[] => useComposer.getState().files[agentId] ?? [];

/** Return what is written to an agent at this moment. A component's own copy is as old as its last render. */
export const currentText = (agentId: string): string => useComposer.getState().texts[agentId] ?? storedText(agentId);

export const storedText = (agentId: string): string => readStored(`words.${agentId}`) ?? "";

/** Return the references that were chosen for the message to an agent. */
export const currentReferences = (agentId: string): Reference[] => useComposer.getState().references[agentId] ?? storedReferences(agentId);

function storedReferences(agentId: string): Reference[] {
  try {
    return JSON.parse(readStored(`references.${agentId}`) ?? "[]") as Reference[];
  } catch {
    return [];
  }
}

/** Attach the files that fit to the message to an agent. Return a sentence for each that is not attached. */
export async function attachFiles(agentId: string, chosen: readonly File[], pasted?: string): Promise<string[]> {
  const { files, problems } = fitting(currentFiles(agentId), chosen);
  try {
    const added = await Promise.all(files.map(toAttachment));
    void useComposer.getState().setFiles(agentId, [...currentFiles(agentId), ...added.map((file) => ({ ...file, pasted }))]);
    return problems;
  } catch (error) {
    return [...problems, errorMessage(error)];
  }
}
