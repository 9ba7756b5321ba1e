/**
 * JSON as a call may carry it: what a person is shown, what a rule looks at, what is hashed and what is sent must be
 * one and the same value, so a text that two readers could understand differently is refused (decisions, Calling).
 */
import type { JsonValue } from '../policy/facts.ts';
import { JsonScan, type StrictJsonLimits } from './json-scan.ts';

export type { StrictJsonLimits } from './json-scan.ts';

export type StrictJson = { ok: true; value: JsonValue } | { ok: false; error: string };

/**
 * Parses one JSON text (RFC 8259). On top of the grammar it refuses: more than 64 levels, a name twice in one object
 * (compared after unescaping), a number that JSON.stringify would write with another decimal value (`1e999`, 20
 * digits; `1.0`, `1e2` and `-0` are fine), lone surrogates, and `\u0000` outside `limits.nulAllowedIn`.
 *
 * `error` says where (a JSON pointer, RFC 6901, or an offset in UTF-16 units) and why; it may quote up to 40
 * characters of the text. Nothing is thrown. Objects carry a member `__proto__` as their own, plain member: never
 * merge them into another object.
 */
export function parseStrictJson(text: string, limits: StrictJsonLimits = {}): StrictJson {
  if (!text.isWellFormed()) return { ok: false, error: 'the text holds a lone surrogate; send well-formed UTF-8' };
  const error = new JsonScan(text, limits).run();
  if (error !== undefined) return { ok: false, error };
  try {
    return { ok: true, value: JSON.parse(text) as JsonValue };
  } catch {
    return { ok: false, error: 'the text is not JSON' };
  }
}
