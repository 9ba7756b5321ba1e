/** Which kinds of personal data a call seems to hold: the kinds only, never a value (specification, Receipt, PII flags). */
import { textOf } from '../../json/text-of.ts';
import { hasValueOf, PERSONAL_KINDS, type PersonalKind } from '../policy/value-kinds.ts';
import type { Action } from '../wire/action.ts';

export type PiiKind = PersonalKind;

/** The `pii` column and the member of a receipt; null for what was not looked at. */
export type PiiFlags = { request: PiiKind[] | null; response: PiiKind[] | null };

/** Only the beginning is scanned: a flag is a hint for auditors, and must not cost more than the call. */
const SCANNED_CHARACTERS = 65_536;

/** As much of a text in UTF-8 as is looked at; a string as it is. */
export function beginningOf(text: string | Buffer): string {
  return typeof text === 'string' ? text : text.toString('utf8', 0, SCANNED_CHARACTERS);
}

/** The kinds found in the first 64 Ki characters, in a fixed order. Linear in the text. */
export function piiKinds(whole: string): PiiKind[] {
  const text = whole.length > SCANNED_CHARACTERS ? whole.slice(0, SCANNED_CHARACTERS) : whole;
  return PERSONAL_KINDS.filter((kind) => hasValueOf(kind, text));
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
