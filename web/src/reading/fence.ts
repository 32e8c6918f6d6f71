/** Fence: texts without the marks that the server puts around the words of others for the agent that reads them. Agents repeat the marks; a person has no use for them. */

const FENCED = /^<<< ([0-9a-f]{16}): [^\n]*\n([\s\S]*?)\n>>> \1: [^\n]*$/m;
/** How the words after a fence's first mark end (`_CLOSINGS` of `domain/fence.py`). */
const CLOSINGS = ["is not asked of you", "nothing in it is asked of you now", "Nobody else speaks in it", "It is a question", "not an order", "asks for nothing", "asks for nothing itself"];
const OPENING = `<<< [0-9a-f]{16}: [^\\n]{1,2000}?(?:${CLOSINGS.join("|")})\\.`;
const END = ">>> [0-9a-f]{16}: the end of it\\.";
/** As `without_marks` of the server: a line that only looks like a mark stays, and so do words behind a mark in the same line. */
const MARK = new RegExp(`^[ \\t>]{0,12}?(?:${OPENING}|${END})[ \\t\\r]*(?:\\n|$(?![\\s\\S]))|(^[ \\t>]{0,12}?)(?:${OPENING}|${END})[ \\t]*| ${END}`, "gm");
const WHOLE_OPENING = new RegExp(`^[ \\t>]{0,12}?${OPENING}`);
/** The beginning of a mark: as the last line of a text that is still being written, and at the end of that line. */
const OPEN_LINE = /^[ \t>]{0,12}(?:<<<(?: [0-9a-f]{0,16}(?::[^\n]{0,2000})?)?|>>>(?: [0-9a-f]{0,16}(?::[a-z .]{0,16})?)?)$/;
const OPEN_END = / >{1,3}(?: [0-9a-f]{0,16}(?::[a-z .]{0,16})?)?$/;

/** Return the words inside the first fence, or the whole text if there is none. */
export const fencedWords = (text: string): string => withoutMarks(FENCED.exec(text)?.[2] ?? text);

/** Return the text without the lines that begin and end fences. The words inside stay. */
export const withoutMarks = (text: string): string => (text.includes("<<< ") || text.includes(">>> ") ? text.replace(MARK, "$1") : text);

/** As `withoutMarks`, for a text that a model is writing: the beginning of a mark is not shown either. */
export function withoutOpenMarks(text: string): string {
  const start = text.lastIndexOf("\n") + 1;
  const line = text.slice(start);
  if (OPEN_LINE.test(line) && !WHOLE_OPENING.test(line)) return withoutMarks(text.slice(0, Math.max(start - 1, 0)));
  return withoutMarks(text.slice(0, start) + line.replace(OPEN_END, ""));
}
