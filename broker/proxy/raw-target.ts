/** The target of a raw request: `/proxy/{connection}/{path…}`, parsed from the request line. */
import { storable } from '../wire/action.ts';

/**
 * `connection`: its label or id, decoded. `endpoint`: path and query as sent; `/` without a path. Only `%2f` in the path becomes `%2F`, which is equivalent
 * (RFC 3986, 6.2.2.1) and is decided, recorded and sent: npm and Yarn write `/@acme%2fapp`, and nobody can change an unmodified client.
 */
export type RawTarget = { connection: string; endpoint: string };

const TARGET = /^\/proxy\/([^/?]{1,200})([/?].*)?$/s;

/** Undefined when it is not such a target. What follows the connection stays undecoded, because a decoded path may be another one. */
export function readRawTarget(target: string): RawTarget | undefined {
  const [, segment, rest = '/'] = TARGET.exec(target) ?? [];
  if (segment === undefined) return undefined;
  try {
    const connection = decodeURIComponent(segment);
    const endpoint = rest.startsWith('?') ? `/${rest}` : rest;
    const [path = ''] = endpoint.split('?', 1);
    return storable(connection)
      ? { connection, endpoint: path.replaceAll('%2f', '%2F') + endpoint.slice(path.length) }
      : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the base URL for clients of a platform, in place of its own. `connection`: its label or id. */
export const clientUrlOf = (proxyUrl: string, connection: string): string =>
  `${proxyUrl}/proxy/${encodeURIComponent(connection)}`;
