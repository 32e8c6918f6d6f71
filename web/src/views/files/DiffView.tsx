/** DiffView: two texts line by line, with the lines that differ in colour and with a sign. */
import { memo, useMemo } from "react";
import { cx } from "@/lib/cx";
import { diffLines, withContext } from "@/lib/diff";
import { plural } from "@/lib/format";

const MAX_LINES = 3_000;
const MAX_CHARACTERS = 1_000;
const SIGNS = { same: " ", removed: "−", added: "+" } as const;
const NAMES = { same: "", removed: "Removed: ", added: "Added: " } as const;

export const DiffView = memo(function DiffView({ before, after, label }: { before: string; after: string; label: string }) {
  const lines = useMemo(() => diffLines(before, after), [before, after]);
  const shown = useMemo(() => withContext(lines).slice(0, MAX_LINES), [lines]);
  const added = lines.filter(({ kind }) => kind === "added").length;
  const removed = lines.filter(({ kind }) => kind === "removed").length;
  if (added + removed === 0) return <p className="p-4 text-sm text-ink-2">The two texts are the same.</p>;
  return (
    <div>
      <p className="px-4 py-2 text-xs text-ink-2">
        {plural(added, "line")} added, {plural(removed, "line")} removed
      </p>
      <div className="scroll font-mono text-xs leading-[19px]" tabIndex={0} role="region" aria-label={label}>
        {shown.map((line, at) =>
          line === null ? (
            <div key={at} className="bg-sunken px-4 text-ink-3" aria-label="Lines that are the same in both">
              ⋯
            </div>
          ) : (
            <div key={at} className={cx("diff-line flex px-4", line.kind === "added" && "bg-done-bg text-done", line.kind === "removed" && "bg-fail-bg text-fail")}>
              <span className="w-4 shrink-0 select-none" aria-hidden>
                {SIGNS[line.kind]}
              </span>
              <span className="sr-only">{NAMES[line.kind]}</span>
              <span dir="auto" className="min-h-[19px] min-w-0 flex-1 break-words whitespace-pre-wrap">
                {line.text.length > MAX_CHARACTERS ? `${line.text.slice(0, MAX_CHARACTERS)}…` : line.text}
              </span>
            </div>
          ),
        )}
      </div>
    </div>
  );
});
