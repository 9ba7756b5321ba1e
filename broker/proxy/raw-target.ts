/** The target of a raw request: `/proxy/{connection}/{path…}`, parsed from the request line. */
import { storable } from '../wire/action.ts';

/** `connection`: its label or id, decoded. `endpoint`: path and query as sent; `/` without a path. */
export type RawTarget = { connection: string; endpoint: string };

const TARGET = /^\/proxy\/([^/?]{1,200})([/?].*)?$/s;

/** Undefined when it is not such a target. What follows the connection stays undecoded, because a decoded path may be another one. */
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

/** Returns the base URL for clients of a platform, in place of its own. `connection`: its label or id. */
export const clientUrlOf = (proxyUrl: string, connection: string): string =>
  `${proxyUrl}/proxy/${encodeURIComponent(connection)}`;
