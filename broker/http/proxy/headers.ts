/** The broker's own headers of a raw request. */
import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import { maskedHeader } from '../../proxy/answer-headers.ts';

const DEFAULT_WAIT_MS = 25_000;
const MAX_WAIT_SECONDS = 120;

/** Parses the seconds in `X-Svc-Wait`; undefined when the value is invalid. */
function waitSeconds(value: unknown): number | undefined {
  const seconds = typeof value === 'string' && /^\d{1,4}$/.test(value) ? Number(value) : Number.NaN;
  return seconds <= MAX_WAIT_SECONDS ? seconds : undefined;
}

/** Returns the client's wait for a person in milliseconds: from `X-Svc-Wait` (seconds), else the connection's setting `ofConnection`. */
export function waitOf({ 'x-svc-wait': value }: IncomingHttpHeaders, ofConnection: number | null): number {
  const seconds = waitSeconds(value);
  return seconds === undefined ? (ofConnection ?? DEFAULT_WAIT_MS) : seconds * 1000;
}

const MAX_BASE_URL_LENGTH = 2_048;

/** Parses `X-Svc-Base-Url`; undefined when the value is no base URL. */
function baseUrl(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > MAX_BASE_URL_LENGTH) return undefined;
  const url = URL.parse(value);
  const isBase = url !== null && /^https?:$/.test(url.protocol) && url.search === '' && url.hash === '';
  return isBase && url.username === '' && url.password === '' ? url.href.replace(/\/+$/, '') : undefined;
}

/**
 * Returns the URL at which the client reaches the connection, from `X-Svc-Base-Url`: that of a server in between which adds the token. URLs of the
 * platform in its answer are replaced by it. Undefined when the client uses the broker's own. Only the authenticated client itself gets them.
 */
export const baseUrlOf = ({ 'x-svc-base-url': value }: IncomingHttpHeaders): string | undefined => baseUrl(value);

const MAX_REASON_LENGTH = 2_048;

/** `X-Svc-Reason`: the agent's reason, in its own words. */
export function reasonOf({ 'x-svc-reason': value }: IncomingHttpHeaders): string | undefined {
  if (typeof value !== 'string' || value === '') return undefined;
  // Node decodes header bytes as Latin-1, which is what some clients send; others send UTF-8.
  const bytes = Buffer.from(value, 'latin1');
  return isUtf8(bytes) ? bytes.toString('utf8') : value;
}

/** Returns what is wrong with the broker's own headers, as text for a 400. */
export function headerProblem(headers: IncomingHttpHeaders): string | undefined {
  const { 'x-svc-wait': wait, 'x-svc-base-url': base } = headers;
  if (wait !== undefined && waitSeconds(wait) === undefined)
    return `X-Svc-Wait: write a whole number of seconds from 0 to ${MAX_WAIT_SECONDS}.`;
  if (base !== undefined && baseUrl(base) === undefined)
    return 'X-Svc-Base-Url: write the http or https URL at which the client reaches the connection, without a query.';
  const { length } = reasonOf(headers) ?? '';
  return length > MAX_REASON_LENGTH
    ? `X-Svc-Reason: has ${length} characters; write at most ${MAX_REASON_LENGTH}.`
    : undefined;
}

/**
 * Returns the broker's own headers of an answer of the platform. `unsent`: names of the client's headers that were not sent; `followed`: the host that a
 * redirect was followed to; `maskedBy`: the rules that masked something.
 */
export const notesOf = ({
  unsent,
  followed,
  maskedBy,
}: {
  unsent: readonly string[];
  followed?: string | undefined;
  maskedBy?: readonly string[] | undefined;
}): Record<string, string> => ({
  ...(unsent.length > 0 && { 'X-Svc-Dropped-Headers': unsent.join(', ') }),
  ...(followed !== undefined && { 'X-Svc-Followed': followed }),
  ...maskedHeader(maskedBy),
});
