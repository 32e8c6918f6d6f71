/** State of the shell: which dialogs and panels are open, and this browser's preferences, which are kept in localStorage. */
import { create } from "zustand";
import { writeStored, readStored } from "@/lib/storage";

/** The id of the palette's text field. */
export const PALETTE_FIELD = "palette-text";

export type Theme = "light" | "dark" | "system";

interface ShellState {
  palette: boolean;
  /** What was typed before the palette was loaded. */
  paletteText: string;
  /** Whether the palette was asked for while it could not be loaded. */
  isPaletteMissing: boolean;
  /** A counter: it grows when the palette opens the page that is already open, so that the page scrolls to the linked item again. */
  repeatedJumps: number;
  /** Whether the person has asked for the field for a new team: the home page opens and gives it the focus. */
  newTeam: boolean;
  /** Whether they have asked for it with the goal of the demo. */
  startsDemo: boolean;
  /** The id of the team that the dialog for a new team begins as a copy of; empty: of none. */
  copies: string;
  shortcutsDialog: boolean;
  /** Whether the person is asked if all work of all teams should stop. */
  stopDialog: boolean;
  /** What the person is asked about one team before it is done. */
  asked: { what: "stop" | "archive" | "research"; team: { id: string; name: string; coordinator_id: string | null } } | null;
  sidebarDrawer: boolean;
  detailsPanel: boolean;
  detailsSheet: boolean;
  sidebarHidden: boolean;
  theme: Theme;
  singleKeys: boolean;
  notifications: boolean;
  /** The ids of the teams that the person keeps at the top of the list. */
  pinned: string[];
  /** The text that filters the list of teams. */
  teamFilter: string;
  showsFinished: boolean;
  setOpen: (name: "palette" | "newTeam" | "shortcutsDialog" | "stopDialog" | "sidebarDrawer" | "detailsSheet", isOpen: boolean) => void;
  update: (change: Partial<ShellState>) => void;
  pin: (team: string, isPinned: boolean) => void;
}

/** Return a stored JSON value, or the fallback if it is missing or not valid JSON. */
function readJson<T>(key: string, fallback: T): T {
  try {
    const stored = readStored(key);
    return stored === null ? fallback : (JSON.parse(stored) as T);
  } catch {
    return fallback;
  }
}

/** Set the theme of the page. `public/theme.js` does the same before the first paint. */
export function applyTheme(theme: Theme): void {
  const dark = theme === "dark" || (theme === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}

export const useShell = create<ShellState>((set, get) => ({
  palette: false,
  paletteText: "",
  isPaletteMissing: false,
  repeatedJumps: 0,
  newTeam: false,
  copies: "",
  startsDemo: false,
  shortcutsDialog: false,
  stopDialog: false,
  asked: null,
  sidebarDrawer: false,
  detailsSheet: false,
  detailsPanel: readJson("panel", true),
  sidebarHidden: false,
  theme: (readStored("theme") as Theme | null) ?? "system",
  singleKeys: readJson("single-keys", true),
  notifications: readJson("notify", false),
  pinned: readJson<string[]>("pinned", []),
  teamFilter: "",
  showsFinished: false,
  setOpen: (name, isOpen) => set({ [name]: isOpen }),
  update: (change) => {
    set(change);
    if (change.theme !== undefined) {
      writeStored("theme", change.theme === "system" ? null : change.theme);
      applyTheme(change.theme);
    }
    if (change.detailsPanel !== undefined) writeStored("panel", JSON.stringify(change.detailsPanel));
    if (change.singleKeys !== undefined) writeStored("single-keys", JSON.stringify(change.singleKeys));
    if (change.notifications !== undefined) writeStored("notify", JSON.stringify(change.notifications));
  },
  pin: (team, isPinned) => {
    const pinned = [...get().pinned.filter((one) => one !== team), ...(isPinned ? [team] : [])];
    writeStored("pinned", JSON.stringify(pinned));
    set({ pinned });
  },
}));
