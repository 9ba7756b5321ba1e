/** What the characters of a JSON text are, by their code units. */

/** The offset behind the digits that begin at `from`, if there are any. */
export function digitsEnd(text: string, from: number): number {
  let at = from;
  let code = text.charCodeAt(at);
  while (code >= 0x30 && code <= 0x39) code = text.charCodeAt(++at);
  return at;
}

/** Whether a backslash before it makes an escape of two characters: one of `"\/bfnrt`. */
export function isShortEscape(code: number): boolean {
  return (
    code === 0x22 ||
    code === 0x5c ||
    code === 0x6e ||
    code === 0x2f ||
    code === 0x74 ||
    code === 0x72 ||
    code === 0x62 ||
    code === 0x66
  );
}

/** The code unit that four hexadecimal digits name, or -1 where they are none. */
export function hexUnit(text: string, from: number): number {
  let unit = 0;
  for (let at = from; at < from + 4; at++) {
    const code = text.charCodeAt(at);
    const lower = code | 0x20;
    if (code >= 0x30 && code <= 0x39) unit = unit * 16 + code - 0x30;
    else if (lower >= 0x61 && lower <= 0x66) unit = unit * 16 + lower - 0x57;
    else return -1;
  }
  return unit;
}
