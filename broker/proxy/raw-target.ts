/** The target of a raw request: `/proxy/{connection}/{path…}`, read as it stands in the request's first line. */
import { storable } from '../wire/action.ts';

/** `connection`: its label or id, decoded. `endpoint`: path and query as they were sent; `/` where there is no path. */
export type RawTarget = { connection: string; endpoint: string };

const TARGET = /^\/proxy\/([^/?]{1,200})([/?].*)?$/s;

/** Undefined: it is none. What follows the connection is judged undecoded: what a router decodes may be another path. */
export function readRawTarget(target: string): RawTarget | undefined {
  const [, segment, rest = '/'] = TARGET.exec(target) ?? [];
  if (segment === undefined) return undefined;
  try {
    const connection = decodeURIComponent(segment);
    return storable(connection) ? { connection, endpoint: rest.startsWith('?') ? `/${rest}` : rest } : undefined;
  } catch {
    return undefined;
  }
}

/** The base URL for clients of a platform, in place of its own. `connection`: its label or id. */
export const doorOf = (proxyUrl: string, connection: string): string =>
  `${proxyUrl}/proxy/${encodeURIComponent(connection)}`;
