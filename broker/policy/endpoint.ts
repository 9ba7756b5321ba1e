/**
 * Validates that an endpoint is in normal form. The broker normalises nothing for the agent: anything else is refused, so that
 * the same text is matched, logged and sent.
 */

import { foldName, isListed, type NameList, parameterNames } from './names.ts';
import { unescapeOnce, unescapeToFixedPoint } from './spelling.ts';

export type Endpoint = {
  ok: true;
  /** Begins with `/`; escapes are upper case and stand only for characters that need them. */
  path: string;
  /** The raw text after `?`, or the empty string. */
  query: string;
};

const MAX_ENDPOINT_BYTES = 8192;
/** PHP (`max_input_vars`) and Node's `qs` (`parameterLimit`) ignore parameters beyond this number, in a query and in a form. */
export const MAX_PARAMETERS = 1_000;
const MAX_SEGMENTS = 200;

/** RFC 3986 §3.3: pchar and `/`. */
const PATH_CHARACTERS = /^(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})*$/;
/** RFC 3986 §3.4 and the brackets that many APIs use; without `'`, which URL parsers escape in a query. */
const QUERY_CHARACTERS = /^(?:[A-Za-z0-9\-._~!$&()*+,;=:@/?[\]]|%[0-9A-Fa-f]{2})*$/;
/** Escapes of characters that never need one (RFC 3986 §2.3), and escapes in lower case (§6.2.2.1). */
const NEEDLESS_ESCAPE = /%(?:2D|2E|5F|7E|3[0-9]|4[1-9A-F]|5[0-9A]|6[1-9A-F]|7[0-9A])/i;
const LOWER_CASE_ESCAPE = /%(?:[0-9A-F][a-f]|[a-f][0-9A-Fa-f])/;
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;
const DOT_SEGMENT = /^\.\.?$/;

/** Folded names under which credentials are sent in a query. The broker injects credentials itself. */
const CREDENTIAL_NAMES = new Set(
  `accesstoken apikey apitoken authtoken oauthtoken idtoken refreshtoken bearertoken privatetoken sessiontoken clientsecret
  secretkey accesskey authorization xapikey xauthtoken xaccesstoken token bearer jwt secret password passwd sessionid
  xamzsignature xamzcredential xamzsecuritytoken`.split(/\s+/),
);

/** Names of parameters and fields from which some servers take a method other than the one that was checked (hostile case HD-06). */
const METHOD_NAMES = new Set(
  `_method $httpmethod x-http-method x-http-method-override x-method-override x-tunneled-method`
    .split(' ')
    .map(foldName),
);

/**
 * Parses the `endpoint` of an action.
 *
 * @param options.allowEncodedSlash the platform's manifest permits `%2F` inside a segment (project ids, for example).
 * @param options.decodeSlash the platform reads `%2F` as a slash: the decoded path is checked and sent.
 * @param options.refused names of parameters that the platform accepts from no agent (`refused_parameters`).
 * @returns path and query when the text is in normal form, otherwise a sentence for the agent; answer it as a 400 `invalid_endpoint`.
 */
export function parseEndpoint(
  text: string,
  options: { allowEncodedSlash?: boolean; decodeSlash?: boolean; refused?: { query?: NameList | undefined } } = {},
): Endpoint | { ok: false; error: string } {
  const refuse = (error: string) => ({ ok: false as const, error });
  if (text.length > MAX_ENDPOINT_BYTES) return refuse(`the endpoint is longer than ${MAX_ENDPOINT_BYTES} bytes`);
  if (!text.startsWith('/')) return refuse('the endpoint begins with `/` and never names a host: `/path?query`');
  if (CONTROL.test(text)) return refuse('the endpoint holds a control character');
  if (text.includes('#'))
    return refuse('the endpoint holds a `#`; a fragment is never sent (write `%23` for a literal one)');
  const mark = text.indexOf('?');
  const written = mark < 0 ? text : text.slice(0, mark);
  const path = options.decodeSlash === true ? written.replaceAll(/%2f/gi, '/') : written;
  const query = mark < 0 ? '' : text.slice(mark + 1);
  if (mark >= 0 && query === '') return refuse('the endpoint ends in `?` without a query; leave it out');
  const error = pathError(path, options.allowEncodedSlash === true) ?? queryError(query, options.refused?.query);
  return error === undefined ? { ok: true, path, query } : refuse(error);
}

/**
 * Builds the URL that is sent, from the connection's base URL and an endpoint in normal form.
 *
 * @returns undefined when the base URL is not usable, or when the result is not, byte for byte, base path + endpoint.
 */
export function joinUpstreamUrl(baseUrl: string, endpoint: { path: string; query: string }): URL | undefined {
  if (!URL.canParse(baseUrl)) return undefined;
  const base = new URL(baseUrl);
  if (base.search !== '' || base.hash !== '' || base.username !== '' || base.password !== '') return undefined;
  const basePath = base.pathname.endsWith('/') ? base.pathname.slice(0, -1) : base.pathname;
  const target = basePath + endpoint.path + (endpoint.query === '' ? '' : `?${endpoint.query}`);
  if (!URL.canParse(base.origin + target)) return undefined;
  const url = new URL(base.origin + target);
  const same = url.origin === base.origin && url.pathname + url.search === target && url.hash === '';
  return same && url.username === '' && url.password === '' ? url : undefined;
}

function pathError(path: string, allowEncodedSlash: boolean): string | undefined {
  if (!PATH_CHARACTERS.test(path)) return characterError(path, 'path', PATH_CHARACTERS);
  if (!isDecodable(path)) return 'an escape in the path is not UTF-8';
  const segments = path.slice(1).split('/');
  if (segments.length > MAX_SEGMENTS) return `the path has more than ${MAX_SEGMENTS} segments`;
  for (let i = 0; i < segments.length; i++) {
    const error = segmentError(segments[i] ?? '', i === segments.length - 1, allowEncodedSlash);
    if (error !== undefined) return error;
  }
  const needless = NEEDLESS_ESCAPE.exec(path);
  if (needless) return `\`${needless[0]}\` in the path needs no escape: write \`${decodeURIComponent(needless[0])}\``;
  const lower = LOWER_CASE_ESCAPE.exec(path);
  if (lower)
    return `escapes in the path are upper case: write \`${lower[0].toUpperCase()}\` instead of \`${lower[0]}\``;
  return undefined;
}

/**
 * A segment must be plain data in every reading: as it stands, unescaped up to three times, and without `;parameters`. Where escaped slashes are permitted,
 * each piece between them is checked.
 */
function segmentError(segment: string, last: boolean, allowEncodedSlash: boolean): string | undefined {
  if (segment === '') return last ? undefined : 'the path holds an empty segment (`//`)';
  for (const piece of allowEncodedSlash ? segment.split(/%2f/i) : [segment]) {
    const error = pieceError(piece);
    if (error !== undefined) return error;
  }
  return undefined;
}

function pieceError(piece: string): string | undefined {
  if (namesDotSegment(piece)) return 'the path holds a dot segment, or an empty one; write the path that you mean';
  const readings = unescapeToFixedPoint(piece);
  if (readings === undefined) return 'the path is escaped too many times over';
  for (const reading of readings) {
    // NFKC: some servers fold look-alikes of the dot and the slash (U+FF0E, U+FF0F) into the real ones.
    const plain = reading.normalize('NFKC');
    if (CONTROL.test(reading)) return 'the path holds an escaped control character';
    if (/[/\\]/.test(plain)) return 'the path holds an escaped slash or backslash';
    if (namesDotSegment(plain)) return 'the path holds an escaped dot segment';
  }
  return undefined;
}

/** Also for segments such as `..;x`, `;x` and `..%3Fx`, where some servers cut off what follows. */
function namesDotSegment(segment: string): boolean {
  const [name = ''] = segment.split(';', 1);
  const [bare = ''] = segment.split(/[;?#]/, 1);
  return name.trim() === '' || DOT_SEGMENT.test(bare.trim());
}

function queryError(query: string, refused: NameList | undefined): string | undefined {
  if (!QUERY_CHARACTERS.test(query)) return characterError(query, 'query', QUERY_CHARACTERS);
  if (!isDecodable(query)) return 'an escape in the query is not UTF-8';
  if (CONTROL.test(unescapeOnce(query))) return 'the query holds an escaped control character';
  const pairs = query.split(/[&;]/);
  if (pairs.length > MAX_PARAMETERS)
    return `the query has more than ${MAX_PARAMETERS} parameters, of which many servers leave out the last; send fewer`;
  for (const pair of pairs) {
    const [raw = ''] = pair.split('=', 1);
    const name = decodeURIComponent(raw.replaceAll('+', ' '));
    if (namesMethod(name)) {
      return `the query names a method (\`${name}\`); the method of a call is the one in its field \`method\``;
    }
    if (namesCredential(name)) {
      return `the query names a credential (\`${name}\`); leave it out, the broker adds the credential`;
    }
    if (refused && isListed(refused, name)) return refusedParameter('query', name);
  }
  return undefined;
}

/** Whether a server that reads methods from parameters may read one from a parameter or form field of this name. */
export const namesMethod = (name: string): boolean => parameterNames(name).some((one) => METHOD_NAMES.has(one));

/** The refusal of a parameter that the platform's manifest refuses. The parameter is not dropped: without it, the call would do something else. */
export const refusedParameter = (place: 'query' | 'body', name: string): string =>
  `the ${place} names ${JSON.stringify(name.slice(0, 100).toWellFormed())}, which may say for whom or for which account the call is made, or how it is answered, and this platform accepts it from no agent: leave it out, or ask an owner to allow it in the platform's entry (refused_parameters)`;

/** Whether a parameter names a credential: `auth[token]` does so as much as `token`. */
function namesCredential(name: string): boolean {
  const parts = [...parameterNames(name), ...name.split(/[[\]]/).map(foldName)];
  return parts.some((part) => CREDENTIAL_NAMES.has(part.replace(/^_/, '')));
}

/** Whether all percent-encoded bytes of a text are UTF-8. */
export function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

function characterError(text: string, part: 'path' | 'query', allowed: RegExp): string {
  if (/%(?![0-9A-Fa-f]{2})/.test(text))
    return `the ${part} holds a malformed escape; write \`%25\` for a literal \`%\``;
  if (text.includes('\\')) return `the ${part} holds a backslash`;
  const bad = [...text].find((character) => character !== '%' && !allowed.test(character)) ?? '';
  const escaped = /\p{Cs}/u.test(bad) ? '' : `: write \`${encodeURIComponent(bad).replace("'", '%27')}\``;
  return `the ${part} holds a character that must be escaped${escaped}`;
}
