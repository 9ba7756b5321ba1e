/** Maps requests to the sidecar to requests to the broker. */
import { GITHUB_BY_PROXY } from './git-rules.ts';
import { addressOf, type PlatformAddress } from './platform-address.ts';

/** `path`: at the broker. `baseUrl`: at which the command reaches the platform. */
export type Route = { path: string; connection: string; isGit: boolean; baseUrl: string };

/** The host for which `gh` sends its requests over the Unix socket. */
export const GITHUB_API = 'api.github.com';

/** The connections of a run, by label, or by id without one; `codehost`: the connection of git and api.github.com. */
export type Connections = {
  connections: readonly string[];
  codehost: string | undefined;
  /** By connection to a registry of npm packages: the path of the registry at its host, without a slash at its end. */
  registryPaths?: ReadonlyMap<string, string>;
  /** By connection: the beginning of all paths of its platform, which is added to a path without it. */
  pathStarts?: ReadonlyMap<string, string>;
};

/** Maps a request by the path of the broker: `/proxy/<connection>/…`, `/git/…`. `host`: the requested host. `origin`: of the sidecar. */
export function proxyRoute(
  target: string,
  { host, origin }: { host: string; origin: string },
  { connections, codehost, registryPaths, pathStarts }: Connections,
): Route | undefined {
  if (!isPlain(target)) return undefined;
  if (codehost !== undefined && host === GITHUB_API)
    return {
      path: `${proxyPath(codehost)}${target}`,
      connection: codehost,
      isGit: false,
      baseUrl: `https://${GITHUB_API}`,
    };
  if (codehost !== undefined && target.startsWith('/git/'))
    return { path: target, connection: codehost, isGit: true, baseUrl: origin };
  const connection = connections.find((one) => /^[/?]|^$/.test(afterProxyPath(target, one)));
  const file = registryFile(target, connection, registryPaths);
  if (connection === undefined)
    return file && { ...file, isGit: false, baseUrl: `${origin}${proxyPath(file.connection)}` };
  const path = file?.path ?? withStart(target, connection, pathStarts?.get(connection));
  return { path, connection, isGit: false, baseUrl: `${origin}${proxyPath(connection)}` };
}

function withStart(target: string, connection: string, start = ''): string {
  const asked = afterProxyPath(target, connection);
  return asked.startsWith(`${start}/`) ? target : `${proxyPath(connection)}${start}${asked}`;
}

/** The file of a package in a registry: `/app/-/app-1.0.0.tgz`, `/@acme/app/-/app-1.0.0.tgz`. */
const PACKAGE_FILE = /^\/(?:@[^/]+\/)?[^/]+\/-\//;

/**
 * Maps the address of a package's file. npm replaces only the host of such an address by that of the run's registry (`replace-registry-host`), so it
 * requests `<path of the registry>/app/-/app-1.0.0.tgz`: `npm install` below the run's registry, although the connection's base URL includes the path
 * of the registry, and `npm pack app` at the root. Addresses of files have `/-/` after the package's name, so no other address is mapped, not even that
 * of a package that is named like the path.
 *
 * @param connection the connection of the request; undefined at the root, where only the one registry of a run is meant
 */
function registryFile(
  target: string,
  connection: string | undefined,
  paths: ReadonlyMap<string, string> = new Map(),
): Pick<Route, 'path' | 'connection'> | undefined {
  const [only, ...others] = paths.keys();
  const registry = connection ?? (others.length === 0 ? only : undefined);
  const path = registry === undefined ? undefined : paths.get(registry);
  if (registry === undefined || path === undefined) return undefined;
  const asked = connection === undefined ? target : afterProxyPath(target, connection);
  const file = asked.startsWith(path) ? asked.slice(path.length) : '';
  return PACKAGE_FILE.test(file) ? { path: `${proxyPath(registry)}${file}`, connection: registry } : undefined;
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

/** Maps a request of git to its proxy, in absolute-form; undefined when it is for another host. */
export const gitPathOf = (target: string): string | undefined =>
  target.startsWith(GITHUB_BY_PROXY) ? `/git/${target.slice(GITHUB_BY_PROXY.length)}` : undefined;

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
    baseUrl: `${origin}${path}`,
  };
}

/** Whether the target is a path without dot segments, which the broker might resolve to another path. */
const isPlain = (target: string): boolean =>
  target.startsWith('/') && !/(?:^|[/\\])(?:\.|%2e){1,2}(?:[/\\?]|%2f|%5c|$)/i.test(target.replace(/\?.*$/s, ''));

const proxyPath = (connection: string): string => `/proxy/${encodeURIComponent(connection)}`;

/** The rest of the path below the connection's prefix; `-` when the path is not below it. */
const afterProxyPath = (target: string, connection: string): string =>
  target.startsWith(proxyPath(connection)) ? target.slice(proxyPath(connection).length) : '-';

/** The existing path prefixes as one text, for refusals. */
export const listProxyPrefixes = ({ connections, codehost }: Connections): string =>
  [...connections.map(proxyPath), ...(codehost === undefined ? [] : ['/git'])].join(', ');
