/** Composer state: the unsent message to each agent. Its text and references are kept in localStorage, so that they survive navigation and a reload; its files survive navigation. */
import { create } from "zustand";
import { writeStored, readStored } from "@/lib/storage";
import { addUnsavedCheck } from "@/live/unsaved";
import type { Attachment } from "@/conversation/attachments";
import type { Reference } from "@/conversation/references";

interface ComposerState {
  texts: Record<string, string>;
  files: Record<string, Attachment[]>;
  references: Record<string, Reference[]>;
  /** Raised to ask the composer to take the focus. */
  focusRequests: number;
  setText: (agentId: string, text: string) => void;
  setFiles: (agentId: string, files: Attachment[]) => void;
  addReference: (agentId: string, reference: Reference) => void;
  /** Put a text and files before what is written already, and take the focus. Nothing is replaced. */
  putBefore: (agentId: string, text: string, files?: Attachment[]) => void;
  /** Forget a message that was sent. */
  clear: (agentId: string) => void;
}

export const useComposer = create<ComposerState>((set, get) => ({
  texts: {},
  files: {},
  references: {},
  focusRequests: 0,
  setText: (agentId, text) => {
    writeStored(`words.${agentId}`, text || null);
    set({ texts: { ...get().texts, [agentId]: text } });
  },
  setFiles: (agentId, files) => set({ files: { ...get().files, [agentId]: files } }),
  addReference: (agentId, reference) => {
    const known = currentReferences(agentId).filter((one) => one.token !== reference.token);
    const references = [...known, reference];
    writeStored(`references.${agentId}`, JSON.stringify(references));
    set({ references: { ...get().references, [agentId]: references } });
  },
  putBefore: (agentId, text, files = []) => {
    const written = currentText(agentId);
    get().setText(agentId, written ? `${text.trimEnd()}\n\n${written}` : text);
    if (files.length > 0) get().setFiles(agentId, [...files, ...(get().files[agentId] ?? [])]);
    set({ focusRequests: get().focusRequests + 1 });
  },
  clear: (agentId) => {
    get().setText(agentId, "");
    get().setFiles(agentId, []);
    writeStored(`references.${agentId}`, null);
    set({ references: { ...get().references, [agentId]: [] } });
  },
}));

addUnsavedCheck(() => Object.values(useComposer.getState().files).some((files) => files.length > 0));

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
