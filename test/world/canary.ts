/** The forms in which a secret may leak, and the search for all of them (hostile cases, CX). */

/** The forms by name. A secret of 32 characters or more, so that its halves still mean it. */
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
    const base64 = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64');
    // Only the characters that no neighbour has a part in.
    const core = base64.slice(Math.ceil((shift * 8) / 6), Math.floor(((shift + bytes.length) * 8) / 6));
    forms.set(`base64 at ${shift}`, core);
    forms.set(`base64url at ${shift}`, core.replaceAll('+', '-').replaceAll('/', '_'));
  }
  return forms;
}

function asHtml(text: string, special: RegExp): string {
  return text.replace(special, (char) => `&#x${char.charCodeAt(0).toString(16)};`);
}

/** The names of the forms that stand in a text or in bytes. */
export function leaksOf(secret: string, where: string | Uint8Array): string[] {
  const bytes = Buffer.from(where);
  const utf16 = (text: string) => Buffer.from(text, 'utf16le');
  return [...formsOf(secret)]
    .filter(([, form]) => bytes.includes(form) || bytes.includes(utf16(form)) || bytes.includes(utf16(form).swap16()))
    .map(([name]) => name);
}
