/** State of the shell: what is open, and what this browser prefers. */
import { create } from "zustand";
import { keep, recall } from "@/lib/storage";

export type Theme = "light" | "dark" | "system";

interface ShellState {
  palette: boolean;
  newTeam: boolean;
  keysSheet: boolean;
  rail: boolean;
  panel: boolean;
  panelSheet: boolean;
  railHidden: boolean;
  theme: Theme;
  singleKeys: boolean;
  notify: boolean;
  toolDetail: boolean;
  folded: Record<string, boolean>;
  open: (what: "palette" | "newTeam" | "keysSheet" | "rail" | "panelSheet", open: boolean) => void;
  set: (change: Partial<ShellState>) => void;
  fold: (team: string, folded: boolean) => void;
}

function parsed<T>(key: string, otherwise: T): T {
  try {
    const kept = recall(key);
    return kept === null ? otherwise : (JSON.parse(kept) as T);
  } catch {
    return otherwise;
  }
}

export function applyTheme(theme: Theme): void {
  const dark = theme === "dark" || (theme === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}

export const useShell = create<ShellState>((set, get) => ({
  palette: false,
  newTeam: false,
  keysSheet: false,
  rail: false,
  panelSheet: false,
  panel: parsed("panel", true),
  railHidden: false,
  theme: (recall("theme") as Theme | null) ?? "system",
  singleKeys: parsed("single-keys", true),
  notify: parsed("notify", false),
  toolDetail: false,
  folded: parsed("folded", {}),
  open: (what, open) => set({ [what]: open }),
  set: (change) => {
    set(change);
    if (change.theme !== undefined) {
      keep("theme", change.theme === "system" ? null : change.theme);
      applyTheme(change.theme);
    }
    if (change.panel !== undefined) keep("panel", JSON.stringify(change.panel));
    if (change.singleKeys !== undefined) keep("single-keys", JSON.stringify(change.singleKeys));
    if (change.notify !== undefined) keep("notify", JSON.stringify(change.notify));
  },
  fold: (team, folded) => {
    const all = { ...get().folded, [team]: folded };
    keep("folded", JSON.stringify(all));
    set({ folded: all });
  },
}));
