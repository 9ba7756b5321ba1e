/** Prints long foreign texts behind a margin, so that none of their lines can be mistaken for the program's own. */
import { counted, countUnseen, piecesOf } from '../../broker/console/static/request-view/text.js';
import { columnsOf, graphemesOf, type Line, line, linesOf, styled, widthOf } from './line.ts';

const MARGIN = '│ ';
/** The minimum width of lines, in columns, even on a narrower terminal. */
const NARROWEST = 20;

/** Returns the text behind a margin, wrapped at `width` columns; long runs of empty lines or spaces are replaced by their count. */
export function foreignText(text: string, width: number): Line[] {
  const whole = piecesOf(text)
    .map((piece) =>
      piece.gap === undefined ? piece.text : `${piece.breaks ? '\n' : ''}⟦${piece.gap}⟧${piece.breaks ? '\n' : ''}`,
    )
    .join('');
  const lines = linesOf(whole).flatMap((each) => wrapped(each.text, Math.max(NARROWEST, width - MARGIN.length)));
  return lines.map((each) => line`${styled('quiet', MARGIN)}${each}`);
}

/** Warns of invisible characters; empty where there are none. */
export function invisibleCharacters(text: string): Line[] {
  const number = countUnseen(text);
  return number === 0
    ? []
    : [styled('bad', `Look closely: ${counted(number, 'invisible character')}, shown by number.`)];
}

/** Formats warnings about a text; empty without any. */
export const warnings = (sentences: readonly string[]): Line[] =>
  sentences.length === 0 ? [] : [styled('bad', `Look closely: ${sentences.join(' ')}`)];

/** Splits a text into pieces of so many columns. */
export function wrapped(text: string, columns: number): string[] {
  if (widthOf(text) <= columns) return [text];
  const lines: string[] = [];
  let [now, width] = ['', 0];
  for (const segment of graphemesOf(text)) {
    const more = columnsOf(segment);
    if (width + more > columns) {
      lines.push(now);
      [now, width] = ['', 0];
    }
    now += segment;
    width += more;
  }
  return [...lines, now];
}
