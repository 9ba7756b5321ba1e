/** Which headers of a client that was not written for the broker are sent to a platform. */
import { matchesHeader } from './refused-headers.ts';

/** What describes the body is sent by itself (`bodyHeaders`); everything else of a client is left out. */
const SENT = new Set(
  `accept accept-language idempotency-key if-match if-modified-since if-none-match if-range if-unmodified-since
  prefer range`.split(/\s+/),
);

/**
 * The client's headers that may be sent: a fixed list, and what the manifest names (`client_headers`, and the names of its default
 * headers). `named`: lower case; `x-goog-*` names all that begin so.
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
