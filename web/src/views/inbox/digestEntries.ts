/** Digest entries: what the digest shows of each entry, in which group, and what a decision says when it is saved. */
import type { Schemas } from "@/api/client";
import { capitalize, plural } from "@/lib/format";
import { isUploaded } from "@/lib/sources";

export type DigestEntry = Schemas["DigestEntry"];
type Digest = Pick<Schemas["DigestView"], "entries" | "groups">;
export type Decisions = Partial<Schemas["DigestDecisions"]>;

type GroupName = DigestEntry["kind"] | "upload";
const GROUPS: readonly (readonly [GroupName, string, string])[] = [
  ["ask", "Asks for your approval", "The agents go on with other work until you decide."],
  ["pending", "Not in use yet", "Agents use this text only after you have confirmed it."],
  ["unverified", "Unverified", "Agents use this text with a mark that it comes from outside sources."],
  ["file", "Files with text from outside sources", "Read a file before you confirm it: the team then treats its text as its own."],
  ["upload", "Uploaded files", "Others may have written their text, also instructions for agents, so agents see it marked as text from outside. Read a file before you confirm it: the team then treats its text as its own."],
  ["trigger", "Triggers that agents set", "A confirmed trigger has no limits; its text stays marked as from outside."],
  ["use", "Permissions that were used", "You can revoke them in the settings of the team."],
];

interface EntryGroup {
  name: GroupName;
  title: string;
  note: string;
  /** The entries by their source, as the server groups them. */
  sources: { source: string; entries: DigestEntry[] }[];
}

const groupOf = ({ kind, text }: DigestEntry): GroupName => (kind === "file" && isUploaded(text) ? "upload" : kind);

/** Return the entries by kind and source, requests first; kinds without entries are left out. */
export function groupEntries({ entries, groups }: Digest): EntryGroup[] {
  const known = new Map(entries.map((entry) => [entry.id, entry]));
  const ordered = groups.flatMap(({ ids }) => ids.flatMap((id) => known.get(id) ?? []));
  return GROUPS.map(([name, title, note]) => ({ name, title, note, sources: bySource(ordered.filter((entry) => groupOf(entry) === name)) })).filter((group) => group.sources.length > 0);
}

function bySource(entries: DigestEntry[]): EntryGroup["sources"] {
  const found = new Map<string, DigestEntry[]>();
  for (const entry of entries) {
    const source = entrySource(entry);
    const same = found.get(source);
    if (same) same.push(entry);
    else found.set(source, [entry]);
  }
  return [...found].map(([source, same]) => ({ source, entries: same }));
}

/** Return where the words of an entry come from; nothing of an uploaded file, which is named already. */
export const entrySource = (entry: DigestEntry): string => (groupOf(entry) === "upload" ? "" : entry.source);

/** Whether "confirm all" covers an entry: knowledge, notes and triggers, never a way out and never a file. */
export const isForAll = ({ kind }: DigestEntry): boolean => kind === "pending" || kind === "unverified" || kind === "trigger";

/** Return the words that the person decides on: of a call all arguments, of a trigger its task and all settings, one a line. */
export function entryWords({ kind, text }: DigestEntry): string {
  if (kind === "ask") return lines(jsonObject(text.slice(text.indexOf("{")))) ?? text;
  if (kind !== "trigger") return text;
  const parts = triggerParts(text);
  if (parts === null) return text;
  const [{ task, ...more }, config] = parts;
  return [typeof task === "string" ? task : lines({ task }), lines(more), lines(config)].filter(Boolean).join("\n");
}

/** Return the payload and the configuration of a trigger, which the server writes with its type between them. Both may hold any text, so each place that looks like a type is tried. */
function triggerParts(text: string): [Record<string, unknown>, Record<string, unknown>] | null {
  for (const found of text.matchAll(/(?<=\}) [a-z_]+ (?=\{)/g)) {
    const payload = jsonObject(text.slice(0, found.index));
    const config = jsonObject(text.slice(found.index + found[0].length));
    if (payload && config) return [payload, config];
  }
  return null;
}

const lines = (given: Record<string, unknown> | null): string | null =>
  given &&
  Object.entries(given)
    .map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join("\n");

function jsonObject(text: string): Record<string, unknown> | null {
  try {
    const found: unknown = JSON.parse(text);
    return typeof found === "object" && found !== null && !Array.isArray(found) ? (found as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

/** Return what an entry is, if its group and its words do not say it. */
export const entryTitle = ({ kind, title }: DigestEntry): string => (kind === "file" ? "" : kind === "ask" ? title : capitalize(kind === "trigger" ? title.replace("_", " ") : title));

/** Return what to tell the person about a decision on so many entries. */
export function decidedText(body: Decisions, count: number): string {
  if (body.stop?.length) return "Stopped: it does not fire again.";
  if (body.reject?.length) return "Rejected: it is not used.";
  return count === 1 ? "Confirmed." : `${plural(count, "entry", "entries")} confirmed.`;
}
