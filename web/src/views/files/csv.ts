/** CSV: the rows of a CSV file, as papaparse reads them. */
import Papa from "papaparse";

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
export const MAX_COLUMNS = 60;

/** Return the width of each column in characters, from the rows that are given: wide enough for most cells, and never wider than a line of prose. */
export function columnWidths(rows: readonly string[][], columns: number): number[] {
  return Array.from({ length: columns }, (_, column) => {
    const lengths = rows.map((row) => Math.max(0, ...(row[column] ?? "").slice(0, 200).split("\n").map((line) => line.length)));
    return Math.min(44, Math.max(6, ...lengths)) + 4;
  });
}
