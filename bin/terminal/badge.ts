import { type Line, line, type Style, styled } from './line.ts';

const STYLES: Readonly<Record<string, Style>> = { good: 'good', bad: 'bad', wait: 'wait' };

/** Formats a badge of the console. The kinds `good`, `bad` and `wait` are styled; others are plain. */
export function badgeLine({ kind, words }: { kind: string; words: string }): Line {
  const style = STYLES[kind];
  return style ? styled(style, words) : line`${words}`;
}
