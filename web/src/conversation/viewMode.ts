/** ViewMode: whether a member's page shows the conversation or every step of the work. This browser remembers it for all members. */
import { create } from "zustand";
import { readStored, writeStored } from "@/lib/storage";
import type { ViewMode } from "@/conversation/folding";

interface ViewState {
  view: ViewMode;
  show: (view: ViewMode) => void;
}

export const useViewMode = create<ViewState>((set) => ({
  view: readStored("view") === "work" ? "work" : "conversation",
  show: (view) => {
    writeStored("view", view === "work" ? view : null);
    set({ view });
  },
}));
