/** Texts that others wrote, at length: behind a margin, so that no line of theirs can be taken for one of ours. */
import { counted, countUnseen, piecesOf } from '../../broker/console/static/request-view/text.js';
import { columnsOf, graphemesOf, type Line, line, linesOf, styled, widthOf } from './line.ts';

const MARGIN = '│ ';
/** A terminal that is narrower gets lines of this many columns all the same. */
const NARROWEST = 20;

/** The text behind a margin, wrapped at `width` columns; long empty stretches are counted in place of being printed. */
export function othersWords(text: string, width: number): Line[] {
  const whole = piecesOf(text)
    .map((piece) =>
      piece.gap === undefined ? piece.text : `${piece.breaks ? '\n' : ''}⟦${piece.gap}⟧${piece.breaks ? '\n' : ''}`,
    )
    .join('');
  const lines = linesOf(whole).flatMap((each) => wrapped(each.text, Math.max(NARROWEST, width - MARGIN.length)));
  return lines.map((each) => line`${styled('quiet', MARGIN)}${each}`);
}

/** Warns of characters that do not show; nothing where there are none. */
export function unseenIn(text: string): Line[] {
  const number = countUnseen(text);
  return number === 0
    ? []
    : [styled('bad', `Look closely: ${counted(number, 'invisible character')}, shown by number.`)];
}

/** Warns of what is odd about a text; nothing where nothing is. */
export const warnings = (sentences: readonly string[]): Line[] =>
  sentences.length === 0 ? [] : [styled('bad', `Look closely: ${sentences.join(' ')}`)];

/** A text in pieces of so many columns. */
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
