/** Finds a secret in all encodings in which it may leak (hostile cases, CX). */

/** Returns the encodings by name. The secret needs 32 characters or more, so that half of it is still unique. */
export function formsOf(secret: string): Map<string, string> {
  const bytes = Buffer.from(secret);
  const hex = bytes.toString('hex');
  const percent = encodeURIComponent(secret);
  const json = JSON.stringify(secret).slice(1, -1);
  const half = Math.floor(secret.length / 2);
  const forms = new Map<string, string>([
    ['raw', secret],
    ['hex', hex],
    ['HEX', hex.toUpperCase()],
    ['percent', percent],
    ['percent in lower case', percent.replaceAll(/%../g, (code) => code.toLowerCase())],
    ['form-encoded', new URLSearchParams({ '': secret }).toString().slice(1)],
    ['percent but slashes', percent.replaceAll('%2F', '/')],
    ['percent with marks', percent.replace(/[!'()*~_.-]/g, (mark) => `%${mark.charCodeAt(0).toString(16)}`)],
    ['percent twice', encodeURIComponent(percent)],
    ['percent three times', encodeURIComponent(encodeURIComponent(percent))],
    ['JSON twice', JSON.stringify(json).slice(1, -1)],
    ['percent in JSON in HTML', asHtml(JSON.stringify(percent).slice(1, -1), /[&<>"']/g)],
    ['HTML', asHtml(secret, /[&<>"']/g)],
    ['HTML of templates', asHtml(secret, /[&<>"'`=/]/g)],
    ['JavaScript', secret.replace(/[^a-z0-9]/gi, (char) => `\\x${char.charCodeAt(0).toString(16)}`)],
    ['base64 in lines', bytes.toString('base64').replace(/.{20}(?=.)/g, '$&\r\n')],
    ['hex in lines', hex.replace(/.{20}(?=.)/g, '$&\n')],
    ['JSON', json],
    ['JSON with escaped slashes', json.replaceAll('/', '\\/')],
    ['all \\u escapes', [...secret].map((c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')],
    ['reversed', [...secret].reverse().join('')],
    ['first half', secret.slice(0, half)],
    ['second half', secret.slice(half)],
    ['first half reversed', [...secret.slice(0, half)].reverse().join('')],
    ['second half reversed', [...secret.slice(half)].reverse().join('')],
  ]);
  for (const shift of [0, 1, 2]) {
    const core = coreOf(bytes, shift);
    forms.set(`base64 at ${shift}`, core);
    forms.set(`base64url at ${shift}`, core.replaceAll('+', '-').replaceAll('/', '_'));
    const again = Buffer.from(core);
    for (const outer of [0, 1, 2]) forms.set(`base64 at ${shift} in base64 at ${outer}`, coreOf(again, outer));
  }
  return forms;
}

/** Returns the base64 characters of bytes at this alignment that do not depend on neighbouring bytes. */
function coreOf(bytes: Buffer, shift: number): string {
  const base64 = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64');
  return base64.slice(Math.ceil((shift * 8) / 6), Math.floor(((shift + bytes.length) * 8) / 6));
}

function asHtml(text: string, special: RegExp): string {
  return text.replace(special, (char) => `&#x${char.charCodeAt(0).toString(16)};`);
}

/** Returns the names of the encodings that are found in a text or in bytes. */
export function leaksOf(secret: string, where: string | Uint8Array): string[] {
  return leaksIn({ '': secret }, where).map(([, form]) => form);
}

/** A search term: one encoding of a secret, as bytes. */
type Needle = { name: string; form: string; bytes: Buffer };

/** Returns every encoding of each of these secrets, by name, that is found in a text or in bytes. */
export const leaksIn = (secrets: Readonly<Record<string, string>>, where: string | Uint8Array): [string, string][] =>
  leakFinder(secrets)(where);

/** Returns a search function for many texts: the encodings are computed once, and each text is searched in one pass. */
export function leakFinder(
  secrets: Readonly<Record<string, string>>,
): (where: string | Uint8Array) => [string, string][] {
  const needles = Object.entries(secrets).flatMap(([name, secret]): Needle[] =>
    [...formsOf(secret)].flatMap(([form, text]) => {
      const wide = Buffer.from(text, 'utf16le');
      return [Buffer.from(text), wide, Buffer.from(wide).swap16()].map((bytes) => ({ name, form, bytes }));
    }),
  );
  // Indexed by their first three bytes, to skip positions quickly.
  const beginning = (bytes: Uint8Array, at: number) => (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!;
  const byBeginning = Map.groupBy(needles, ({ bytes }) => beginning(bytes, 0));
  return (where) => {
    const bytes = typeof where === 'string' ? Buffer.from(where) : where;
    const found = new Set<Needle>();
    for (let at = 0; at + 3 <= bytes.length; at++) {
      for (const needle of byBeginning.get(beginning(bytes, at)) ?? [])
        if (needle.bytes.equals(bytes.subarray(at, at + needle.bytes.length))) found.add(needle);
    }
    const pairs = needles.filter((needle) => found.has(needle)).map(({ name, form }) => `${name}\n${form}`);
    return [...new Set(pairs)].map((pair) => pair.split('\n') as [string, string]);
  };
}
