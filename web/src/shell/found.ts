/** Found: the groups of what a search has found, and the page that each of them opens. */
import { Bot, Brain, FileText, type LucideIcon, MessageSquare, ScrollText, Users, Workflow } from "lucide-react";
import type { Found } from "@/api/client";
import { plainText } from "@/reading/plainText";
import { screenHref } from "@/lib/screens";

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
  switch (found.kind) {
    case "team":
      return `/t/${team}`;
    case "agent":
      return `/t/${team}/a/${found.ref}`;
    case "message":
      return found.agent_id ? `/t/${team}/a/${found.agent_id}?at=${found.ref}` : `/inbox/${found.ref}`;
    case "work":
    case "report":
      return screenHref(team, "board", "", `?node=${found.ref}`);
    case "file":
      return screenHref(team, "files", found.ref);
    case "step":
      return screenHref(team, "threads", found.ref, found.seq === null ? "" : `?step=${found.seq}`);
    case "insight":
      return screenHref(team, "memory", "", "?tab=insights");
    case "note":
      return screenHref(team, "memory", found.ref);
    case "page":
      return screenHref(team, "memory", "", `?page=${encodeURIComponent(found.ref)}`);
  }
}

/** Return the hits to show. While the search for a new text runs, show only those earlier hits that contain the new words: Enter must not open an unrelated hit. */
export function shownFound(found: readonly Found[], words: string[], isOutdated: boolean): Found[] {
  const known = new Set<string>();
  return found.filter((one) => {
    // A note that several agents know is found once for each of them.
    const key = `${one.kind} ${one.team_id} ${one.ref} ${one.preview}`;
    const holdsWords = words.every((word) => `${one.title} ${one.preview}`.toLowerCase().includes(word));
    return !known.has(key) && known.add(key) && (!isOutdated || holdsWords);
  });
}

/** Return a name for each hit that stays the same while the person types on. The preview is no part of it: it shows the words around the typed ones. */
export function foundIds(found: readonly Found[]): string[] {
  const counts = new Map<string, number>();
  return found.map(({ kind, team_id, ref, at }) => {
    const name = `${kind} ${team_id} ${ref} ${at}`;
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    return count === 1 ? name : `${name} ${count}`;
  });
}

/** Return the preview without the marks of Markdown, of which it may hold only the first or the last. Files and calls keep every character. */
export const previewText = ({ kind, preview }: Found): string => (kind === "file" || kind === "step" ? preview : plainText(preview).replace(/\*\*|`/g, ""));
