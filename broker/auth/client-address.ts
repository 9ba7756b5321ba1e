/** Client addresses as keys of rate limits, strikes and rows. */

/** The part of an address that identifies one client: all of IPv4, the /64 of IPv6, IPv4-mapped IPv6 as IPv4. */
export function clientKey(address: string): string {
  if (!address.includes(':')) return address;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  const [head = '', tail] = address.split('::');
  const groups = head === '' ? [] : head.split(':');
  if (tail !== undefined) {
    const tailGroups = tail === '' ? [] : tail.split(':');
    while (groups.length + tailGroups.length < 8) groups.push('0');
    groups.push(...tailGroups);
  }
  return `${groups.slice(0, 4).join(':')}::/64`;
}

/**
 * The part of a `clientKey` that identifies one network: all of IPv4, the /48 of IPv6 (RFC 6177), whose holder can use all
 * of its 65,536 /64s.
 */
export function siteOf(clientKey: string): string {
  return clientKey.includes(':') ? `${clientKey.split(':').slice(0, 3).join(':')}::/48` : clientKey;
}
