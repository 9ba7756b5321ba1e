/** Maps requests to the sidecar to requests to the broker. */
import { addressOf, type PlatformAddress } from './platform-address.ts';

/** `path`: at the broker. `back`: the replacement for the broker's address of the connection in an answer. */
export type Route = { path: string; connection: string; isGit: boolean; back: string };

/** The host for which `gh` sends its requests over the Unix socket. */
export const GITHUB_API = 'api.github.com';

/** The connections of a run, by label, or by id without one; `codehost`: the connection of git and api.github.com. */
export type Connections = {
  connections: readonly string[];
  codehost: string | undefined;
  /** By connection to a registry of npm packages: the registry's own path, where it is not at the root of its host. */
  registryPaths?: ReadonlyMap<string, string>;
};

/** Maps a request by the path of the broker: `/proxy/<connection>/…`, `/git/…`. `host`: the requested host. `origin`: of the sidecar. */
export function proxyRoute(
  target: string,
  { host, origin }: { host: string; origin: string },
  { connections, codehost, registryPaths }: Connections,
): Route | undefined {
  if (!isPlain(target)) return undefined;
  if (codehost !== undefined && host === GITHUB_API)
    return {
      path: `${proxyPath(codehost)}${target}`,
      connection: codehost,
      isGit: false,
      back: `https://${GITHUB_API}`,
    };
  if (codehost !== undefined && target.startsWith('/git/'))
    return { path: target, connection: codehost, isGit: true, back: origin };
  const connection = connections.find((one) => /^[/?]|^$/.test(afterProxyPath(target, one)));
  if (connection === undefined) return undefined;
  const path = withoutRepetition(target, connection, registryPaths?.get(connection));
  return { path, connection, isGit: false, back: `${origin}${proxyPath(connection)}` };
}

/**
 * npm keeps the whole path of a file's address when it replaces the host by the run's registry (`replace-registry-host`, which only looks whether it begins
 * with the path of the run's registry). So the path of a registry is sent although the connection's base URL includes it. Addresses of files have `/-/`
 * after the package's name, so no other address is changed, not even that of a package that is named like the path.
 */
function withoutRepetition(target: string, connection: string, registryPath: string | undefined): string {
  const rest = afterProxyPath(target, connection);
  if (registryPath === undefined || !rest.startsWith(registryPath)) return target;
  const file = rest.slice(registryPath.length);
  return /^\/(?:@[^/]+\/)?[^/]+\/-\//.test(file) ? `${proxyPath(connection)}${file}` : target;
}

/** Returns the connection whose address the request has, for a request without a route. */
export function proxyConnection(
  target: string,
  host: string,
  { connections, codehost }: Connections,
): string | undefined {
  if (host === GITHUB_API) return codehost;
  return connections.find((one) => /^[/?]|^$/.test(afterProxyPath(target, one)));
}

/** Maps a request by the path of a platform at one of these addresses. `origin`: replaces theirs in answers. */
export function platformRoute(
  target: string,
  origin: string,
  addresses: readonly PlatformAddress[],
): Route | undefined {
  const address = isPlain(target) ? addressOf(target, addresses) : undefined;
  if (address === undefined) return undefined;
  const { connection, path } = address;
  return {
    path: `${proxyPath(connection)}${target.slice(path.length)}`,
    connection,
    isGit: false,
    back: `${origin}${path}`,
  };
}

/** Whether the target is a path without dot segments, which the broker might resolve to another path. */
const isPlain = (target: string): boolean =>
  target.startsWith('/') && !/(?:^|[/\\])(?:\.|%2e){1,2}(?:[/\\?]|%2f|%5c|$)/i.test(target.replace(/\?.*$/s, ''));

const proxyPath = (connection: string): string => `/proxy/${encodeURIComponent(connection)}`;

/** The rest of the path below the connection's prefix; `-` when the path is not below it. */
const afterProxyPath = (target: string, connection: string): string =>
  target.startsWith(proxyPath(connection)) ? target.slice(proxyPath(connection).length) : '-';

/** Matches the broker's address of a connection in a header. The broker may have another name for itself than the profile has. */
export function clientUrlOf(broker: string, connection: string): RegExp {
  const path = `${new URL(broker).pathname.replace(/\/$/, '')}${proxyPath(connection)}`.replace(
    /[\\^$.*+?()[\]{}|]/g,
    '\\$&',
  );
  return new RegExp(`https?://[^/\\s<>]+${path}(?=[/?#>;,\\s]|$)`, 'g');
}

/** The existing path prefixes as one text, for refusals. */
export const listProxyPrefixes = ({ connections, codehost }: Connections): string =>
  [...connections.map(proxyPath), ...(codehost === undefined ? [] : ['/git'])].join(', ');
