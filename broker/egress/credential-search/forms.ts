/**
 * The fixed list of forms in which a credential is searched for in a streamed answer: literally, with any character percent-encoded or
 * JSON-escaped, in hexadecimal, and in base64 at three alignments, the latter also across line breaks. Nested encodings are decoded in
 * buffered answers only (escapes.ts): on a stream they have no bound.
 */
import { SHORTEST_CREDENTIAL } from './patterns.ts';

/** A form: for each of its characters, the byte strings that may represent it. */
export type Form = {
  readonly characters: readonly (readonly Uint8Array[])[];
  /** Whether white space may occur between two characters; see `MIN_LINE`. */
  readonly gaps: boolean;
};

/** Shorter credentials are not searched for across white space: words of a text may spell one. */
const SHORTEST_ACROSS = 16;

/** Returns all forms of the credentials. Credentials shorter than `SHORTEST_CREDENTIAL` have none. */
export function formsOf(secrets: readonly string[]): Form[] {
  return longEnough(secrets).flatMap((secret) => [textForm(secret), hexForm(secret), ...base64Forms(secret)]);
}

/** The literal credentials only: for data whose other bytes are compressed. */
export function rawForms(secrets: readonly string[]): Buffer[] {
  return longEnough(secrets).map((secret) => Buffer.from(secret));
}

const longEnough = (secrets: readonly string[]) => secrets.filter(({ length }) => length >= SHORTEST_CREDENTIAL);

/** JSON's single-character escapes (RFC 8259 §7). */
const SHORT_ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  '\b': 'b',
  '\f': 'f',
  '\n': 'n',
  '\r': 'r',
  '\t': 't',
};

function textForm(secret: string): Form {
  return { characters: [...secret].map(spellings), gaps: false };
}

function spellings(character: string): Uint8Array[] {
  const percent = [...Buffer.from(character)].map((byte) => `%${hexOf(byte, 2)}`).join('');
  const json = character
    .split('')
    .map((unit) => `\\u${hexOf(unit.charCodeAt(0), 4)}`)
    .join('');
  const short = SHORT_ESCAPES[character];
  return bytesOf([
    character,
    ...bothCases(percent),
    ...bothCases(json),
    ...(short === undefined ? [] : [`\\${short}`]),
    ...(character === ' ' ? ['+'] : []),
  ]);
}

function hexForm(secret: string): Form {
  const digits = Buffer.from(secret).toString('hex');
  return { characters: [...digits].map((digit) => bytesOf([digit, digit.toUpperCase()])), gaps: false };
}

/**
 * Base64 and base64url (RFC 4648 §4, §5) of the credential, alone or inside longer data: there it may begin at any of three alignments, and
 * only the characters that depend on the credential alone are searched for. Those next to them carry a few bits of its first and last byte.
 */
function base64Forms(secret: string): Form[] {
  const bytes = Buffer.from(secret);
  const gaps = secret.replaceAll(/\s/g, '').length >= SHORTEST_ACROSS;
  return [0, 1, 2].map((shift) => {
    const text = Buffer.concat([Buffer.alloc(shift), bytes])
      .toString('base64')
      .slice(Math.ceil((shift * 8) / 6), Math.floor(((shift + bytes.length) * 8) / 6));
    return { characters: [...text].map(base64Spellings), gaps };
  });
}

function base64Spellings(character: string): Uint8Array[] {
  if (character === '+') return bytesOf(['+', '-', '%2B', '%2b', '\\u002B', '\\u002b']);
  if (character === '/') return bytesOf(['/', '_', '%2F', '%2f', '\\/', '\\u002F', '\\u002f']);
  return bytesOf([character]);
}

const hexOf = (value: number, digits: number) => value.toString(16).padStart(digits, '0');

/** Both cases of the digits; `%` has no case, and the `u` of JSON's escapes is always lower case. */
const bothCases = (escaped: string) => [escaped, escaped.toUpperCase().replaceAll('\\U', '\\u')];

const bytesOf = (texts: readonly string[]) => [...new Set(texts)].map((text) => Uint8Array.from(Buffer.from(text)));
