/** Prints results of commands: JSON, or lines for the terminal. */
import { visibleJson } from '../../broker/console/static/visible.js';
import type { Line } from './line.ts';

/** Whether to use colour: only at a terminal, and unless NO_COLOR (no-color.org) or TERM=dumb is set. */
const isColoured = (): boolean => process.stdout.isTTY === true && process.stdout.hasColors();

/** Width of the terminal in columns; infinite for other outputs. */
export const terminalWidth = (): number =>
  process.stdout.isTTY ? process.stdout.columns || 80 : Number.POSITIVE_INFINITY;

export function printLines(lines: readonly Line[]): void {
  const colour = isColoured();
  process.stdout.write(lines.map((line) => `${line.print(colour)}\n`).join(''));
}

export const printJson = (value: unknown): boolean => process.stdout.write(`${jsonText(value, 2)}\n`);

/** JSON in which invisible characters are escaped. */
export const jsonText = (value: unknown, indent?: number): string => visibleJson(JSON.stringify(value, null, indent));

/** Prints a result as JSON with `--json`, otherwise as lines. */
export function printResult(options: { json?: boolean }, value: unknown, lines: () => readonly Line[]): void {
  if (options.json) printJson(value);
  else printLines(lines());
}
