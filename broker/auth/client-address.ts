/** Client addresses as keys of rate limits, strikes and rows. */
import { isIP } from 'node:net';

/** Replaces a value that is not an address, such as arbitrary text in X-Forwarded-For. */
const UNKNOWN = 'unknown';

/**
 * Returns the part of an address that identifies one client: all of IPv4, the /64 of IPv6, IPv4-mapped IPv6 as IPv4. Drops the port that some
 * proxies add: each connection would count as another client. Everything that is not an address counts as one client, `unknown`.
 */
export function clientKey(given: string): string {
  const version = isIP(given);
  if (version === 4) return given;
  const address = version === 6 ? given : withoutPort(given);
  if (!address.includes(':')) return address;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  const [head = '', tail] = address.split('::');
  const groups = head === '' ? [] : head.split(':');
  if (tail !== undefined) {
    const tailGroups = tail.split(':');
    while (groups.length + tailGroups.length < 8) groups.push('0');
    groups.push(...tailGroups);
  }
  return `${groups.slice(0, 4).join(':')}::/64`;
}

/** Parses `192.0.2.1:4711` and `[2001:db8::1]:4711`. */
function withoutPort(given: string): string {
  const address = /^\[([0-9a-f:.%]+)\](?::\d+)?$/i.exec(given)?.[1] ?? /^([0-9.]+):\d+$/.exec(given)?.[1] ?? '';
  return isIP(address) === 0 ? UNKNOWN : address;
}

/**
 * Returns the part of a `clientKey` that identifies one network: all of IPv4, the /48 of IPv6 (RFC 6177), whose holder can use all
 * of its 65,536 /64s.
 */
export function siteOf(clientKey: string): string {
  return clientKey.includes(':') ? `${clientKey.split(':').slice(0, 3).join(':')}::/48` : clientKey;
}
