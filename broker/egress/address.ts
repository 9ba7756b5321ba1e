/** Classifies IP addresses: a platform may have a public unicast address only (SS-02, SS-03). */

import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import ipaddr from 'ipaddr.js';

/** `public`, or the name of the special range (RFC 6890 and its registries) that makes it refused. */
export type AddressClass = 'public' | { refused: string };

/**
 * Azure's platform address: public in form, but the virtual machine's host serves metadata secrets there. The other clouds' metadata
 * addresses are link-local, shared or unique local, and refused as such.
 */
const AZURE_PLATFORM = '168.63.129.16';

/**
 * Classifies an address in the format of `dns.lookup`, `socket.remoteAddress` or `URL.hostname` (without brackets). Text in any other form
 * (octal, hexadecimal, short, with a zone) is refused as `not_an_address` or by the range that it is in. IPv6 addresses that embed an IPv4
 * address (mapped, compatible, 6to4, Teredo, ISATAP, NAT64 with a network-specific prefix) are always refused, because a gateway may
 * translate them. An address with NAT64's well-known prefix is as public as its embedded IPv4 address, to which a gateway sends it (RFC
 * 6052 §2.1): on networks without IPv4, names without an IPv6 address resolve to it (DNS64, RFC 6147).
 */
export function classifyAddress(ip: string): AddressClass {
  const version = isIP(ip);
  if (version === 0) return { refused: 'not_an_address' };
  if (version === 4) {
    if (ip === AZURE_PLATFORM) return { refused: 'metadata' };
    const range = ipaddr.IPv4.parse(ip).range();
    return range === 'unicast' ? 'public' : { refused: range };
  }
  const address = ipaddr.IPv6.parse(ip);
  const range = address.range();
  const translated = embeddedIpv4(address);
  if (translated !== undefined && classifyAddress(translated) === 'public') return 'public';
  if (range !== 'unicast') return { refused: range };
  // Global unicast is 2000::/3 (RFC 4291 §2.4); the rest is unassigned, including `::a.b.c.d`.
  const [first = 0, , , , fifth = 0, sixth = 0] = address.parts;
  if (first < 0x2000 || first > 0x3fff) return { refused: 'reserved' };
  // ISATAP (RFC 5214 §6.1): the interface identifier is [02]00:5efe and an IPv4 address.
  if (sixth === 0x5efe && (fifth & 0xfdff) === 0) return { refused: 'isatap' };
  return 'public';
}

/** Returns the IPv4 address embedded in an address with NAT64's well-known prefix. */
function embeddedIpv4(address: ipaddr.IPv4 | ipaddr.IPv6): string | undefined {
  if (!(address instanceof ipaddr.IPv6) || !address.match(WELL_KNOWN_PREFIX, 96)) return undefined;
  return ipaddr.fromByteArray(address.toByteArray().slice(12)).toString();
}
const WELL_KNOWN_PREFIX = ipaddr.IPv6.parse('64:ff9b::');

/** Ranges that are always refused, even when the operator lists a name that resolves to them. */
const NEVER_ALLOWED = new Set(['not_an_address', 'unspecified', 'broadcast', 'multicast']);

/** Ranges that the operator has to list by address, not by name, because metadata services are there. */
const ONLY_BY_ADDRESS = new Set([
  'linkLocal',
  'metadata',
  'reserved',
  '6to4',
  'teredo',
  'rfc6052',
  'rfc6145',
  'isatap',
]);

/**
 * Returns why a connection to this address is refused, in one word, or undefined when it is allowed.
 *
 * @param listed how the operator listed the origin: not at all, by a name, or by its address.
 */
export function addressRefusal(ip: string, listed: 'no' | 'name' | 'address'): string | undefined {
  const found = classifyAddress(ip);
  if (found === 'public') return undefined;
  if (listed === 'no' || NEVER_ALLOWED.has(found.refused)) return found.refused;
  if (listed === 'address') return undefined;
  const aws6 = found.refused === 'uniqueLocal' && sameAddress(ip, 'fd00:ec2::254');
  return aws6 || ONLY_BY_ADDRESS.has(found.refused) ? found.refused : undefined;
}

/** Whether two texts are the same address; an IPv4 address equals its IPv6-mapped and NAT64 forms. */
export function sameAddress(one: string, other: string): boolean {
  return isIP(one) !== 0 && isIP(other) !== 0 && canonical(one) === canonical(other);
}

function canonical(ip: string): string {
  const [address = ''] = ip.split('%', 1);
  const parsed = ipaddr.process(address);
  return embeddedIpv4(parsed) ?? parsed.toNormalizedString();
}

/** Whether the address belongs to this machine: loopback, or an interface's address. */
export function isThisMachine(ip: string): boolean {
  const found = classifyAddress(ip);
  if (found !== 'public' && (found.refused === 'loopback' || found.refused === 'unspecified')) return true;
  return Object.values(networkInterfaces()).some((list) => list?.some((entry) => sameAddress(entry.address, ip)));
}
