/**
 * Allow-list of response headers that an agent gets: paging, retry time, validators, rate limits, and request ids for the
 * platform's support. All others are dropped.
 */
import type { CredentialPatterns } from '../credential-search/patterns.ts';

const NAMES = new Set(['link', 'retry-after', 'etag', 'last-modified', 'ratelimit']);
const PREFIXES = ['x-ratelimit-', 'x-rate-limit-', 'ratelimit-'];
/** `x-github-request-id`, `x-slack-req-id`, `x-amzn-requestid`. */
const REQUEST_ID = /(?:^|-)(?:request-?id|req-id|correlation-id)$/;
const MAX_NAMED = 50;
const MAX_VALUE = 4_096;

export type ShownHeaders = {
  /** By name in lower case; repeated headers are joined by commas (RFC 9110 §5.3). Undefined when there are none. */
  headers: Record<string, string> | undefined;
  /** Whether the credential was found in them and replaced. */
  redacted: boolean;
};

const NOTHING: ShownHeaders = Object.freeze({ headers: undefined, redacted: false });

/** The original bytes of a header: Node decodes each byte as one character (Latin-1). */
export const bytesOfHeader = (text: string): Buffer => Buffer.from(text, 'latin1');

/** Filters the headers of an answer for the agent. `headers`: as received, names in lower case. */
export function readAnswerHeaders(
  headers: Readonly<Record<string, string | string[]>>,
  patterns: CredentialPatterns,
): ShownHeaders {
  const found: [name: string, value: string][] = [];
  for (const [name, value] of Object.entries(headers)) {
    if (found.length < MAX_NAMED && isShown(name)) found.push([name, Array.isArray(value) ? value.join(', ') : value]);
  }
  if (found.length === 0) return NOTHING;
  // One search over all of them, because usually there is nothing to redact.
  const isClean = !patterns.isIn(bytesOfHeader(found.map((one) => one.join(': ')).join('\n')));
  const clean = isClean ? found : found.flatMap(([name, value]) => redacted(name, value, patterns));
  return {
    headers: Object.fromEntries(clean.map(([name, value]) => [name, value.slice(0, MAX_VALUE)])),
    redacted: !isClean,
  };
}

function isShown(name: string): boolean {
  return NAMES.has(name) || PREFIXES.some((prefix) => name.startsWith(prefix)) || REQUEST_ID.test(name);
}

/** Drops a header whose name contains the credential, or whose value contains it in bytes that its characters do not show. */
function redacted(name: string, value: string, patterns: CredentialPatterns): [string, string][] {
  const clean = patterns.redact(value);
  return patterns.redact(name) !== name || patterns.isIn(bytesOfHeader(`${name}: ${clean}`)) ? [] : [[name, clean]];
}
