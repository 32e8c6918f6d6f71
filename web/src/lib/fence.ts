/** Fence: the words inside the marks that the server puts around a teammate's words for the agent that reads them. */

const FENCED = /^<<< ([0-9a-f]{16}): [^\n]*\n([\s\S]*?)\n>>> \1: [^\n]*$/m;

/** Return the words inside the first fence, or the whole text if there is none. */
export const fencedWords = (text: string): string => FENCED.exec(text)?.[2] ?? text;
