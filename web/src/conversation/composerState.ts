/** Composer state: the unsent text for each agent. It is kept in localStorage, so that it survives navigation and a reload. */
import { create } from "zustand";
import { writeStored, readStored } from "@/lib/storage";

interface ComposerState {
  texts: Record<string, string>;
  /** Raised to ask the composer to take the focus. */
  focusRequests: number;
  setText: (agentId: string, text: string) => void;
  editText: (agentId: string, text: string) => void;
}

export const useComposer = create<ComposerState>((set, get) => ({
  texts: {},
  focusRequests: 0,
  setText: (agentId, text) => {
    writeStored(`words.${agentId}`, text || null);
    set({ texts: { ...get().texts, [agentId]: text } });
  },
  editText: (agentId, text) => {
    get().setText(agentId, text);
    set({ focusRequests: get().focusRequests + 1 });
  },
}));

export const storedText = (agentId: string): string => readStored(`words.${agentId}`) ?? "";
