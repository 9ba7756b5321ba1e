/** Checks the origin of a URL by its text: before a name is resolved, and as the only check of IP literals. */
import { isIP } from 'node:net';
import { addressRefusal, isThisMachine, sameAddress } from './address.ts';

/** `host:port`; IPv6 hosts in brackets, names in lower case, as `URL.hostname` writes them. */
export type HostPort = { host: string; port: number };

export type TargetRules = {
  /** Origins that the operator allows though private or on another port (`host:port`). */
  allowPrivate: ReadonlySet<string>;
  /** Origins on the public internet that are allowed on another port (`host:port`). */
  otherPorts?: ReadonlySet<string>;
  /** The broker's own addresses; calling them is refused, listed or not. */
  own: readonly HostPort[];
};

export type Target =
  | { ok: true; host: string; port: number; listed: 'no' | 'name' | 'address' }
  | { ok: false; refused: string };

/** Allowed ports on the public internet. Any other has to be listed by the operator as `host:port` (SS-09). */
const PUBLIC_PORTS = new Set([443, 8443]);
/** Allowed ports of unencrypted requests: none. */
const NO_PORTS = new Set<number>();

/** Parses `host:port` of the operator's settings; undefined when it is not in canonical form. */
export function parseHostPort(text: string): HostPort | undefined {
  const found = /^(\[[0-9a-f:.]+\]|[^\s:/?#@[\]\\]+):(\d{1,5})$/i.exec(text);
  const [, name, digits] = found ?? [];
  if (name === undefined || !URL.canParse(`http://${name}`)) return undefined;
  const host = new URL(`http://${name}`).hostname;
  const port = Number(digits);
  const written = name.toLowerCase();
  if (port < 1 || port > 65_535 || (host !== written && !written.startsWith('['))) return undefined;
  return { host, port };
}

/** The canonical text of a listed origin. */
export function hostPortText({ host, port }: HostPort): string {
  return `${host}:${port}`;
}

/** Parses the operator's settings. Throws when an entry is not `host:port` in normal form. */
export function readTargetRules(listed: {
  allowPrivate: readonly string[];
  otherPorts?: readonly string[];
  own?: readonly string[];
}): TargetRules {
  const read = (text: string) => {
    const found = parseHostPort(text);
    if (found === undefined)
      throw new Error(`"${text}" is not host:port in normal form (names in lower case, IPv6 in brackets)`);
    return found;
  };
  return {
    allowPrivate: new Set(listed.allowPrivate.map((text) => hostPortText(read(text)))),
    otherPorts: new Set((listed.otherPorts ?? []).map((text) => hostPortText(read(text)))),
    own: (listed.own ?? []).map(read),
  };
}

/**
 * Checks the origin of a URL. https only (http where the operator listed the origin), ports 443 and 8443 or listed, no
 * userinfo, no trailing dot, no `localhost`, no address that is not public, never this broker itself (SS-02, SS-03,
 * SS-04, SS-08, SS-09, SS-10). The addresses of a name that passes are checked when a connection is made.
 * `refused` is a code for the audit row; it contains nothing of the URL.
 */
export function checkTarget(url: URL, rules: TargetRules): Target {
  const refuse = (refused: string) => ({ ok: false as const, refused });
  const secure = url.protocol === 'https:';
  if (!secure && url.protocol !== 'http:') return refuse('scheme');
  if (url.username !== '' || url.password !== '') return refuse('userinfo');
  const host = url.hostname;
  const port = url.port === '' ? (secure ? 443 : 80) : Number(url.port);
  const target = checkHost({ host, port }, rules, secure ? PUBLIC_PORTS : NO_PORTS);
  return !secure && !target.ok && target.refused === 'port' ? refuse('scheme') : target;
}

/** The same for a host and a port; `ports`: allowed on the public internet. */
export function checkHost({ host, port }: HostPort, rules: TargetRules, ports: ReadonlySet<number>): Target {
  const refuse = (refused: string) => ({ ok: false as const, refused });
  const address = literalAddress(host);
  if (isOwn(rules.own, host, port)) return refuse('own_address');
  if (address !== undefined && isOwnAddress(rules.own, address, port)) return refuse('own_address');
  const origin = hostPortText({ host, port });
  const isListed = rules.allowPrivate.has(origin);
  const listed = !isListed ? 'no' : address === undefined ? 'name' : 'address';
  if (!isListed) {
    if (!ports.has(port) && !rules.otherPorts?.has(origin)) return refuse('port');
    if (host.endsWith('.')) return refuse('trailing_dot');
    if (host === 'localhost' || host.endsWith('.localhost')) return refuse('loopback');
  }
  const refused = address === undefined ? undefined : addressRefusal(address, listed);
  return refused === undefined ? { ok: true, host, port, listed } : refuse(refused);
}

/** Whether a resolved address is the broker's own. */
export function isOwnAddress(own: readonly HostPort[], ip: string, port: number): boolean {
  return own.some((entry) => {
    if (entry.port !== port) return false;
    const address = literalAddress(entry.host);
    if (address === undefined) return entry.host === 'localhost' && addressRefusal(ip, 'no') === 'loopback';
    return sameAddress(address, ip) || (addressRefusal(address, 'no') === 'unspecified' && isThisMachine(ip));
  });
}

function isOwn(own: readonly HostPort[], host: string, port: number): boolean {
  const name = host.replace(/\.$/, '');
  return own.some((entry) => entry.port === port && entry.host === name);
}

/** The IP address of a URL's host, without brackets; undefined for a name. */
export function literalAddress(host: string): string | undefined {
  const bare = host.startsWith('[') ? host.slice(1, -1) : host;
  return isIP(bare) === 0 ? undefined : bare;
}
