/**
 * Views: the registry of a team's screens. An entry in SCREENS creates the route, the tab, the palette entry and the shortcut.
 *
 * To add a screen, change three files; a fourth if it needs a new query:
 * 1. `views/hello/Hello.tsx`: `export default function Hello({ team }: ScreenProps) { … }`
 * 2. `lib/screens.ts`: `"hello"` in `ScreenPath`
 * 3. here: `{ path: "hello", label: "Hello", icon: Smile, load: () => import("./hello/Hello"), isListed: true, key: "l" }`
 * 4. `api/queries.ts`: the query. (Events invalidate the keys that `live/invalidation.ts` lists.)
 *
 * A screen imports from the folders below it alone; `layers.test.ts` has their order. What two screens share belongs into `parts/`.
 */
import { AlarmClock, Brain, ChartNoAxesGantt, Coins, Folder, type LucideIcon, MessagesSquare, PackageCheck, ScrollText, Settings2, Workflow } from "lucide-react";
import type { ComponentType } from "react";
import type { ScreenPath, ScreenProps } from "@/lib/screens";

export interface Screen {
  path: ScreenPath;
  label: string;
  icon: LucideIcon;
  load: () => Promise<{ default: ComponentType<ScreenProps> }>;
  /** Whether the tabs and the palette list the screen. Other screens are reached by links. */
  isListed: boolean;
  /** The shortcut: this key after `g`. */
  key?: string;
}

export const SCREENS: Screen[] = [
  { path: "board", label: "Board", icon: Workflow, load: () => import("./board/Board"), isListed: true, key: "b" },
  { path: "files", label: "Files", icon: Folder, load: () => import("./files/Files"), isListed: true, key: "f" },
  { path: "results", label: "Results", icon: PackageCheck, load: () => import("./results/Results"), isListed: true, key: "r" },
  { path: "timeline", label: "Timeline", icon: ChartNoAxesGantt, load: () => import("./timeline/Timeline"), isListed: true, key: "l" },
  { path: "memory", label: "Memory", icon: Brain, load: () => import("./memory/Memory"), isListed: true, key: "m" },
  { path: "triggers", label: "Triggers", icon: AlarmClock, load: () => import("./triggers/Triggers"), isListed: true, key: "t" },
  { path: "cost", label: "Cost", icon: Coins, load: () => import("./cost/Cost"), isListed: true, key: "o" },
  { path: "threads", label: "Threads", icon: ScrollText, load: () => import("./threads/Threads"), isListed: true, key: "h" },
  { path: "settings", label: "Settings", icon: Settings2, load: () => import("@/views/settings/TeamSettingsPage"), isListed: true, key: "e" },
];

export interface TeamTab {
  label: string;
  icon: LucideIcon;
  href: string;
  /** Whether the page at this address belongs to the tab. */
  isAt: (pathname: string) => boolean;
}

/** Return the tabs of a team, in the order in which every list shows them: the conversation with its coordinator, then its screens. */
export function teamTabs({ id, coordinator_id }: { id: string; coordinator_id: string | null }): TeamTab[] {
  const here = `/t/${id}`;
  const conversation: TeamTab = { label: "Conversation", icon: MessagesSquare, href: coordinator_id ? `${here}/a/${coordinator_id}` : here, isAt: (pathname) => pathname === here || pathname.startsWith(`${here}/a/`) };
  const listed = SCREENS.filter((screen) => screen.isListed);
  return [conversation, ...listed.map(({ path, label, icon }): TeamTab => ({ label, icon, href: `${here}/${path}`, isAt: (pathname) => `${pathname}/`.startsWith(`${here}/${path}/`) }))];
}
