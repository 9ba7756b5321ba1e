/** Client addresses as rate limits, strikes and rows know them. */

/** The part of an address that one client has to itself: IPv4 whole, IPv6 its /64, IPv4 in IPv6 as IPv4. */
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
 * The part of a `clientKey` that one network has to itself: IPv4 whole, IPv6 its /48 (RFC 6177), which holds 65,536 /64s
 * that its holder can use at will.
 */
export function siteOf(clientKey: string): string {
  return clientKey.includes(':') ? `${clientKey.split(':').slice(0, 3).join(':')}::/48` : clientKey;
}
