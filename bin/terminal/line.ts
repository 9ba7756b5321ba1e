/**
 * Lines for a terminal that are safe against injection: in every value of a line, invisible characters are shown by number, so that
 * neither a control sequence nor a bidirectional mark reaches the terminal.
 */
import { visibleLine } from '../../broker/console/static/visible.js';

/** A style for emphasis. Never the only carrier of information: the text says the same. */
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

/** One line that is safe to print. Only `line` and `styled` create one. */
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

  /** `colour`: whether to include the escape codes of its styles. */
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

/** Tagged template that makes a line of literal text and escaped values. */
export const line = (words: TemplateStringsArray, ...values: readonly Value[]): Line =>
  new Line(
    words.flatMap((text, i) => {
      const value = values[i];
      return [{ text }, ...(value === undefined ? [] : partsOf(value))];
    }),
  );

/** Returns the value with a style. */
export const styled = (style: Style, value: Value): Line =>
  new Line(partsOf(value).map(({ text }) => ({ text, style })));

/** Joins lines into one. */
export const joined = (lines: readonly Line[], between: string): Line =>
  new Line(lines.flatMap(({ parts }, i) => (i === 0 ? parts : [{ text: between }, ...parts])));

/** Splits a foreign text into its lines. */
export const linesOf = (text: string): Line[] => text.split('\n').map((each) => line`${each}`);

/** Yields the characters as a reader perceives them. Loaded lazily: the first Segmenter takes 13 ms, and most texts are ASCII. */
export function* graphemesOf(text: string): Generator<string> {
  for (const { segment } of new Intl.Segmenter('en', { granularity: 'grapheme' }).segment(text)) yield segment;
}

// East Asian Wide and Fullwidth (UAX #11), approximated by script, and emoji.
const WIDE =
  /^[\p{Script=Han}\p{Script=Hangul}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Bopomofo}\p{Script=Yi}\u3000-\u303e\uff01-\uff60\uffe0-\uffe6\p{Emoji_Presentation}]|\ufe0f/u;

/** Returns the width of a text in columns. */
export function widthOf(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  let width = 0;
  for (const grapheme of graphemesOf(text)) width += columnsOf(grapheme);
  return width;
}

/** Returns the width of a grapheme in columns. */
export const columnsOf = (grapheme: string): number => (WIDE.test(grapheme) ? 2 : /^\p{M}+$/u.test(grapheme) ? 0 : 1);

/** Truncates the line to so many columns, with an ellipsis where it was longer. */
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

/** Pads the line with spaces to so many columns. */
export const padded = (whole: Line, columns: number): Line =>
  new Line([...whole.parts, { text: ' '.repeat(Math.max(0, columns - widthOf(whole.text))) }]);
