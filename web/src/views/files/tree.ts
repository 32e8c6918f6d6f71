/** Tree: the visible rows of a folder tree, and how the keyboard moves in it. */
import type { Schemas } from "@/api/client";
import { isAttached } from "@/views/composer/attachments";

export type Entry = Schemas["FileView"];
export interface TreeRow {
  entry: Entry;
  name: string;
  depth: number;
  isFolder: boolean;
  isOpen: boolean;
  /** The position among the siblings, from 1, and the number of siblings: for `aria-posinset` and `aria-setsize`. */
  position: number;
  setSize: number;
}

export const baseName = (path: string): string => path.slice(path.lastIndexOf("/") + 1);
export const parentFolder = (path: string): string => ancestors(path).at(-1) ?? "";

/** Whether a path lies in a folder that a person gave the team. */
export const isGiven = (path: string): boolean => path === "folders" || path.startsWith("folders/");

/** Whether an entry is for the runtime, such as `_refs.json`. What a person gave or uploaded is theirs, however it is named. */
export const isInternal = ({ path }: Entry): boolean => /^_(?!_)/.test(baseName(path)) && !isGiven(path) && !path.startsWith("user_uploads/");

/** Return the folders above a path, outermost first. A file that came with a message is listed among the uploads; its path holds no folders. */
export function ancestors(path: string): string[] {
  if (isAttached(path)) return ["user_uploads"];
  const parts = path.split("/").filter(Boolean);
  return parts.slice(0, -1).map((_, index) => parts.slice(0, index + 1).join("/"));
}

const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
const byName = (a: Entry, b: Entry): number =>
  Number(b.kind === "folder") - Number(a.kind === "folder") || collator.compare(baseName(a.path), baseName(b.path));

/** Return the visible rows: the loaded entries of `folder`, with those of open folders below them. Folders come first. */
export function treeRows(listings: ReadonlyMap<string, readonly Entry[]>, open: ReadonlySet<string>, folder = "", depth = 0): TreeRow[] {
  const entries = [...(listings.get(folder) ?? [])].sort(byName);
  return entries.flatMap((entry, index) => {
    const isFolder = entry.kind === "folder";
    const isOpen = isFolder && open.has(entry.path);
    const row: TreeRow = { entry, name: baseName(entry.path), depth, isFolder, isOpen, position: index + 1, setSize: entries.length };
    return isOpen ? [row, ...treeRows(listings, open, entry.path, depth + 1)] : [row];
  });
}

/** The effect of a key: the row to focus, or the folder to open or close. The keys follow the ARIA tree pattern. */
type TreeMove = { to: number } | { toggle: string } | null;
export function moveByKey(rows: readonly TreeRow[], index: number, key: string): TreeMove {
  const row = rows[index];
  if (!row) return null;
  switch (key) {
    case "ArrowDown":
      return index + 1 < rows.length ? { to: index + 1 } : null;
    case "ArrowUp":
      return index > 0 ? { to: index - 1 } : null;
    case "Home":
      return { to: 0 };
    case "End":
      return { to: rows.length - 1 };
    case "ArrowRight":
      if (!row.isFolder) return null;
      if (!row.isOpen) return { toggle: row.entry.path };
      return rows[index + 1]?.depth === row.depth + 1 ? { to: index + 1 } : null;
    case "ArrowLeft": {
      if (row.isOpen) return { toggle: row.entry.path };
      const parent = rows.findLastIndex((other, otherIndex) => otherIndex < index && other.depth === row.depth - 1);
      return parent >= 0 ? { to: parent } : null;
    }
    default: {
      if (key.length !== 1 || key === " ") return null;
      const prefix = key.toLowerCase();
      const fromNextRow = [...rows.keys()].map((step) => (index + 1 + step) % rows.length);
      const found = fromNextRow.find((candidate) => rows[candidate]!.name.toLowerCase().startsWith(prefix));
      return found === undefined ? null : { to: found };
    }
  }
}
