/** JSON that stays text, as somebody else wrote it, so that its numbers keep their digits. */
import { JsonTokens } from './tokens.ts';

/** Whether JSON.parse takes the text, and nothing in it is nested deeper than `levels`. */
export function isJsonWithin(text: string, levels: number): boolean {
  const tokens = new JsonTokens(text);
  for (;;) {
    const token = tokens.next();
    if (token === 'end') return true;
    if (token === 'bad' || tokens.depth > levels) return false;
  }
}

/**
 * The members of a JSON object as they are written, by name. Undefined when a name is there twice: two readers would not
 * agree on which counts.
 *
 * @param text one that JSON.parse takes for an object
 */
export function memberTexts(text: string): Map<string, string> | undefined {
  const tokens = new JsonTokens(text);
  const members = new Map<string, string>();
  tokens.next();
  while (tokens.next() === 'name') {
    const name = JSON.parse(text.slice(tokens.start, tokens.end)) as string;
    if (members.has(name)) return undefined;
    tokens.next();
    const from = tokens.start;
    while (tokens.depth > 1) tokens.next();
    members.set(name, text.slice(from, tokens.end));
  }
  return members;
}
