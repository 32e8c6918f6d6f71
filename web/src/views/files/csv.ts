/** CSV: rows of cells, quotes and line ends inside cells included. */

/** The separator that the first line has most of. */
export function separatorOf(text: string): string {
  const line = text.slice(0, 4000).split(/\r?\n/, 1)[0] ?? "";
  let best = ",";
  let most = 0;
  for (const mark of [",", ";", "\t", "|"]) {
    const n = unquoted(line).split(mark).length - 1;
    if (n > most) [best, most] = [mark, n];
  }
  return best;
}

const unquoted = (line: string): string => line.replace(/"[^"]*"/g, "");

export function parseCsv(text: string, separator = separatorOf(text), most = Infinity): { rows: string[][]; hasMore: boolean } {
  const rows: string[][] = [];
  let row: string[] = [];
  let cell = "";
  let isQuoted = false;
  const source = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  for (let at = 0; at < source.length; at++) {
    const sign = source[at]!;
    if (isQuoted) {
      if (sign !== '"') cell += sign;
      else if (source[at + 1] === '"') {
        cell += '"';
        at++;
      } else isQuoted = false;
    } else if (sign === '"' && cell === "") isQuoted = true;
    else if (sign === separator) {
      row.push(cell);
      cell = "";
    } else if (sign === "\n" || sign === "\r") {
      if (sign === "\r" && source[at + 1] === "\n") at++;
      row.push(cell);
      cell = "";
      if (row.length > 1 || row[0] !== "") rows.push(row);
      row = [];
      if (rows.length >= most) return { rows, hasMore: at + 1 < source.length };
    } else cell += sign;
  }
  row.push(cell);
  if (row.length > 1 || row[0] !== "") rows.push(row);
  return { rows, hasMore: false };
}

/** Whether a column holds numbers, so that it is set right. */
export function isNumeric(rows: readonly string[][], column: number): boolean {
  const cells = rows.map((row) => (row[column] ?? "").trim()).filter(Boolean);
  return cells.length > 0 && cells.every((cell) => /^[-+]?[$€£]?\d[\d,.' ]*%?$/.test(cell));
}
