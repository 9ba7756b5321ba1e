/** Which headers of an unmodified client are sent to a platform. */
import { matchesHeader } from './refused-headers.ts';

/** Forwarded headers. Those that describe the body are sent separately (`bodyHeaders`); all others are dropped. */
const SENT = new Set(
  `accept accept-language idempotency-key if-match if-modified-since if-none-match if-range if-unmodified-since
  prefer range`.split(/\s+/),
);

/**
 * Dropped without a notice: headers about the connection, the body, the client itself and the broker. Every client sends some, and dropping
 * them does not change the call.
 */
const UNREPORTED = new Set(
  `accept-encoding authorization connection content-encoding content-length content-type expect host keep-alive te
  trailer transfer-encoding upgrade user-agent`.split(/\s+/),
);
const MAX_REPORTED = 20;

/**
 * Returns the names of the client's headers that `sentHeaders` drops and that its author may expect to be sent: at most 20, in the order
 * received. `token`: the header of the agent's own token.
 */
export function unsentHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  named: readonly string[],
  token: string,
): string[] {
  const isReported = (name: string) =>
    !SENT.has(name) &&
    !UNREPORTED.has(name) &&
    name !== token &&
    !name.startsWith('x-svc-') &&
    !matchesHeader(named, name);
  return Object.keys(headers).filter(isReported).slice(0, MAX_REPORTED);
}

/** Headers that the platform's manifest allows, in the form of `named`. */
export const namedByManifest = ({
  client_headers = [],
  default_headers = {},
}: {
  client_headers?: readonly string[] | undefined;
  default_headers?: Readonly<Record<string, string>> | undefined;
}): string[] => [...client_headers, ...Object.keys(default_headers)].map((name) => name.toLowerCase());

/**
 * Returns the client's headers that may be sent: a fixed list, plus those that the manifest names (`client_headers`, and the names of its
 * default headers). `named`: in lower case; `x-goog-*` matches by prefix.
 */
export function sentHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  named: readonly string[],
): Record<string, string> {
  const isSent = (name: string) => SENT.has(name) || matchesHeader(named, name);
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value !== undefined && isSent(name) ? [[name, [value].flat().join(', ')]] : [],
    ),
  );
}
