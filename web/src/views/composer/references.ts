/**
 * References: agents, tasks and files that a message names.
 *
 * The person writes `@bob` or chooses `#Compare the prices`. A message that mentions agents goes to them. A chosen task
 * or file becomes a Markdown link when the message is sent: the page opens it, and an agent finds in it the task's id
 * or the file's path, which its tools take.
 */
import type { Agent } from "@/api/client";
import { isAttached } from "@/views/composer/attachments";
import { screenHref } from "@/lib/screens";

export interface Reference {
  /** What stands in the text field, such as "#Compare the prices". */
  token: string;
  /** The Markdown link that is sent instead. */
  link: string;
}

const inLink = (text: string): string => text.replace(/\s+/g, " ").replace(/[[\]\\]/g, "\\$&");
const inAddress = (href: string): string => href.replace(/[()]/g, (character) => (character === "(" ? "%28" : "%29"));

export function nodeReference(team: string, node: { id: string; title: string }): Reference {
  const token = `#${node.title.replace(/\s+/g, " ").trim()}`;
  return { token, link: `[${inLink(token)}](${inAddress(screenHref(team, "board", "", `?node=${node.id}`))})` };
}

export function fileReference(team: string, path: string): Reference {
  return { token: `#${path}`, link: `[${inLink(path)}](${inAddress(screenHref(team, "files", path))})` };
}

/** Whether agents can open a path of Files. A file that came with a message is in their conversation, in no folder. */
export const isForAgents = (path: string): boolean => !isAttached(path);

/** Return the text with its chosen references as links. A token that the person has changed stays as it is. */
export function withLinks(text: string, references: readonly Reference[]): string {
  const byLength = references.toSorted((a, b) => b.token.length - a.token.length);
  if (byLength.length === 0) return text;
  const pattern = new RegExp(byLength.map(({ token }) => token.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|"), "g");
  return text.replace(pattern, (token) => byLength.find((one) => one.token === token)!.link);
}

/** Return the agents that a text mentions by @name, in the order of the team. Code and quoted lines mention nobody. */
export function mentionedIn(text: string, agents: readonly Agent[]): Agent[] {
  const own = text.replace(/```[\s\S]*?(```|$)/g, " ").replace(/`[^`\n]*`/g, " ").replace(/^[ \t]*>.*$/gm, " ");
  const names = new Set([...own.matchAll(/(?:^|[\s([{"'“,;:])@([\p{L}\p{N}_-]+)/gu)].map(([, name]) => name!.toLowerCase()));
  return agents.filter((agent) => names.has(agent.name.toLowerCase()));
}

/** What the person is completing: the sign, the words after it, and where the sign stands. */
export interface Typed {
  sign: "@" | "#";
  words: string;
  start: number;
}

/** Return what is being completed at the caret, or null. A sign counts at the beginning of a word only: `a#b` and `me@home` complete nothing, nor does a number such as `#1`. */
export function typedAt(text: string, caret: number): Typed | null {
  const found = /(?:^|[\s(["'“])([@#])([^\s@#]{0,60})$/u.exec(text.slice(0, caret));
  return found && !/^#\d+$/.test(found[1]! + found[2]!) ? { sign: found[1] as Typed["sign"], words: found[2]!, start: caret - found[2]!.length - 1 } : null;
}

/** Return a quotation of a message with a link to it, for the beginning of an answer. */
export function quotation(text: string, author: string, href: string): string {
  const lines = text.trim().split("\n").map((line) => `> ${line}`.trimEnd());
  return `${lines.join("\n")}\n>\n> — [${inLink(author)}](${inAddress(href)})\n\n`;
}
