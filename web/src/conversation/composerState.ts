/** Compose: words not sent yet, by whom they are for; they survive going elsewhere and a reload. */
import { create } from "zustand";
import { keep, recall } from "@/lib/storage";

interface ComposerState {
  words: Record<string, string>;
  /** Counts up when somebody wants the box to be in focus. */
  focus: number;
  write: (agentId: string, words: string) => void;
  begin: (agentId: string, words: string) => void;
}

export const useComposer = create<ComposerState>((set, get) => ({
  words: {},
  focus: 0,
  write: (agentId, words) => {
    keep(`words.${agentId}`, words || null);
    set({ words: { ...get().words, [agentId]: words } });
  },
  begin: (agentId, words) => {
    get().write(agentId, words);
    set({ focus: get().focus + 1 });
  },
}));

export const kept = (agentId: string): string => recall(`words.${agentId}`) ?? "";
