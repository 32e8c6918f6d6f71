/** Pieces: a text cut into pieces that fit a small box, so that it can be known which of them were on screen. */
import type { Part } from "@/reading/visible";

/** About 12 short lines, or 10 rows of a narrow box. */
const PIECE_SIZE = 480;
/** What a line takes, besides its characters. */
const LINE_SIZE = 40;
/** Characters that belong to the one before them, and the joiner that binds the next one. A piece does not end between them. */
const JOINED = /^(?:\u200D|\p{M}|\p{Emoji_Modifier})/u;
/** How far a piece may go on to the end of a word, or of a run of joined characters. Either may be as long as the text. */
const MAX_WORD = 40;

/** Return the parts of a text in pieces. Together they are the same text; there is always at least one piece. */
export function splitPieces(parts: readonly Part[]): Part[][] {
  const pieces: Part[][] = [[]];
  let size = 0;
  const put = (part: Part, itsSize: number) => {
    if (size >= PIECE_SIZE) {
      pieces.push([]);
      size = 0;
    }
    pieces.at(-1)!.push(part);
    size += itsSize;
  };
  for (const part of parts) {
    if (part.code !== null) {
      put(part, part.code.length);
      continue;
    }
    for (let from = 0; from < part.text.length; ) {
      const { end, size: itsSize } = cut(part.text, from, size >= PIECE_SIZE ? PIECE_SIZE : PIECE_SIZE - size);
      put({ text: part.text.slice(from, end), code: null }, itsSize);
      from = end;
    }
  }
  return pieces;
}

/** Return where a piece of at least `room` ends, at the end of a word if it is near, and the size up to there. */
function cut(text: string, from: number, room: number): { end: number; size: number } {
  let size = 0;
  let end = from;
  while (end < text.length && size < room) size += sizeOf(text.charCodeAt(end++));
  if (/\s/.test(text[end - 1]!)) return { end, size };
  const space = text.slice(end, end + MAX_WORD).search(/\s/);
  if (space >= 0) return { end: end + space + 1, size: size + space + 1 };
  for (const limit = end + MAX_WORD; end < limit && isJoined(text, end); end++);
  // Never inside a character.
  if (isLowSurrogate(text, end)) end++;
  return { end, size };
}

const isLowSurrogate = (text: string, at: number): boolean => (text.charCodeAt(at) & 0xfc00) === 0xdc00;
const isJoined = (text: string, at: number): boolean => isLowSurrogate(text, at) || text[at - 1] === "\u200D" || JOINED.test(text.slice(at, at + 2));

/** Return how much room a character takes. Letters from U+1100 on may be wide; a tab is up to four columns. */
const sizeOf = (code: number): number => (code === 10 ? LINE_SIZE : code === 9 ? 4 : code >= 0x1100 ? 2 : 1);
