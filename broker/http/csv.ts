/** Comma-separated values (RFC 4180) that a spreadsheet does not execute. */

/** What spreadsheets take for the beginning of a formula (OWASP, CSV Injection); those for Japanese and Chinese take full-width characters, too. */
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/;
const NEEDS_QUOTES = /[",\r\n]|^\s|\s$/;

export type Cell = string | number | null | undefined;

/**
 * One record with its line end. Text that a spreadsheet would take for a formula gets an apostrophe before it; numbers, which
 * are ours, stay as they are. Null is an empty cell.
 */
export const csvLine = (cells: readonly Cell[]): string => `${cells.map(cellText).join(',')}\r\n`;

function cellText(cell: Cell): string {
  if (typeof cell !== 'string') return cell === null || cell === undefined ? '' : String(cell);
  const text = FORMULA.test(cell) ? `'${cell}` : cell;
  return NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
