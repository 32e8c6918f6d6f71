/** TextChange: a text in full, or all lines that were removed and added since a person accepted it. `ReadGate` knows what of it was seen. */
import { Fragment, useMemo } from "react";
import { Literal, Parts, partsOf } from "@/reading/Literal";
import { splitPieces } from "@/reading/pieces";
import { EndMark, MustRead } from "@/reading/ReadGate";
import { cx } from "@/lib/cx";
import { lineDiff } from "@/views/operations/lineDiff";

const STYLES = { " ": "", "-": "bg-fail-bg text-fail", "+": "bg-done-bg text-done" };
const NAMES = { " ": "", "-": "removed: ", "+": "added: " };

/** Every so many short lines end with a mark for `ReadGate`: fewer than fit into the box on a phone. */
const LINES_PER_MARK = 8;
const LONG_LINE = 120;

/** Hidden characters are shown by their code points, so that nothing can look like something else. */
export function TextChange({ label, before, now }: { label: string; before: string | null; now: string }) {
  const lines = useMemo(() => (before === null ? now.split("\n").map((text) => ({ mark: " " as const, text })) : lineDiff(before, now)), [before, now]);
  return (
    <pre dir="ltr" data-argument data-takes-focus tabIndex={0} role="group" aria-label={label} className="scroll max-h-[40vh] rounded-sm border border-line bg-sunken py-1.5 font-mono text-xs leading-5 [tab-size:4] [unicode-bidi:bidi-override]">
      <MustRead of={now}>
        {lines.map(({ mark, text }, at) => (
          <span key={at} className={cx("literal block px-2.5", STYLES[mark])}>
            {NAMES[mark] && <span className="sr-only">{NAMES[mark]}</span>}
            {before !== null && <span aria-hidden>{mark} </span>}
            {text.length > LONG_LINE ? (
              splitPieces(partsOf({ text })).map((parts, piece) => (
                <Fragment key={piece}>
                  <Parts parts={parts} />
                  <EndMark />
                </Fragment>
              ))
            ) : (
              <Literal text={text || " "} />
            )}
            {(at % LINES_PER_MARK === LINES_PER_MARK - 1 || at === lines.length - 1) && <EndMark />}
          </span>
        ))}
      </MustRead>
    </pre>
  );
}
