/** What a request to the sidecar leads to at the broker. */
import { addressOf, type PlatformAddress } from './platform-address.ts';

/** `path`: at the broker. `back`: what the broker's addresses of the connection become in an answer. */
export type Route = { path: string; connection: string; isGit: boolean; back: string };

/** Where `gh` sends what it asks, over the Unix socket. */
export const GITHUB_API = 'api.github.com';

/** The connections of a run, by label, or by id where there is none; `codehost`: the one of git and of api.github.com. */
export type Connections = { connections: readonly string[]; codehost: string | undefined };

/** By the path of the broker: `/proxy/<connection>/…`, `/git/…`. `host`: what was asked. `origin`: of the sidecar. */
export function doorRoute(
  target: string,
  { host, origin }: { host: string; origin: string },
  { connections, codehost }: Connections,
): Route | undefined {
  if (!isPlain(target)) return undefined;
  if (codehost !== undefined && host === GITHUB_API)
    return {
      path: `${doorPath(codehost)}${target}`,
      connection: codehost,
      isGit: false,
      back: `https://${GITHUB_API}`,
    };
  if (codehost !== undefined && target.startsWith('/git/'))
    return { path: target, connection: codehost, isGit: true, back: origin };
  const connection = connections.find((one) => /^[/?]|^$/.test(afterDoor(target, one)));
  if (connection === undefined) return undefined;
  return { path: target, connection, isGit: false, back: `${origin}${doorPath(connection)}` };
}

/** The connection by whose address a request came that leads nowhere there. */
export function doorConnection(
  target: string,
  host: string,
  { connections, codehost }: Connections,
): string | undefined {
  if (host === GITHUB_API) return codehost;
  return connections.find((one) => /^[/?]|^$/.test(afterDoor(target, one)));
}

/** By the path of a platform at one of these addresses. `origin`: what stands for theirs. */
export function platformRoute(
  target: string,
  origin: string,
  addresses: readonly PlatformAddress[],
): Route | undefined {
  const address = isPlain(target) ? addressOf(target, addresses) : undefined;
  if (address === undefined) return undefined;
  const { connection, path } = address;
  return {
    path: `${doorPath(connection)}${target.slice(path.length)}`,
    connection,
    isGit: false,
    back: `${origin}${path}`,
  };
}

/** A path, without segments of dots: what the broker would understand by another path is for nobody to find out. */
const isPlain = (target: string): boolean =>
  target.startsWith('/') && !/(?:^|[/\\])(?:\.|%2e){1,2}(?:[/\\?]|%2f|%5c|$)/i.test(target.replace(/\?.*$/s, ''));

const doorPath = (connection: string): string => `/proxy/${encodeURIComponent(connection)}`;

/** `-`: it is not below the door. */
const afterDoor = (target: string, connection: string): string =>
  target.startsWith(doorPath(connection)) ? target.slice(doorPath(connection).length) : '-';

/** The broker's address of a connection in a header. The broker may have another name for itself than the profile has. */
export function doorOf(broker: string, connection: string): RegExp {
  const path = `${new URL(broker).pathname.replace(/\/$/, '')}${doorPath(connection)}`.replace(
    /[\\^$.*+?()[\]{}|]/g,
    '\\$&',
  );
  return new RegExp(`https?://[^/\\s<>]+${path}(?=[/?#>;,\\s]|$)`, 'g');
}

/** What there is, for a refusal. */
export const doorsOf = ({ connections, codehost }: Connections): string =>
  [...connections.map(doorPath), ...(codehost === undefined ? [] : ['/git'])].join(', ');
