/**
 * Lines for a terminal. What others wrote cannot act on it: every value that a line is made of is shown with its invisible
 * characters by number, so that neither a control sequence nor a bidirectional mark arrives.
 */
import { visibleLine } from '../../broker/console/static/visible.js';

/** What stands out. Never the only sign of anything: the words say the same. */
export type Style = 'bold' | 'quiet' | 'good' | 'bad' | 'wait';
type Part = { text: string; style?: Style };

/** Select Graphic Rendition, ECMA-48 section 8.3.117: on and off. */
const CODES: Record<Style, readonly [on: number, off: number]> = {
  bold: [1, 22],
  quiet: [2, 22],
  good: [32, 39],
  bad: [31, 39],
  wait: [33, 39],
};

/** One line, safe to print. Only `line` and `styled` make one. */
export class Line {
  readonly #parts: readonly Part[];

  constructor(parts: readonly Part[]) {
    this.#parts = parts;
  }

  get parts(): readonly Part[] {
    return this.#parts;
  }

  get text(): string {
    return this.#parts.map(({ text }) => text).join('');
  }

  /** `colour`: with the codes of its styles. */
  print(colour: boolean): string {
    if (!colour) return this.text;
    return this.#parts
      .map(({ text, style }) => {
        if (style === undefined || text === '') return text;
        const [on, off] = CODES[style];
        return `\u001b[${on}m${text}\u001b[${off}m`;
      })
      .join('');
  }
}

type Value = Line | string | number;

const partsOf = (value: Value): readonly Part[] =>
  value instanceof Line ? value.parts : [{ text: visibleLine(String(value)) }];

/** A line of our own words with values in it. */
export const line = (words: TemplateStringsArray, ...values: readonly Value[]): Line =>
  new Line(
    words.flatMap((text, i) => {
      const value = values[i];
      return [{ text }, ...(value === undefined ? [] : partsOf(value))];
    }),
  );

/** The same value, standing out. */
export const styled = (style: Style, value: Value): Line =>
  new Line(partsOf(value).map(({ text }) => ({ text, style })));

/** Lines in a row. */
export const joined = (lines: readonly Line[], between: string): Line =>
  new Line(lines.flatMap(({ parts }, i) => (i === 0 ? parts : [{ text: between }, ...parts])));

/** A text of others with its own lines, each behind `before`. */
export const linesOf = (text: string, before = ''): Line[] => text.split('\n').map((each) => line`${before}${each}`);

/** What a reader takes for one character each. Made when it is asked for: the first one takes 13 ms, and most texts are ASCII. */
export function* graphemesOf(text: string): Generator<string> {
  for (const { segment } of new Intl.Segmenter('en', { granularity: 'grapheme' }).segment(text)) yield segment;
}

// East Asian Wide and Fullwidth (UAX #11), as far as scripts tell, and emoji.
const WIDE =
  /^[\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Bopomofo}\p{Script=Yi}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6\p{Emoji_Presentation}]|\ufe0f/u;

/** How many columns a text takes. */
export function widthOf(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  let width = 0;
  for (const grapheme of graphemesOf(text)) width += columnsOf(grapheme);
  return width;
}

/** How many columns one of them takes. */
export const columnsOf = (grapheme: string): number => (WIDE.test(grapheme) ? 2 : /^\p{M}+$/u.test(grapheme) ? 0 : 1);

/** The line in so many columns, with an ellipsis where it was longer. */
export function cut(whole: Line, columns: number): Line {
  if (widthOf(whole.text) <= columns) return whole;
  const parts: Part[] = [];
  let left = Math.max(0, columns - 1);
  for (const { text, style } of whole.parts) {
    let kept = '';
    for (const grapheme of graphemesOf(text)) {
      left -= columnsOf(grapheme);
      if (left < 0) break;
      kept += grapheme;
    }
    parts.push({ text: kept, ...(style && { style }) });
    if (left < 0) break;
  }
  return new Line([...parts, { text: columns > 0 ? '…' : '' }]);
}

/** The line, filled with spaces to so many columns. */
export const padded = (whole: Line, columns: number): Line =>
  new Line([...whole.parts, { text: ' '.repeat(Math.max(0, columns - widthOf(whole.text))) }]);
