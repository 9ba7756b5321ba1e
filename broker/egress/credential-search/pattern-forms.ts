/** Byte patterns of a credential to search for in a canonical view of a response. */
import { type Classes, choicesOfMarkers, undoEscapes, viewOf } from './canonical-view.ts';
import type { Pattern } from './pattern-search.ts';

/** How many layers of escapes are decoded, in a response and in the credential itself. */
export const ROUNDS = 3;

/**
 * Returns the credential as it may appear in a view of these classes: literally, in hexadecimal and in base64.
 *
 * @param shortest minimum length of a pattern in bytes; shorter ones are omitted
 */
export function patternsOf(secret: string, classes: Classes, shortest: number): Pattern[] {
  const hex = Buffer.from(secret).toString('hex');
  const whole = [...spellings(secret).flatMap((bytes) => layers(bytes, classes)), hex, hex.toUpperCase()];
  const patterns = [...whole.map((bytes) => ({ bytes: Buffer.from(bytes), before: false, after: false }))];
  const byBytes = new Map<string, Pattern>();
  for (const pattern of [...patterns, ...base64Forms(secret)]) {
    const { bytes, length } = viewOf(pattern.bytes, classes);
    const key = bytes.toString('latin1', 0, length);
    if (length >= shortest && !byBytes.has(key)) byBytes.set(key, { ...pattern, bytes: Buffer.from(key, 'latin1') });
  }
  return [...byBytes.values()];
}

/** Encodes the secret in the charsets that an upstream may use, and with spaces as `+` as in forms. */
function spellings(secret: string): Buffer[] {
  const utf8 = [secret, secret.replaceAll(' ', '+')].map((text) => Buffer.from(text));
  if (/^[\0-\x7f]*$/.test(secret)) return utf8;
  const utf16 = Buffer.from(secret, 'utf16le');
  const latin1 = /^[\0-\xff]*$/.test(secret) ? [Buffer.from(secret, 'latin1')] : [];
  return [...utf8, cesu8(secret), ...latin1, utf16, Buffer.from(utf16).swap16()];
}

/** CESU-8: surrogates encoded separately, as from two \u escapes of JSON. */
function cesu8(secret: string): Buffer {
  const units = secret.split('').map((unit) => {
    const code = unit.charCodeAt(0);
    if (code < 0xd800 || code > 0xdfff) return Buffer.from(unit);
    return Buffer.from([0xe0 | (code >> 12), 0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f)]);
  });
  return Buffer.concat(units);
}

/**
 * A credential that itself contains something like an escape is decoded too when a view of the response is decoded. The kinds of escapes
 * may be decoded in any order, depending on the outer layers, so all orders are generated.
 */
function layers(bytes: Buffer, classes: Classes): Buffer[] {
  const { bytes: whole, length, markers } = viewOf(bytes, classes);
  const all = new Map([[whole.toString('latin1', 0, length), bytes]]);
  if (markers.length === 0) return [bytes];
  const choices = choicesOfMarkers(classes);
  let last = [bytes];
  for (let round = 0; round < ROUNDS; round++) {
    const next: Buffer[] = [];
    for (const one of last)
      for (const choice of choices) {
        const view = viewOf(one, classes);
        if (!undoEscapes(view, choice)) continue;
        const undone = Buffer.from(view.bytes.subarray(0, view.length));
        const key = undone.toString('latin1');
        if (all.has(key)) continue;
        all.set(key, undone);
        next.push(undone);
      }
    last = next;
  }
  return [...all.values()];
}

/**
 * Base64 and base64url (RFC 4648 §4, §5) of the credential, alone or inside longer data. There it may begin at any of three alignments, and
 * only characters that depend on the credential alone can be searched for.
 */
function base64Forms(secret: string): Pattern[] {
  const bytes = Buffer.from(secret);
  const forms: Pattern[] = [];
  for (const shift of [0, 1, 2]) {
    const bits = (shift + bytes.length) * 8;
    const from = Math.ceil((shift * 8) / 6);
    const text = Buffer.concat([Buffer.alloc(shift), bytes])
      .toString('base64')
      .slice(from, Math.floor(bits / 6));
    const edges = { before: shift !== 0, after: bits % 6 !== 0 };
    for (const form of [text, text.replaceAll('+', '-').replaceAll('/', '_')])
      forms.push({ bytes: Buffer.from(form), ...edges });
  }
  return forms;
}
