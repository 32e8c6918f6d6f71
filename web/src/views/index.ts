/**
 * Views: the registry of a team's screens. An entry in SCREENS creates the route, the sidebar link, the palette entry and the shortcut.
 *
 * To add a screen, change two files; a third if it needs a new query:
 * 1. `views/hello/Hello.tsx`: `export default function Hello({ team }: ScreenProps) { … }`
 * 2. here: `{ path: "hello", label: "Hello", icon: Smile, load: () => import("./hello/Hello"), isListed: true, key: "l" }`
 * 3. `api/queries.ts`: the query. (Events invalidate the keys that `live/invalidation.ts` lists.)
 */
import { AlarmClock, Brain, ChartNoAxesGantt, Coins, Folder, type LucideIcon, PackageCheck, ScrollText, Settings2, Workflow } from "lucide-react";
import type { ComponentType } from "react";
import type { Team } from "@/api/client";

export interface ScreenProps {
  team: Team;
  /** The part of the URL after the screen's path: a file's path, a thread's id. */
  rest: string;
}

export interface Screen {
  /** The URL segment: the screen is at /t/{team}/{path} and everything below it. */
  path: string;
  label: string;
  icon: LucideIcon;
  load: () => Promise<{ default: ComponentType<ScreenProps> }>;
  /** Whether the sidebar and the palette list the screen. Other screens are reached by links. */
  isListed: boolean;
  /** The shortcut: this key after `g`. */
  key?: string;
}

export const SCREENS: Screen[] = [
  { path: "board", label: "Board", icon: Workflow, load: () => import("./board/Board"), isListed: true, key: "b" },
  { path: "results", label: "Results", icon: PackageCheck, load: () => import("./results/Results"), isListed: true, key: "r" },
  { path: "files", label: "Files", icon: Folder, load: () => import("./files/Files"), isListed: true, key: "f" },
  { path: "memory", label: "Memory", icon: Brain, load: () => import("./memory/Memory"), isListed: true, key: "m" },
  { path: "triggers", label: "Triggers", icon: AlarmClock, load: () => import("./triggers/Triggers"), isListed: true, key: "t" },
  { path: "cost", label: "Cost", icon: Coins, load: () => import("./cost/Cost"), isListed: true, key: "o" },
  { path: "timeline", label: "Timeline", icon: ChartNoAxesGantt, load: () => import("./timeline/Timeline"), isListed: true, key: "l" },
  { path: "threads", label: "Threads", icon: ScrollText, load: () => import("./threads/Threads"), isListed: true, key: "h" },
  { path: "settings", label: "Settings", icon: Settings2, load: () => import("@/settings/TeamSettingsPage"), isListed: true, key: "e" },
];

export const screen = (path: string): Screen | undefined => SCREENS.find((one) => one.path === path);

/** Return the URL of a screen, or null if there is no such screen. */
export function screenHref(team: string, path: string, rest = "", search = ""): string | null {
  if (!screen(path)) return null;
  const below = rest ? `/${rest.split("/").map(encodeURIComponent).join("/")}` : "";
  return `/t/${team}/${path}${below}${search}`;
}
