/** Views: the screens of a team beside its conversations. One line here makes a route, a link and a palette entry. */
import { AlarmClock, Brain, Coins, Folder, type LucideIcon, ScrollText, Workflow } from "lucide-react";
import type { ComponentType } from "react";
import type { Team } from "@/api/client";

export interface ScreenProps {
  team: Team;
  /** What follows the screen's own path in the address: a file's path, a thread's id. */
  rest: string;
}

export interface Screen {
  /** /t/{team}/{path}, and everything below it. */
  path: string;
  label: string;
  icon: LucideIcon;
  load: () => Promise<{ default: ComponentType<ScreenProps> }>;
  /** Whether it stands under the team in the sidebar; others are reached by links. */
  isListed: boolean;
  /** The second key after `g`. */
  key?: string;
}

export const SCREENS: Screen[] = [
  { path: "board", label: "Board", icon: Workflow, load: () => import("./board/Board"), isListed: true, key: "b" },
  { path: "files", label: "Files", icon: Folder, load: () => import("./files/Files"), isListed: true, key: "f" },
  { path: "memory", label: "Memory", icon: Brain, load: () => import("./memory/Memory"), isListed: true, key: "m" },
  { path: "triggers", label: "Triggers", icon: AlarmClock, load: () => import("./triggers/Triggers"), isListed: true, key: "t" },
  { path: "cost", label: "Cost", icon: Coins, load: () => import("./cost/Cost"), isListed: true, key: "o" },
  { path: "threads", label: "Threads", icon: ScrollText, load: () => import("./threads/Threads"), isListed: true, key: "h" },
];

export const screen = (path: string): Screen | undefined => SCREENS.find((one) => one.path === path);

/** The address of a screen, as far as it exists. */
export function screenHref(team: string, path: string, rest = "", search = ""): string | null {
  if (!screen(path)) return null;
  const below = rest ? `/${rest.split("/").map(encodeURIComponent).join("/")}` : "";
  return `/t/${team}/${path}${below}${search}`;
}
