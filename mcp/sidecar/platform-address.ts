/** The addresses of granted platforms, for commands that use those addresses: through the proxy, or on a port of their own. */
import type { Chosen, Granted } from './environment.ts';

export type PlatformAddress = {
  connection: string;
  isTls: boolean;
  /** Host name as `new URL` writes it, without the brackets of an IPv6 address. */
  host: string;
  port: number;
  /** The path prefix of the platform: '' or `/api`. */
  path: string;
};

/**
 * Returns the addresses of each connection, that of the platform before those of single operations. Where several connections share one, the order is: the connection that the variables of a tool use, the
 * default of its platform, by name; where the person named connections, in that order. Connections without a known address are left out.
 */
export function platformAddresses(
  granted: readonly Granted[],
  { chosen, isNamed }: { chosen: readonly Chosen[]; isNamed: boolean },
): PlatformAddress[] {
  const isChosen = (name: string) => chosen.some(({ connection }) => connection.name === name);
  const rank = ({ name, isDefault }: Granted) => (isChosen(name) ? 0 : 2) + (isDefault ? 0 : 1);
  const sorted = [...granted].sort(
    (a, b) => rank(a) - rank(b) || (isNamed ? 0 : a.name < b.name ? -1 : a.name > b.name ? 1 : 0),
  );
  return sorted.flatMap(({ name, baseUrl = '', otherBaseUrls = [] }) =>
    [...new Set([baseUrl, ...otherBaseUrls])].flatMap((address) => {
      const url = URL.parse(address);
      if (url === null) return [];
      const isTls = url.protocol === 'https:';
      return {
        ...{ connection: name, isTls, path: url.pathname.replace(/\/+$/, '') },
        ...{ host: bareHost(url.hostname), port: Number(url.port) || (isTls ? 443 : 80) },
      };
    }),
  );
}

/** Removes the brackets, and the dot at the end that a fully qualified name may have. */
export const bareHost = (hostname: string): string => hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');

/** The origin as it stands in a URL: the default port is left out. */
export const originOf = ({ isTls, host, port }: Omit<PlatformAddress, 'connection' | 'path'>): string =>
  new URL(`${isTls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`).origin;

/** Returns the address with the longest prefix of a path, the first among equals; undefined when none matches. */
export function addressOf(target: string, addresses: readonly PlatformAddress[]): PlatformAddress | undefined {
  const fitting = addresses.filter(({ path }) => target.startsWith(path) && /^[/?]|^$/.test(target.slice(path.length)));
  return fitting.reduce<PlatformAddress | undefined>(
    (best, one) => (best === undefined || one.path.length > best.path.length ? one : best),
    undefined,
  );
}
