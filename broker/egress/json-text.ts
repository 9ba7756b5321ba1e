/** JSON as text: kept as the upstream wrote it, so that its numbers keep their digits. */
/** The offset behind the string that begins at `at`. */
function stringEnd(text: string, at: number): number {
  for (let i = at + 1; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x22) return i + 1;
    if (code === 0x5c) i++;
  }
  return text.length;
}

/** Whether arrays and objects are nested deeper than `levels`: readers that recurse would break on them. */
export function isDeeperThan(text: string, levels: number): boolean {
  if (text.length <= levels) return false;
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === 0x22) i = stringEnd(text, i) - 1;
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
      const end = stringEnd(text, i);
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
