/** Comma-separated values (RFC 4180) that spreadsheets do not execute as formulas. */

/** Characters that start a formula in spreadsheets (OWASP, CSV Injection); Japanese and Chinese editions accept full-width characters, too. */
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/;
const NEEDS_QUOTES = /[",\r\n]|^\s|\s$/;

export type Cell = string | number | null | undefined;

/**
 * Returns one record with its line end. Text that looks like a formula is prefixed with an apostrophe; numbers, which are ours, stay unchanged. Null
 * is an empty cell.
 */
export const csvLine = (cells: readonly Cell[]): string => `${cells.map(cellText).join(',')}\r\n`;

function cellText(cell: Cell): string {
  if (typeof cell !== 'string') return cell === null || cell === undefined ? '' : String(cell);
  const text = FORMULA.test(cell) ? `'${cell}` : cell;
  return NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
