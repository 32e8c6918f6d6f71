/** Tree: the rows a folder tree shows, from the listings that are loaded and the folders that are open. */
import type { Schemas } from "@/api/client";

export type Entry = Schemas["FileView"];
export interface TreeRow {
  entry: Entry;
  name: string;
  depth: number;
  isFolder: boolean;
  isOpen: boolean;
  /** Its place among its siblings, from 1, and how many they are. */
  place: number;
  of: number;
}

export const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1);
export const parentOf = (path: string): string => (path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "");

/** Every folder above a path, the outermost first. */
export function above(path: string): string[] {
  const parts = path.split("/").filter(Boolean);
  return parts.slice(0, -1).map((_, at) => parts.slice(0, at + 1).join("/"));
}

const order = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
const byName = (a: Entry, b: Entry): number =>
  Number(b.kind === "folder") - Number(a.kind === "folder") || order.compare(nameOf(a.path), nameOf(b.path));

export function treeRows(listings: ReadonlyMap<string, readonly Entry[]>, open: ReadonlySet<string>, folder = "", depth = 0): TreeRow[] {
  const entries = [...(listings.get(folder) ?? [])].sort(byName);
  return entries.flatMap((entry, at) => {
    const isFolder = entry.kind === "folder";
    const isOpen = isFolder && open.has(entry.path);
    const row: TreeRow = { entry, name: nameOf(entry.path), depth, isFolder, isOpen, place: at + 1, of: entries.length };
    return isOpen ? [row, ...treeRows(listings, open, entry.path, depth + 1)] : [row];
  });
}

/** What a key does in a tree: the row to go to, or the folder to open or close. */
export type Move = { to: number } | { toggle: string } | null;
export function move(rows: readonly TreeRow[], at: number, key: string): Move {
  const row = rows[at];
  if (!row) return null;
  switch (key) {
    case "ArrowDown":
      return at + 1 < rows.length ? { to: at + 1 } : null;
    case "ArrowUp":
      return at > 0 ? { to: at - 1 } : null;
    case "Home":
      return { to: 0 };
    case "End":
      return { to: rows.length - 1 };
    case "ArrowRight":
      if (!row.isFolder) return null;
      if (!row.isOpen) return { toggle: row.entry.path };
      return rows[at + 1]?.depth === row.depth + 1 ? { to: at + 1 } : null;
    case "ArrowLeft": {
      if (row.isOpen) return { toggle: row.entry.path };
      const up = rows.findLastIndex((other, place) => place < at && other.depth === row.depth - 1);
      return up >= 0 ? { to: up } : null;
    }
    default: {
      if (key.length !== 1 || key === " ") return null;
      const wanted = key.toLowerCase();
      const turned = [...rows.keys()].map((step) => (at + 1 + step) % rows.length);
      const found = turned.find((place) => rows[place]!.name.toLowerCase().startsWith(wanted));
      return found === undefined ? null : { to: found };
    }
  }
}
