/** TextChange: a text in full, or all lines that were removed and added since a person accepted it. */
import { useMemo } from "react";
import { Literal } from "@/reading/Literal";
import { cx } from "@/lib/cx";
import { lineDiff } from "@/views/operations/lineDiff";

const STYLES = { " ": "", "-": "bg-fail-bg text-fail", "+": "bg-done-bg text-done" };
const NAMES = { " ": "", "-": "removed: ", "+": "added: " };

/** Hidden characters are shown by their code points, so that nothing can look like something else. */
export function TextChange({ label, before, now }: { label: string; before: string | null; now: string }) {
  const lines = useMemo(() => (before === null ? now.split("\n").map((text) => ({ mark: " " as const, text })) : lineDiff(before, now)), [before, now]);
  return (
    <pre dir="ltr" tabIndex={0} role="group" aria-label={label} className="scroll max-h-[40vh] rounded-sm border border-line bg-sunken py-1.5 font-mono text-xs leading-5 [tab-size:4] [unicode-bidi:bidi-override]">
      {lines.map(({ mark, text }, at) => (
        <span key={at} className={cx("literal block px-2.5", STYLES[mark])}>
          {NAMES[mark] && <span className="sr-only">{NAMES[mark]}</span>}
          {before !== null && <span aria-hidden>{mark} </span>}
          <Literal text={text || " "} />
        </span>
      ))}
    </pre>
  );
}
