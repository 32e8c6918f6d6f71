/** Compose: words not sent yet, by whom they are for; they survive going elsewhere and a reload. */
import { create } from "zustand";
import { writeStored, readStored } from "@/lib/storage";

interface ComposerState {
  texts: Record<string, string>;
  /** Counts up when somebody wants the box to be in focus. */
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
