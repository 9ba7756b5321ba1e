/** Detects kinds of personal data in a call: the kinds only, never a value (specification, Receipt, PII flags). */
import { textOf } from '../../json/text-of.ts';
import { hasValueOf, PERSONAL_KINDS, type PersonalKind } from '../policy/value-kinds.ts';
import type { Action } from '../wire/action.ts';

export type PiiKind = PersonalKind;

/** The `pii` column and the member of a receipt; null for a side that was not scanned. */
export type PiiFlags = { request: PiiKind[] | null; response: PiiKind[] | null };

/** Only the beginning is scanned: a flag is a hint for auditors, and must not cost more than the call. */
const SCANNED_CHARACTERS = 65_536;

/** Decodes as much of a UTF-8 text as is scanned; returns a string unchanged. */
export function beginningOf(text: string | Buffer): string {
  return typeof text === 'string' ? text : text.toString('utf8', 0, SCANNED_CHARACTERS);
}

/** Returns the kinds found in the first 64 Ki characters, in a fixed order. Linear in the text's length. */
export function piiKinds(whole: string): PiiKind[] {
  const text = whole.length > SCANNED_CHARACTERS ? whole.slice(0, SCANNED_CHARACTERS) : whole;
  return PERSONAL_KINDS.filter((kind) => hasValueOf(kind, text));
}

/**
 * Returns the kinds in the request: in its endpoint with the query, its headers and its body. `isBodyUnread`: the request has a body that
 * is not scanned, such as binary data, text or a stream. Null: nothing was found, and the body was not scanned.
 */
export function piiOfRequest(
  { endpoint, headers, data, encoding }: Pick<Action, 'endpoint' | 'headers' | 'data' | 'encoding'>,
  isBodyUnread = false,
): PiiKind[] | null {
  // A URL may carry `@` and `+` percent-encoded.
  const url = endpoint.replace(/%[2-7][0-9a-f]/gi, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)));
  const sent = headers === undefined ? '' : Object.values(headers).join('\n');
  // Binary data is not scanned.
  const isBytes = encoding !== undefined;
  const body = data === undefined || isBytes ? '' : textOf(data);
  const kinds = piiKinds(`${url}\n${sent}\n${body}`);
  return kinds.length === 0 && (isBytes || isBodyUnread) ? null : kinds;
}
