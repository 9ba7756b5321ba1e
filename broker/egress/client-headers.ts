/** Which headers of a client that was not written for the broker are sent to a platform. */
import { matchesHeader } from './refused-headers.ts';

/** What describes the body is sent by itself (`bodyHeaders`); everything else of a client is left out. */
const SENT = new Set(
  `accept accept-language idempotency-key if-match if-modified-since if-none-match if-range if-unmodified-since
  prefer range`.split(/\s+/),
);

/** About the connection, the body, the client itself and the broker: every client sends some of them, and no call is another without. */
const UNTOLD = new Set(
  `accept-encoding authorization connection content-encoding content-length content-type expect host keep-alive te
  trailer transfer-encoding upgrade user-agent`.split(/\s+/),
);
const MOST_TOLD = 20;

/**
 * The names of the client's headers that `sentHeaders` leaves out and that its author may wonder about: at most 20, in the order in which
 * they came. `token`: the header of the agent's own token.
 */
export function unsentHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  named: readonly string[],
  token: string,
): string[] {
  const isTold = (name: string) =>
    !SENT.has(name) && !UNTOLD.has(name) && name !== token && !name.startsWith('x-svc-') && !matchesHeader(named, name);
  return Object.keys(headers).filter(isTold).slice(0, MOST_TOLD);
}

/** The headers that a platform's manifest has sent on, as `named`. */
export const namedByManifest = ({
  client_headers = [],
  default_headers = {},
}: {
  client_headers?: readonly string[] | undefined;
  default_headers?: Readonly<Record<string, string>> | undefined;
}): string[] => [...client_headers, ...Object.keys(default_headers)].map((name) => name.toLowerCase());

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
