/** Palette rows: which entries of the palette match what was typed, in which order, and which of them is highlighted. */
import { wordPlaces } from "@/reading/foundWords";

export interface PaletteEntry {
  /** Unique among all entries, and the same when the list is made again. */
  id: string;
  label: string;
  /** Other words by which it is found. */
  keywords?: string[];
}

export interface PaletteGroup<T extends PaletteEntry> {
  name: string;
  entries: T[];
}

/** Return how well an entry matches, 0 to 1: its beginning best, then the beginning of a word, then all typed words anywhere in it. */
function matchScore({ label, keywords = [] }: Pick<PaletteEntry, "label" | "keywords">, typed: string): number {
  const query = typed.toLowerCase().trim();
  const scores = [label, ...keywords].map((text, index) => {
    const lowered = text.toLowerCase();
    if (lowered.startsWith(query)) return 1 - index * 0.05;
    if (lowered.split(/[\s·/_-]+/).some((word) => word.startsWith(query))) return 0.8 - index * 0.05;
    if (query.split(/\s+/).every((part) => lowered.includes(part))) return 0.5 - index * 0.05;
    return 0;
  });
  return Math.max(...scores);
}

/** Return the groups with the entries that match, best first. Without a text, everything matches and keeps its order. */
export function matchingGroups<T extends PaletteEntry>(groups: PaletteGroup<T>[], typed: string): PaletteGroup<T>[] {
  if (typed.trim() === "") return groups.filter((group) => group.entries.length > 0);
  return groups
    .map(({ name, entries }) => {
      const scored = entries.map((entry) => ({ entry, score: matchScore(entry, typed) })).filter(({ score }) => score > 0);
      scored.sort((one, other) => other.score - one.score);
      return { name, entries: scored.map(({ entry }) => entry), best: scored[0]?.score ?? 0 };
    })
    .filter(({ best }) => best > 0)
    .sort((one, other) => other.best - one.best);
}

/** Return the highlighted entry: the one that the person chose while it is in the list, otherwise the first one. */
export function highlighted<T extends PaletteEntry>(entries: readonly T[], chosen: string | null): T | undefined {
  return entries.find((entry) => entry.id === chosen) ?? entries[0];
}

/** Return the parts of a text: those at odd places are searched words. */
export function splitAtWords(text: string, words: string[]): string[] {
  const edges = [0, ...wordPlaces(text, words).flat(), text.length];
  return edges.slice(1).map((end, index) => text.slice(edges[index], end));
}

/** Return the words of what was typed, in lower case. */
export const wordsOf = (typed: string): string[] => typed.toLowerCase().split(/\s+/).filter(Boolean);

interface EmergencyRow extends PaletteEntry {
  does: "stop" | "resume" | "look";
  detail?: string;
}

/**
 * Return what the palette offers to stop all work, and while all work is stopped. A person who wants to stop all work must never resume it: "stop" and "pause" do not find the row that
 * resumes, and "emergency" finds it second.
 */
export function emergencyRows(isStopped: boolean): EmergencyRow[] {
  if (!isStopped) return [{ id: "stop all", does: "stop", label: "Stop all work", keywords: ["emergency stop", "pause"], detail: "of all teams" }];
  return [
    { id: "all stopped", does: "look", label: "All work is stopped already", keywords: ["emergency stop", "pause"], detail: "See Operations" },
    { id: "resume all", does: "resume", label: "Resume all work", keywords: ["continue", "emergency"] },
  ];
}
