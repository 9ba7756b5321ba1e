/** Parses Markdown, as far as the tests of the docs need it. */

export type Fence = { info: string; text: string; line: number };

/** Returns the fenced blocks of a page, with the line at which each begins. */
export function fencesOf(markdown: string): Fence[] {
  return [...markdown.matchAll(/^```([^\n]*)\n(.*?)^```$/gms)].map(({ 1: info = '', 2: text = '', index }) => ({
    info,
    text,
    line: markdown.slice(0, index).split('\n').length,
  }));
}

/** Returns a page without its fenced blocks. */
export const withoutFences = (markdown: string): string => markdown.replace(/^```[^\n]*\n.*?^```$/gms, '');
