/**
 * Literal: text that a person decides by, exactly as the model wrote it.
 *
 * It is rendered as text nodes: no Markdown, no HTML, nothing shortened, and hidden characters are shown as code
 * points. Otherwise a model could show the person one command and run another.
 */
import { memo } from "react";
import { cx } from "@/lib/cx";
import { type Part, splitHidden, splitSuspect } from "@/reading/visible";

export interface LiteralProps {
  text: string;
  /** Whether emoji sequences stay whole. */
  keepEmoji?: boolean;
  /** Whether letters and signs in disguise are marked, too. */
  isCode?: boolean;
}

/** Text with marked hidden characters. */
export const Literal = memo(function Literal(props: LiteralProps) {
  return <Parts parts={partsOf(props)} />;
});

export const partsOf = ({ text, keepEmoji = false, isCode = false }: LiteralProps): Part[] => (isCode ? splitSuspect(text) : splitHidden(text, { keepEmoji }));

export const Parts = ({ parts }: { parts: readonly Part[] }) =>
  parts.map((part, at) =>
    part.code === null ? (
      part.text
    ) : (
      <HiddenCharacter key={at} code={part.code} />
    ),
  );

export const HiddenCharacter = ({ code }: { code: string }) => (
  <mark data-code={code} title="Not what it looks like: a hidden character, or one that resembles another" className="rounded-[3px] bg-fail-bg px-0.5 font-mono text-[0.9em] text-fail">
    {code}
  </mark>
);

/** Text that may be long: one that does not fit is scrolled in place, complete, and its size is shown. */
export function LongText({ text, label, id, isCode = false }: { text: string; label: string; id?: string; isCode?: boolean }) {
  const style = cx("literal", isCode ? "font-mono text-xs leading-5" : "text-sm");
  const lineCount = countLines(text);
  const isLong = text.length > LONG_CHARACTERS || lineCount > LONG_LINES;
  return (
    <>
      <p
        id={id}
        dir="ltr"
        data-words
        {...(isLong ? { tabIndex: 0, role: "group", "aria-label": label } : {})}
        className={cx(style, isLong && "scroll max-h-52 rounded-sm border border-line bg-surface px-2.5 py-1.5")}
      >
        <Literal text={text} keepEmoji={!isCode} />
      </p>
      {isLong && <p dir="auto" className="tabular mt-0.5 text-2xs text-ink-3">{sizeText(text, lineCount)}</p>}
    </>
  );
}

/** Return how many lines a text has; one that ends with a line end has none behind it. */
export const countLines = (text: string): number => text.replace(/\n$/, "").split("\n").length;

export const sizeText = (text: string, lineCount: number): string => `${lineCount > 1 ? `${lineCount.toLocaleString("en")} lines, ` : ""}${[...text].length.toLocaleString("en")} characters`;

/** A text longer than this does not fit its place, so it is folded, and its size is shown. */
export const LONG_CHARACTERS = 400;
export const LONG_LINES = 12;
