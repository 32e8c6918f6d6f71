/** LargeText: a text of any size, or with lines of any length. Only the visible rows are in the page. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, memo, useMemo, useRef } from "react";
import { MAX_ROWS, splitRows } from "@/views/files/lines";

const LINE_PX = 19;
/** The width of a character of the code font. */
const CHARACTER_PX = 7.2;

export default memo(function LargeText({ text }: { text: string }) {
  const { rows, hasMore } = useMemo(() => splitRows(text), [text]);
  const frame = useRef<HTMLDivElement>(null);
  const digits = String(rows.findLast(({ line }) => line > 0)?.line ?? 1).length;
  const estimateSize = (index: number): number => {
    const { start, end } = rows[index]!;
    const perLine = Math.max(20, ((frame.current?.clientWidth ?? 800) - 64) / CHARACTER_PX - digits);
    return Math.max(1, Math.ceil((end - start) / perLine)) * LINE_PX;
  };
  const virtual = useVirtualizer({ count: rows.length, getScrollElement: () => frame.current, estimateSize, overscan: 4 });
  function onKeyDown(event: KeyboardEvent) {
    if (event.key !== "End" || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
    // The browser would go to the end as it is estimated now.
    event.preventDefault();
    virtual.scrollToIndex(rows.length - 1, { align: "end" });
  }
  return (
    <div className="flex h-full min-h-0 flex-col">
      {hasMore && <p className="mx-4 mt-3 rounded-sm bg-wait-bg px-3 py-2 text-sm text-wait">Only the first {MAX_ROWS.toLocaleString()} lines are shown. Download the file for all of it.</p>}
      <div ref={frame} className="scroll min-h-0 flex-1 py-3 font-mono text-xs leading-[19px]" tabIndex={0} role="region" aria-label="Source" onKeyDown={onKeyDown}>
        <div className="relative w-full" style={{ height: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map((item) => {
            const row = rows[item.index]!;
            return (
              <div key={item.key} ref={virtual.measureElement} data-index={item.index} className="absolute top-0 left-0 flex w-full px-4" style={{ transform: `translateY(${item.start}px)` }}>
                <span aria-hidden className="tabular shrink-0 pr-4 text-right text-ink-3 select-none" style={{ width: `calc(${digits}ch + 1rem)` }}>
                  {row.line || ""}
                </span>
                <span dir="auto" className="min-h-[19px] min-w-0 flex-1 break-all whitespace-pre-wrap">
                  {text.slice(row.start, row.end)}
                </span>
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
});
