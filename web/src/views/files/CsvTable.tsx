/** CsvTable: a CSV file as a table. A module of its own, so that papaparse loads with the first CSV file. */
import { memo, useMemo, useState } from "react";
import { cx } from "@/lib/cx";
import { plural } from "@/lib/format";
import { Button } from "@/ui";
import { isNumeric, parseCsv } from "@/views/files/csv";

const ROWS_AT_A_TIME = 300;
export default memo(function CsvTable({ text, separator }: { text: string; separator: string | undefined }) {
  const [most, setMost] = useState(ROWS_AT_A_TIME);
  const { rows, hasMore } = useMemo(() => parseCsv(text, separator, most + 1), [text, separator, most]);
  const [head = [], ...body] = rows;
  const columns = Math.max(head.length, ...body.slice(0, 200).map((row) => row.length));
  const numeric = useMemo(() => Array.from({ length: columns }, (_, at) => isNumeric(body.slice(0, 100), at)), [text, columns]); // eslint-disable-line
  const cells = Array.from({ length: columns }, (_, at) => at);
  return (
    <div className="p-4">
      <div className="table-frame scroll max-h-full" tabIndex={0} role="region" aria-label="Table">
        <table className="text-sm">
          <thead>
            <tr className="bg-sunken text-left">
              {cells.map((at) => (
                <th key={at} scope="col" className={cx("px-3 py-1.5 font-medium whitespace-nowrap text-ink-2", numeric[at] && "text-right")}>
                  {head[at] || <span className="sr-only">Column {at + 1}</span>}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {body.map((row, y) => (
              <tr key={y} className="border-t border-line">
                {cells.map((at) => (
                  <td key={at} className={cx("max-w-[44ch] min-w-[4ch] px-3 py-1.5 align-top break-words", numeric[at] && "tabular text-right whitespace-nowrap")}>
                    {row[at]}
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
          <Button size="sm" onClick={() => setMost(most * 3)}>
            Show more
          </Button>
        )}
      </div>
    </div>
  );
});
