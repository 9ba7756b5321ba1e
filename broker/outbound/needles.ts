/**
 * The credential that was injected, in the forms in which an upstream may echo it, and how to take them out of an answer
 * (CX-01, CX-09). Only whole credentials are looked for: if parts counted, an agent that makes the upstream echo its
 * guesses could read the credential off the redactions, letter by letter.
 */
import type { Secret } from '../crypto/secret.ts';
import { base64Forms, escapedForms, type Needle } from './needle-forms.ts';

/** What is put in the place of a credential. */
export const REDACTED = '[redacted]';

/** Below this many characters nothing is looked for: such texts occur by themselves. */
export const SHORTEST_CREDENTIAL = 8;

/** Holds credentials, so like `Secret` it cannot be printed or serialised. */
export class SecretNeedles {
  readonly #needles: readonly Needle[];

  /** Use `makeNeedles`. Longer needles first, so that none cuts another in two. */
  constructor(needles: readonly Needle[]) {
    this.#needles = needles.toSorted((a, b) => b.text.length - a.text.length);
  }

  /** Whether a form of the credential is in the text. */
  inText(text: string): boolean {
    return this.#needles.some((needle) => text.includes(needle.text));
  }

  /** Whether a form of the credential is in the bytes as UTF-8. */
  inUtf8(bytes: Buffer): boolean {
    return this.#needles.some(({ text }) => bytes.includes(text));
  }

  /** Whether a form of the credential is in the bytes, as UTF-8 or as UTF-16 of either byte order. */
  inBytes(bytes: Buffer): boolean {
    if (this.inUtf8(bytes)) return true;
    return this.#needles.some(({ text }) => {
      const utf16 = Buffer.from(text, 'utf16le');
      return bytes.includes(utf16) || bytes.includes(utf16.swap16());
    });
  }

  /** The text with every form of the credential replaced; the very same text when there is none. */
  redact(text: string): string {
    let current = text;
    for (const needle of this.#needles) if (current.includes(needle.text)) current = replaceAll(current, needle);
    return current;
  }

  toJSON(): string {
    return '[secret]';
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return '[secret]';
  }
}

/**
 * Prepares the search for a credential; takes some microseconds, so make it once a connection.
 *
 * @param options.basic the credential is `user:password`: the password alone is looked for as well.
 */
export function makeNeedles(secret: Secret, options: { basic?: boolean } = {}): SecretNeedles {
  const whole = secret.reveal();
  const secrets = [whole];
  const colon = whole.indexOf(':');
  if (options.basic && colon !== -1) secrets.push(whole.slice(colon + 1));
  const byText = new Map<string, Needle>();
  for (const value of secrets) {
    if (value.length < SHORTEST_CREDENTIAL) continue;
    const forms = [{ text: value, before: 0, after: 0 }, ...escapedForms(value), ...base64Forms(value)];
    for (const form of forms) if (!byText.has(form.text)) byText.set(form.text, form);
  }
  return new SecretNeedles([...byText.values()]);
}

const BASE64 = /[A-Za-z0-9+/_-]/;

function replaceAll(text: string, needle: Needle): string {
  let done = '';
  let from = 0;
  for (;;) {
    const at = text.indexOf(needle.text, from);
    if (at === -1) return done + text.slice(from);
    let start = at;
    let end = at + needle.text.length;
    // The neighbours carry some bits of the credential's first and last byte.
    if (needle.before > 0 && start > from && BASE64.test(text[start - 1]!)) start--;
    if (needle.after > 0 && BASE64.test(text[end] ?? '')) end++;
    if (needle.after > 0) while (text[end] === '=') end++;
    done += text.slice(from, start) + REDACTED;
    from = end;
  }
}
