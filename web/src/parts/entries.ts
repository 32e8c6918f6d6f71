/** Entries: what an inbox item is, in words: its label, its title, a note that stands first, and its text. */
import type { InboxRow } from "@/api/client";
import { messageLabel } from "@/lib/endings";
import { capitalize } from "@/lib/format";
import { SYSTEM } from "@/lib/participants";
import { plainText, withoutEmphasis } from "@/reading/plainText";
import { revealHidden, revealSuspect } from "@/reading/visible";
import type { Tone } from "@/ui";

/** The title that older servers gave every team's first task. It says nothing, so the first line of the text is shown instead. */
const OLD_GOAL_TITLE = "Get to work on the goal";

/** So many open questions of a team have a row each; more have one together. */
const MOST_ROWS = 3;

/** Return the rows of a list: items, and in the place of the first one all open questions of a team that has too many. */
export function collectedRows(items: readonly InboxRow[]): (InboxRow | InboxRow[])[] {
  const questions = new Map<string, InboxRow[]>();
  for (const item of items) {
    const { kind, team_id } = item.message;
    if (item.needs_answer && kind === "question") questions.set(team_id, [...(questions.get(team_id) ?? []), item]);
  }
  return items.flatMap((item): (InboxRow | InboxRow[])[] => {
    const all = questions.get(item.message.team_id) ?? [];
    if (all.length <= MOST_ROWS || !all.includes(item)) return [item];
    return all[0] === item ? [all] : [];
  });
}

/** Return who wrote an item. */
export const authorOf = ({ message }: InboxRow): string => (message.sender === SYSTEM ? "agiraph" : capitalize(message.sender_name));

/** The state of an item: what its chip says. */
export function labelOf(item: InboxRow): { text: string; tone: Tone } {
  const { text, tone } = messageLabel(item.message.kind, { status: item.node_status, stopReason: item.stop_reason, hasDoubts: item.has_doubts });
  return item.needs_answer ? { text: text || "Question", tone: "wait" } : { text: text || "Message", tone };
}

const STOPPED_EARLY = /^([\s\S]*?)\n\nWhat there is so far:\n([\s\S]*)$/;

/** Split a text into the note that a person reads first, why it stopped, and the rest. */
export function splitNote({ message }: InboxRow): { note: string; rest: string } {
  const early = message.kind === "failure" || message.kind === "report" ? STOPPED_EARLY.exec(message.text) : null;
  return early ? { note: early[1]!, rest: early[2]! } : { note: "", rest: message.text };
}

const MAX_TITLE = 120;
/** A list shows two lines of a text. */
const MAX_PREVIEW = 600;
function firstLine(text: string): string {
  const line = text.trimStart().split("\n")[0]!.replace(/^#+\s*/, "");
  return line.length > MAX_TITLE ? `${line.slice(0, MAX_TITLE - 1).trimEnd()}…` : line;
}
/** Return the title, without the marks of Markdown: a list shows plain text. What a person decides by is shown literally in its card. */
export const titleOf = (item: InboxRow): string => {
  const { title } = item.message;
  const words = title && title !== OLD_GOAL_TITLE ? title : firstLine(item.needs_answer ? item.message.text : splitNote(item).rest);
  return revealHidden(plainText(words) || firstLine(item.message.text));
};
/** Return the text without the note and without a first heading that repeats the title. */
export const bodyOf = (item: InboxRow): string => splitNote(item).rest.replace(/^\s*#+ (.*)\n+/, (all, head: string) => (revealHidden(plainText(head)) === titleOf(item) ? "" : all));

/** Return the preview: text that the person answers keeps all but its marks of emphasis, other text loses all of Markdown. What the title says already is left out. */
export function previewOf(item: InboxRow): string {
  const { call, text } = item.message;
  if (call) return revealSuspect(firstArgument(call.arguments));
  if (item.needs_answer) return withoutTitle(revealHidden(withoutEmphasis(text.slice(0, MAX_PREVIEW))), titleOf(item));
  const { note } = splitNote(item);
  const ended = note && !/[.!?:…]$/.test(note) ? `${note}.` : note;
  return [ended, withoutTitle(plainText(bodyOf(item)), titleOf(item))].filter(Boolean).join(" ");
}

/** Return the text without a title that is its first line. A title that is cut stays at its beginning: a person reads on there. */
function withoutTitle(text: string, title: string): string {
  const rest = text.startsWith(title) ? text.slice(title.length) : text;
  return /^[.:]?\s*(\n|$)/.test(rest) ? rest.replace(/^[.:]?\s*/, "") : text;
}

/** Return the beginning of a call's first argument, to tell calls apart. The question card shows the complete call. */
const firstArgument = (callArguments: Record<string, unknown>): string => String(Object.values(callArguments)[0] ?? "").slice(0, 200);
