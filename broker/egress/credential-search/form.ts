/** Encodes JSON as `application/x-www-form-urlencoded`, nested as Stripe and others do. */

import { MAX_PARAMETERS, namesMethod } from '../../policy/endpoint.ts';
import type { JsonObject, JsonValue } from '../../policy/facts.ts';
import { foldName } from '../../policy/names.ts';

export type FormBody = { ok: true; body: string } | { ok: false; error: string };

/**
 * Encodes an object as a form: `{"a":{"b":1},"c":["x"]}` is `a[b]=1&c[0]=x`. Lists have indices; null is the empty string, which is how
 * these APIs unset a value; booleans and numbers are written as in JSON. Ambiguous content is refused with a sentence that names the place:
 * empty objects and lists, and member names that are empty or contain control characters or brackets (`{"a[b]":1}` would be parsed
 * differently than it was judged); so are more fields than servers read.
 */
export function encodeForm(object: JsonObject): FormBody {
  const pairs: string[] = [];
  const error =
    write(object, '', pairs) ??
    (pairs.length > MAX_PARAMETERS
      ? `a form has at most ${MAX_PARAMETERS} fields, as many servers leave out those after them; send fewer`
      : undefined);
  return error === undefined ? { ok: true, body: pairs.join('&') } : { ok: false, error };
}

/**
 * Returns why an object cannot be sent as a form, in a sentence for the agent; undefined when it can. A field such as `_method` makes Rack,
 * Symfony and Laravel treat a POST as another method than the judged one.
 */
export function formProblem(object: JsonObject): string | undefined {
  const charset = Object.entries(object).find(([name, value]) => namesCharset(name, value));
  if (charset) return `${JSON.stringify(charset[0])}: a form is sent in UTF-8; leave it out`;
  const name = Object.keys(object).find(namesMethod);
  if (name === undefined) return undefined;
  return `the form names a method (${JSON.stringify(name)}); the method of a call is the one in its field \`method\``;
}

/**
 * Whether a field declares that the other fields are not in UTF-8 (RFC 7578 section 4.6), as Jetty supports. They would be read as other
 * texts than were judged.
 */
export const namesCharset = (name: string, value: JsonValue): boolean =>
  foldName(name) === CHARSET && !/^utf-?8$/i.test(String(value));

const CHARSET = foldName('_charset_');

function write(value: JsonValue, name: string, pairs: string[]): string | undefined {
  if (typeof value !== 'object' || value === null) {
    pairs.push(`${name}=${value === null ? '' : encodeURIComponent(String(value).toWellFormed())}`);
    return undefined;
  }
  const isList = Array.isArray(value);
  const members = Object.entries(value);
  if (members.length === 0 && name !== '') {
    return `${decodeURIComponent(name).slice(0, 64).toWellFormed()}: a form cannot express an empty ${isList ? 'list' : 'object'}; leave it out, or send null to unset it`;
  }
  for (const [member, inner] of members) {
    // PHP truncates a name at a NUL.
    if (member === '' || /[[\]\p{Cc}]/u.test(member)) {
      return `${JSON.stringify(member.slice(0, 64))}: a member name in a form must not be empty, and has no brackets or control characters`;
    }
    const part = encodeURIComponent(member.toWellFormed());
    const error = write(inner, name === '' ? part : `${name}[${part}]`, pairs);
    if (error !== undefined) return error;
  }
  return undefined;
}
