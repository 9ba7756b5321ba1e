/** Which kinds of personal data a call seems to hold: the kinds only, never a value (specification, Receipt, PII flags). */
import { textOf } from '../../json/text-of.ts';
import type { Action } from '../wire/action.ts';

export type PiiKind = 'email' | 'phone' | 'card' | 'iban' | 'national_id';

/** The `pii` column and the member of a receipt; null for what was not looked at. */
export type PiiFlags = { request: PiiKind[] | null; response: PiiKind[] | null };

/** Only the beginning is scanned: a flag is a hint for auditors, and must not cost more than the call. */
const SCANNED_CHARACTERS = 65_536;

/** Begins with the `@`: from each character before one on, it would be 64 times the work. */
const EMAIL = /@(?<=[\p{L}\p{N}._%+-]@)(?:[\p{L}\p{N}-]{1,63}\.){1,8}\p{L}{2,24}/u;
const PHONE = /(?<![\w+])\+[1-9](?:[ ().-]{0,2}\d){7,14}(?!\d)/;
const CARD = /(?<![\d.-])\d(?:[ -]?\d){12,18}(?![\d.])/g;
const IBAN = /\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}\b/g;
const US_SSN = /(?<![\d-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\d-])/;

/** ISO/IEC 7812-1, annex B. */
function passesLuhn(digits: string): boolean {
  let sum = 0;
  for (let i = 0; i < digits.length; i++) {
    let digit = digits.charCodeAt(digits.length - 1 - i) - 48;
    if (i % 2 === 1) digit = digit > 4 ? digit * 2 - 9 : digit * 2;
    sum += digit;
  }
  return sum % 10 === 0;
}

/** ISO 13616: the rearranged number is 1 modulo 97. */
function isIban(text: string): boolean {
  if (text.length < 15 || text.length > 34) return false;
  let remainder = 0;
  for (const character of text.slice(4) + text.slice(0, 4)) {
    const value = Number.parseInt(character, 36);
    remainder = (remainder * (value > 9 ? 100 : 10) + value) % 97;
  }
  return remainder === 1;
}

function some(text: string, pattern: RegExp, accept: (match: string) => boolean): boolean {
  for (const match of text.matchAll(pattern)) if (accept(match[0].replaceAll(/[ -]/g, ''))) return true;
  return false;
}

/** As much of a text in UTF-8 as is looked at; a string as it is. */
export function beginningOf(text: string | Buffer): string {
  return typeof text === 'string' ? text : text.toString('utf8', 0, SCANNED_CHARACTERS);
}

/** The kinds found in the first 64 Ki characters, in a fixed order. Linear in the text. */
export function piiKinds(whole: string): PiiKind[] {
  const text = whole.length > SCANNED_CHARACTERS ? whole.slice(0, SCANNED_CHARACTERS) : whole;
  const kinds: PiiKind[] = [];
  if (text.includes('@') && EMAIL.test(text)) kinds.push('email');
  if (text.includes('+') && PHONE.test(text)) kinds.push('phone');
  // Everything below needs consecutive digits: most texts return here.
  if (!/\d{2}/.test(text)) return kinds;
  if (some(text, CARD, passesLuhn)) kinds.push('card');
  if (some(text, IBAN, isIban)) kinds.push('iban');
  if (US_SSN.test(text)) kinds.push('national_id');
  return kinds;
}

/**
 * The kinds in a call before its response: in its endpoint with the query, its headers and its body. `isBodyUnread`: it has a body that
 * nobody looks at, such as bytes, a text or a stream. Null: nothing was found, and the body was not looked at.
 */
export function piiOfRequest(
  { endpoint, headers, data, encoding }: Pick<Action, 'endpoint' | 'headers' | 'data' | 'encoding'>,
  isBodyUnread = false,
): PiiKind[] | null {
  // In a URL `@` and `+` stand as escapes.
  const url = endpoint.replace(/%[2-7][0-9a-f]/gi, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)));
  const sent = headers === undefined ? '' : Object.values(headers).join('\n');
  // Bytes are no text.
  const isBytes = encoding !== undefined;
  const body = data === undefined || isBytes ? '' : textOf(data);
  const kinds = piiKinds(`${url}\n${sent}\n${body}`);
  return kinds.length === 0 && (isBytes || isBodyUnread) ? null : kinds;
}
