/** CsvTable: a CSV file as a table. Only the visible rows are in the page. It is a separate module, so that papaparse is loaded only with the first CSV file. */
import { useVirtualizer } from "@tanstack/react-virtual";
import Papa from "papaparse";
import { memo, useMemo, useRef, useState } from "react";
import { cx } from "@/lib/cx";
import { plural } from "@/lib/format";
import { Button } from "@/ui";

const ROWS_AT_FIRST = 20_000;
const ROW_PX = 33;
/** Longer cells are cut: a table is to be looked over, and the source has every character. */
const CELL_CHARACTERS = 600;

export default memo(function CsvTable({ text, separator }: { text: string; separator: string | undefined }) {
  const [limit, setLimit] = useState(ROWS_AT_FIRST);
  const { rows, hasMore } = useMemo(() => parseCsv(text, separator, limit + 1), [text, separator, limit]);
  const [head, body] = useMemo(() => [rows[0] ?? [], rows.slice(1)] as const, [rows]);
  const { columns, widths, numeric, hidden } = useMemo(() => {
    const most = rows.slice(0, 200).reduce((count, row) => Math.max(count, row.length), 0);
    const shown = Array.from({ length: Math.min(most, MAX_COLUMNS) }, (_, column) => column);
    const sample = body.slice(0, 100);
    return { columns: shown, widths: columnWidths(rows.slice(0, 200), shown.length), numeric: shown.map((column) => isNumeric(sample, column)), hidden: most - shown.length };
  }, [rows, body]);
  const frame = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({ count: body.length, getScrollElement: () => frame.current, estimateSize: () => ROW_PX, overscan: 10 });
  const items = virtual.getVirtualItems();
  const above = items[0]?.start ?? 0;
  const below = virtual.getTotalSize() - (items.at(-1)?.end ?? 0);
  return (
    <div className="flex h-full min-h-0 flex-col p-4">
      {hidden > 0 && <p className="mb-2 rounded-sm bg-wait-bg px-3 py-2 text-sm text-wait">Only the first {MAX_COLUMNS} columns are shown; {plural(hidden, "more column")} in the file.</p>}
      <div ref={frame} className="table-frame scroll min-h-0" tabIndex={0} role="region" aria-label="Table">
        <table className="table-fixed text-sm" aria-rowcount={hasMore ? -1 : body.length + 1} style={{ width: `${widths.reduce((sum, width) => sum + width, 0)}ch` }}>
          <colgroup>
            {columns.map((column) => (
              <col key={column} style={{ width: `${widths[column]}ch` }} />
            ))}
          </colgroup>
          <thead className="sticky top-0 z-10">
            <tr className="bg-sunken text-left" aria-rowindex={1}>
              {columns.map((column) => (
                <th key={column} scope="col" className={cx("px-3 py-1.5 font-medium break-words text-ink-2", numeric[column] && "text-right")}>
                  {head[column] ? <Cell text={head[column]} /> : <span className="sr-only">Column {column + 1}</span>}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {above > 0 && <tr aria-hidden style={{ height: above }} />}
            {items.map(({ index }) => (
              <tr key={index} ref={virtual.measureElement} data-index={index} aria-rowindex={index + 2} className="border-t border-line">
                {columns.map((column) => (
                  <td key={column} className={cx("px-3 py-1.5 align-top break-words", numeric[column] && "tabular text-right")}>
                    <Cell text={body[index]![column] ?? ""} />
                  </td>
                ))}
              </tr>
            ))}
            {below > 0 && <tr aria-hidden style={{ height: below }} />}
          </tbody>
        </table>
      </div>
      <div className="mt-2 flex shrink-0 items-center gap-3 text-xs text-ink-3">
        {hasMore && "The first "}
        {body.length.toLocaleString("en")} {body.length === 1 ? "row" : "rows"}
        {hasMore && (
          <Button size="sm" onClick={() => setLimit(limit * 10)}>
            Show more
          </Button>
        )}
      </div>
    </div>
  );
});

function Cell({ text }: { text: string }) {
  return <span dir="auto">{text.length > CELL_CHARACTERS ? `${text.slice(0, CELL_CHARACTERS)}…` : text}</span>;
}

/** Return at most `limit` rows. Without a separator, papaparse guesses it from the first rows. */
export function parseCsv(text: string, separator?: string, limit = Infinity): { rows: string[][]; hasMore: boolean } {
  // papaparse expects one kind of line ending per file. Files that several programs append to may have more.
  const source = text.replace(/^\ufeff/, "").replace(/\r\n?/g, "\n");
  const { data, meta } = Papa.parse<string[]>(source, {
    delimiter: separator ?? "",
    delimitersToGuess: [",", ";", "\t", "|"],
    newline: "\n",
    preview: limit === Infinity ? 0 : limit + 1,
    skipEmptyLines: true,
  });
  return { rows: data.slice(0, limit), hasMore: data.length > limit || meta.truncated };
}

/** Whether all cells of a column are numbers, so that the column is aligned to the right. */
export function isNumeric(rows: readonly string[][], column: number): boolean {
  const cells = rows.map((row) => (row[column] ?? "").trim()).filter(Boolean);
  return cells.length > 0 && cells.every((cell) => /^[-+]?[$€£]?\d[\d,.' ]*%?$/.test(cell));
}

/** A table with more columns is not read as a table. */
const MAX_COLUMNS = 60;

/** Return the width of each column in characters, from the rows that are given: wide enough for most cells, and never wider than a line of prose. */
function columnWidths(rows: readonly string[][], columns: number): number[] {
  return Array.from({ length: columns }, (_, column) => {
    const lengths = rows.map((row) => Math.max(0, ...(row[column] ?? "").slice(0, 200).split("\n").map((line) => line.length)));
    return Math.min(44, Math.max(6, ...lengths)) + 4;
  });
}
