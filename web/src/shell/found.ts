/** Found: the groups of what a search has found, and the page that each of them opens. */
import { Bot, Brain, FileText, type LucideIcon, MessageSquare, ScrollText, Users, Workflow } from "lucide-react";
import type { Found } from "@/api/client";
import { screenHref } from "@/views";

export const FOUND_GROUPS: { name: string; kinds: Found["kind"][]; icon: LucideIcon }[] = [
  { name: "Teams", kinds: ["team"], icon: Users },
  { name: "Members", kinds: ["agent"], icon: Bot },
  { name: "Work", kinds: ["work"], icon: Workflow },
  { name: "Files", kinds: ["file"], icon: FileText },
  { name: "Messages", kinds: ["message"], icon: MessageSquare },
  { name: "Knowledge", kinds: ["note", "insight", "page", "report"], icon: Brain },
  { name: "Steps", kinds: ["step"], icon: ScrollText },
];

/** Return the page that shows what was found. */
export function foundHref(found: Found): string {
  const team = found.team_id;
  const href = (path: string, rest = "", search = "") => screenHref(team, path, rest, search) ?? `/t/${team}`;
  switch (found.kind) {
    case "team":
      return `/t/${team}`;
    case "agent":
      return `/t/${team}/a/${found.ref}`;
    case "message":
      return found.agent_id ? `/t/${team}/a/${found.agent_id}?at=${found.ref}` : `/inbox/${found.ref}`;
    case "work":
    case "report":
      return href("board", "", `?node=${found.ref}`);
    case "file":
      return href("files", found.ref);
    case "step":
      return href("threads", found.ref);
    case "insight":
      return href("memory", "", "?tab=insights");
    case "note":
      return href("memory", found.ref);
    case "page":
      return href("memory");
  }
}
