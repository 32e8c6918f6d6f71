/** CsvTable: a CSV file as a table. It is a separate module, so that papaparse is loaded only with the first CSV file. */
import { memo, useMemo, useState } from "react";
import { cx } from "@/lib/cx";
import { plural } from "@/lib/format";
import { Button } from "@/ui";
import { isNumeric, parseCsv } from "@/views/files/csv";

const ROWS_PER_PAGE = 300;
export default memo(function CsvTable({ text, separator }: { text: string; separator: string | undefined }) {
  const [limit, setLimit] = useState(ROWS_PER_PAGE);
  const { rows, hasMore } = useMemo(() => parseCsv(text, separator, limit + 1), [text, separator, limit]);
  const [head = [], ...body] = rows;
  const columns = Math.max(head.length, ...body.slice(0, 200).map((row) => row.length));
  const numeric = useMemo(() => Array.from({ length: columns }, (_, column) => isNumeric(body.slice(0, 100), column)), [text, columns]); // eslint-disable-line
  const cells = Array.from({ length: columns }, (_, column) => column);
  return (
    <div className="p-4">
      <div className="table-frame scroll max-h-full" tabIndex={0} role="region" aria-label="Table">
        <table className="text-sm">
          <thead>
            <tr className="bg-sunken text-left">
              {cells.map((column) => (
                <th key={column} scope="col" className={cx("px-3 py-1.5 font-medium whitespace-nowrap text-ink-2", numeric[column] && "text-right")}>
                  {head[column] || <span className="sr-only">Column {column + 1}</span>}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {body.map((row, y) => (
              <tr key={y} className="border-t border-line">
                {cells.map((column) => (
                  <td key={column} className={cx("max-w-[44ch] min-w-[4ch] px-3 py-1.5 align-top break-words", numeric[column] && "tabular text-right whitespace-nowrap")}>
                    {row[column]}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <div className="mt-2 flex items-center gap-3 text-xs text-ink-3">
        {plural(body.length, "row")}
        {hasMore && (
          <Button size="sm" onClick={() => setLimit(limit * 3)}>
            Show more
          </Button>
        )}
      </div>
    </div>
  );
});
