import { type Line, line, type Style, styled } from './line.ts';

const STYLES: Readonly<Record<string, Style>> = { good: 'good', bad: 'bad', wait: 'wait' };

/** A badge of the console: `kind` says how it stands out; other kinds than `good`, `bad` and `wait` do not. */
export function badgeLine({ kind, words }: { kind: string; words: string }): Line {
  const style = STYLES[kind];
  return style ? styled(style, words) : line`${words}`;
}
