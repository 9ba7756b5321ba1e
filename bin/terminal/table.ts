/** Formats rows under titles, as wide as the terminal: cells that are too long are truncated, the last columns first. */
import { cut, joined, type Line, line, padded, styled, widthOf } from './line.ts';

/**
 * In columns of the terminal. `least`: the width below which a cell is not truncated; without it the column is never truncated. `most`:
 * the largest width of a cell at a terminal, so that a long name does not push other columns out of view.
 */
export type Column = { title: string; least?: number; most?: number };

const BETWEEN = '  ';

/**
 * `columns`: of each row. `width`: of the terminal, in columns. Where the rows are wider, the last of the columns that can be
 * truncated is truncated first.
 */
export function table(columns: readonly Column[], rows: readonly (readonly Line[])[], width: number): Line[] {
  const head = columns.map(({ title }) => styled('quiet', title));
  const all = [head, ...rows];
  const widths = columns.map(({ most = width }, i) => {
    const natural = Math.max(...all.map((row) => widthOf(row[i]?.text ?? '')));
    return width === Number.POSITIVE_INFINITY ? natural : Math.min(natural, most);
  });
  let over = widths.reduce((sum, each) => sum + each + BETWEEN.length, -BETWEEN.length) - width;
  for (let i = columns.length - 1; i >= 0 && over > 0; i--) {
    const natural = widths[i] ?? 0;
    const least = columns[i]?.least ?? natural;
    const now = Math.max(Math.min(least, natural), natural - over);
    over -= natural - now;
    widths[i] = now;
  }
  return all.map((row) =>
    cut(
      joined(
        columns.map((_, i) => {
          const cell = cut(row[i] ?? line``, widths[i] ?? 0);
          return i === columns.length - 1 ? cell : padded(cell, widths[i] ?? 0);
        }),
        BETWEEN,
      ),
      width,
    ),
  );
}
