import { expect, it } from "vitest";

const sources = import.meta.glob<string>("/src/**/*.{ts,tsx}", { query: "?raw", import: "default", eager: true });

/** Phrases that readers stumbled over, each with the words that replaced it. */
const REPLACED: readonly (readonly [RegExp, string])[] = [
  [/told for good/i, "System prompt"],
  [/looking back/i, "Reflection"],
  [/\[\s*"\w+",\s*["`](Set|Over|Current)\b/, "Active, Ended"],
  [/taken up/i, "Attempts"],
  [/\bto confirm\b|\bTo decide\b/i, "Needs review"],
  [/: "Left"|has left\b|have left\b/, "Former member"],
  [/>\s*No reply\s*<|"No reply"/, "Don't reply"],
  [/came of it/i, "Output"],
  [/words of strangers|strangers wrote/i, "text from outside sources"],
];

it("uses none of the phrases that were replaced", () => {
  const shown = Object.entries(sources).filter(([path]) => !path.endsWith(".test.ts") && !path.endsWith("/api/types.ts"));
  expect(shown.length).toBeGreaterThan(100);
  const found = shown.flatMap(([path, text]) => withoutComments(text).split("\n").flatMap((line, at) => REPLACED.filter(([old]) => old.test(line)).map(([, now]) => `${path}:${at + 1} say “${now}”: ${line.trim()}`)));
  expect(found).toEqual([]);
});

/** Blank out comments, keeping the line numbers. */
const withoutComments = (text: string): string => text.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, (comment) => comment.replace(/[^\n]/g, ""));
