/** Classifies characters of a JSON text by their code units. */

/** Returns the offset after the digits that begin at `from`; `from` when there are none. */
export function digitsEnd(text: string, from: number): number {
  let at = from;
  let code = text.charCodeAt(at);
  while (code >= 0x30 && code <= 0x39) code = text.charCodeAt(++at);
  return at;
}

/** Whether a character after a backslash forms an escape of two characters: one of `"\/bfnrt`. */
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

/** Returns the code unit of four hexadecimal digits, or -1 when they are not hexadecimal. */
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
