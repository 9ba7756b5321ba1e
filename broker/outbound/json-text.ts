/** JSON as text: kept as the upstream wrote it, so that its numbers keep their digits. */
import type { SecretNeedles } from './needles.ts';

/**
 * Takes the credential out of a JSON text. Strings that hold escapes are looked at decoded, because any character of
 * the credential may be escaped; the others, and all that is between them, as they stand. When nothing is found the
 * very same text comes back. A text that is no JSON is treated as well as it can be.
 */
export function redactJson(text: string, needles: SecretNeedles): string {
  if (!text.includes('\\')) return needles.redact(text);
  const parts: string[] = [];
  let copied = 0;
  let at = text.indexOf('"');
  while (at !== -1) {
    const { end, escaped } = stringEnd(text, at);
    if (escaped) {
      const written = text.slice(at, end);
      const clean = redactEscaped(written, needles);
      if (clean !== written) {
        parts.push(text.slice(copied, at), clean);
        copied = end;
      }
    }
    at = text.indexOf('"', end);
  }
  return needles.redact(copied === 0 ? text : parts.join('') + text.slice(copied));
}

function redactEscaped(written: string, needles: SecretNeedles): string {
  try {
    const decoded: unknown = JSON.parse(written);
    if (typeof decoded !== 'string') return written;
    const clean = needles.redact(decoded);
    return clean === decoded ? written : JSON.stringify(clean);
  } catch {
    return written;
  }
}

/** The offset behind the string that begins at `at`, and whether it holds an escape. */
function stringEnd(text: string, at: number): { end: number; escaped: boolean } {
  let escaped = false;
  for (let i = at + 1; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x22) return { end: i + 1, escaped };
    if (code === 0x5c) {
      escaped = true;
      i++;
    }
  }
  return { end: text.length, escaped };
}

/** Whether arrays and objects are nested deeper than `levels`: readers that recurse would break on them. */
export function isDeeperThan(text: string, levels: number): boolean {
  if (text.length <= levels) return false;
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x22) i = stringEnd(text, i).end - 1;
    else if (code === 0x5b || code === 0x7b) {
      if (++depth > levels) return true;
    } else if (code === 0x5d || code === 0x7d) depth--;
  }
  return false;
}

/**
 * The members of a JSON object as they are written, by name. Undefined when a name is there twice: two readers would not
 * agree on which counts.
 *
 * @param text one that JSON.parse takes for an object
 */
export function memberTexts(text: string): Map<string, string> | undefined {
  const members = new Map<string, string>();
  let name: string | undefined;
  let from = 0;
  let depth = 0;
  const keep = (to: number) => {
    if (name !== undefined) members.set(name, text.slice(from, to).trim());
    name = undefined;
  };
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x22) {
      const { end } = stringEnd(text, i);
      if (depth === 1 && name === undefined) {
        name = JSON.parse(text.slice(i, end)) as string;
        if (members.has(name)) return undefined;
        from = text.indexOf(':', end) + 1;
        i = from - 1;
      } else i = end - 1;
    } else if (code === 0x5b || code === 0x7b) depth++;
    else if (code === 0x5d || code === 0x7d) {
      if (--depth === 0) keep(i);
    } else if (code === 0x2c && depth === 1) keep(i);
  }
  return members;
}

/** Whether JSON.parse takes the text. */
export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
