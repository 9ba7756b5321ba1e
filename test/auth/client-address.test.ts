import { expect, test } from 'vitest';
import { clientKey, siteOf } from '../../broker/auth/client-address.ts';

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['2001:db8::4:5:6:7:8', '2001:db8:0:4::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['192.0.2.1:4711', '192.0.2.1'],
  ['[2001:db8::1]:4711', '2001:db8:0:0::/64'],
  ['[::ffff:192.0.2.1]:4711', '192.0.2.1'],
  ['[2001:db8::1]', '2001:db8:0:0::/64'],
  ['', 'unknown'],
  ['unix:', 'unknown'],
  ['_hidden', 'unknown'],
  ['999.0.2.1:80', 'unknown'],
  ['x'.repeat(100_000), 'unknown'],
  [`1:${':'.repeat(100_000)}`, 'unknown'],
])('limits and strikes count %.40s as %s, with or without the port that a proxy adds', (address, key) => {
  expect(clientKey(address)).toBe(key);
});

test('a network is a whole IPv4 address, or the /48 of an IPv6 address', () => {
  expect(siteOf(clientKey('192.0.2.1'))).toBe('192.0.2.1');
  expect(siteOf(clientKey('2001:db8:1:2::5'))).toBe('2001:db8:1::/48');
});
