/** What commands print: JSON, or lines as the terminal takes them. */
import { visibleJson } from '../../broker/console/static/visible.js';
import type { Line } from './line.ts';

/** Colour, unless it is no terminal, or NO_COLOR (no-color.org) or TERM=dumb says no. */
const isColoured = (): boolean => process.stdout.isTTY === true && process.stdout.hasColors();

/** In columns; what is no terminal has no end. */
export const terminalWidth = (): number =>
  process.stdout.isTTY ? process.stdout.columns || 80 : Number.POSITIVE_INFINITY;

export function printLines(lines: readonly Line[]): void {
  const colour = isColoured();
  process.stdout.write(lines.map((line) => `${line.print(colour)}\n`).join(''));
}

export const printJson = (value: unknown): boolean => process.stdout.write(`${jsonText(value, 2)}\n`);

/** JSON that is safe to look at. */
export const jsonText = (value: unknown, indent?: number): string => visibleJson(JSON.stringify(value, null, indent));

/** Prints a result, as JSON with `--json`, else as lines. */
export function printResult(options: { json?: boolean }, value: unknown, lines: () => readonly Line[]): void {
  if (options.json) printJson(value);
  else printLines(lines());
}
