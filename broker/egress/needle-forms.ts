/** The byte patterns by which a credential is recognised in a canonical view of an answer. */
import { type Classes, choicesOfMarkers, undoEscapes, viewOf } from './canonical-view.ts';
import type { Needle } from './pattern-search.ts';

/** How many layers of escapes are undone, in an answer and in the credential itself. */
export const ROUNDS = 3;

/**
 * The credential as it may stand in a view of these classes: itself, in hexadecimal and in base64.
 *
 * @param shortest patterns of fewer bytes are left out
 */
export function patternsOf(secret: string, classes: Classes, shortest: number): Needle[] {
  const hex = Buffer.from(secret).toString('hex');
  const whole = [...spellings(secret).flatMap((bytes) => layers(bytes, classes)), hex, hex.toUpperCase()];
  const needles = [...whole.map((bytes) => ({ bytes: Buffer.from(bytes), before: false, after: false }))];
  const byBytes = new Map<string, Needle>();
  for (const needle of [...needles, ...base64Forms(secret)]) {
    const { bytes, length } = viewOf(needle.bytes, classes);
    const key = bytes.toString('latin1', 0, length);
    if (length >= shortest && !byBytes.has(key)) byBytes.set(key, { ...needle, bytes: Buffer.from(key, 'latin1') });
  }
  return [...byBytes.values()];
}

/** In the encodings of characters that an upstream may write, and with blanks as forms write them. */
function spellings(secret: string): Buffer[] {
  const utf8 = [secret, secret.replaceAll(' ', '+')].map((text) => Buffer.from(text));
  if (/^[\0-\x7f]*$/.test(secret)) return utf8;
  const utf16 = Buffer.from(secret, 'utf16le');
  const latin1 = /^[\0-\xff]*$/.test(secret) ? [Buffer.from(secret, 'latin1')] : [];
  return [...utf8, cesu8(secret), ...latin1, utf16, Buffer.from(utf16).swap16()];
}

/** Surrogates one by one, as two \u escapes of JSON name them. */
function cesu8(secret: string): Buffer {
  const units = secret.split('').map((unit) => {
    const code = unit.charCodeAt(0);
    if (code < 0xd800 || code > 0xdfff) return Buffer.from(unit);
    return Buffer.from([0xe0 | (code >> 12), 0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f)]);
  });
  return Buffer.concat(units);
}

/**
 * What looks like an escape in the credential itself is undone in a view of an answer, too; of each kind as soon as no layer
 * of the answer hides it, so in any order.
 */
function layers(bytes: Buffer, classes: Classes): Buffer[] {
  const { bytes: whole, length, hasMarker } = viewOf(bytes, classes);
  const all = new Map([[whole.toString('latin1', 0, length), bytes]]);
  if (!hasMarker) return [bytes];
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
 * Base64 and base64url (RFC 4648 §4, §5) of the credential, alone or inside anything longer: there it may begin at any of
 * three alignments, and only the characters that depend on nothing else can be looked for.
 */
function base64Forms(secret: string): Needle[] {
  const bytes = Buffer.from(secret);
  const forms: Needle[] = [];
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
