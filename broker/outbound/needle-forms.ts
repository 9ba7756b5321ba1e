/** The encodings in which a whole credential is recognised. The list is a promise: see the security notes. */

/** A text to look for. `before` and `after`: neighbouring characters that belong to it in part. */
export type Needle = { text: string; before: number; after: number };

/** Percent-encoded (RFC 3986, and as forms do it), hexadecimal, and escaped as JSON libraries do. */
export function escapedForms(secret: string): Needle[] {
  const well = secret.toWellFormed();
  const percent = encodeURIComponent(well);
  const form = percent.replace(/[!'()*~]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
  const hex = Buffer.from(well).toString('hex');
  const json = JSON.stringify(well).slice(1, -1);
  const texts = [
    percent,
    lowerEscapes(percent),
    form.replaceAll('%20', '+'),
    lowerEscapes(form).replaceAll('%20', '+'),
    hex,
    hex.toUpperCase(),
    json,
    json.replaceAll('/', '\\/'),
    unicodeEscapes(json, (code) => code),
    unicodeEscapes(json, (code) => code.toUpperCase()),
  ];
  return texts.map((text) => ({ text, before: 0, after: 0 }));
}

function lowerEscapes(percent: string): string {
  return percent.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase());
}

/** Many JSON writers escape what would matter in HTML. */
function unicodeEscapes(json: string, write: (code: string) => string): string {
  return json.replace(/[+/=&<>'`]/g, (char) => `\\u${write(char.charCodeAt(0).toString(16).padStart(4, '0'))}`);
}

/**
 * Base64 and base64url (RFC 4648 §4, §5) of the credential, alone or inside anything longer: there it may begin at any of
 * three alignments, and only the characters that depend on nothing else can be looked for.
 */
export function base64Forms(secret: string): Needle[] {
  const bytes = Buffer.from(secret);
  const forms: Needle[] = [];
  for (const shift of [0, 1, 2]) {
    const bits = (shift + bytes.length) * 8;
    const from = Math.ceil((shift * 8) / 6);
    const text = Buffer.concat([Buffer.alloc(shift), bytes])
      .toString('base64')
      .slice(from, Math.floor(bits / 6));
    const edges = { before: shift === 0 ? 0 : 1, after: bits % 6 === 0 ? 0 : 1 };
    forms.push({ text, ...edges });
    if (/[+/]/.test(text)) forms.push({ text: text.replaceAll('+', '-').replaceAll('/', '_'), ...edges });
  }
  return forms;
}
