/** Where granted platforms are, for commands that ask for their own addresses: through the proxy, or on a port of their own. */
import type { Chosen, Granted } from './environment.ts';

export type PlatformAddress = {
  connection: string;
  isTls: boolean;
  /** As `new URL` writes it, without the brackets of an IPv6 address. */
  host: string;
  port: number;
  /** Below which everything is the platform's: '' or `/api`. */
  path: string;
};

/**
 * The first of a host and path is taken: the one that the variables of a tool lead to, then the default of its platform, then by name;
 * where the person named them, in that order. Those whose platform says no address are left out.
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
  return sorted.flatMap(({ name, baseUrl }) => {
    const url = URL.parse(baseUrl ?? '');
    if (url === null) return [];
    const isTls = url.protocol === 'https:';
    return {
      ...{ connection: name, isTls, path: url.pathname.replace(/\/+$/, '') },
      ...{ host: bareHost(url.hostname), port: Number(url.port) || (isTls ? 443 : 80) },
    };
  });
}

/** Without brackets, and without the dot at the end that a full name may have. */
export const bareHost = (hostname: string): string => hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');

/** As it stands in a URL: the usual port is left out. */
export const originOf = ({ isTls, host, port }: Omit<PlatformAddress, 'connection' | 'path'>): string =>
  new URL(`${isTls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${port}`).origin;

/** The address that a path is below, the longest and then the first of those; undefined: it is of none. */
export function addressOf(target: string, addresses: readonly PlatformAddress[]): PlatformAddress | undefined {
  const fitting = addresses.filter(({ path }) => target.startsWith(path) && /^[/?]|^$/.test(target.slice(path.length)));
  return fitting.reduce<PlatformAddress | undefined>(
    (best, one) => (best === undefined || one.path.length > best.path.length ? one : best),
    undefined,
  );
}
