import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import { describe, expect, it } from 'vitest';
import { addressRefusal, classifyAddress, isThisMachine, sameAddress } from '../../broker/egress/address.ts';

const refused = (ip: string) => {
  const found = classifyAddress(ip);
  return found === 'public' ? 'public' : found.refused;
};

describe('SS-02, SS-03 only public unicast addresses are public', () => {
  it.each([
    ['127.0.0.1', 'loopback'],
    ['127.255.255.254', 'loopback'],
    ['0.0.0.0', 'unspecified'],
    ['0.1.2.3', 'unspecified'],
    ['10.0.0.1', 'private'],
    ['172.16.0.1', 'private'],
    ['172.31.255.255', 'private'],
    ['192.168.1.1', 'private'],
    ['169.254.169.254', 'linkLocal'],
    ['100.64.0.1', 'carrierGradeNat'],
    ['100.127.255.255', 'carrierGradeNat'],
    ['100.100.100.200', 'carrierGradeNat'],
    ['192.0.0.1', 'reserved'],
    ['192.0.0.192', 'reserved'],
    ['192.0.2.1', 'reserved'],
    ['198.18.0.1', 'reserved'],
    ['198.19.255.255', 'reserved'],
    ['198.51.100.1', 'reserved'],
    ['203.0.113.1', 'reserved'],
    ['192.88.99.1', 'reserved'],
    ['224.0.0.1', 'multicast'],
    ['239.255.255.250', 'multicast'],
    ['240.0.0.1', 'reserved'],
    ['255.255.255.255', 'broadcast'],
    ['192.31.196.1', 'as112'],
    ['192.52.193.1', 'amt'],
    ['168.63.129.16', 'metadata'],
    ['::1', 'loopback'],
    ['::', 'unspecified'],
    ['::ffff:127.0.0.1', 'ipv4Mapped'],
    ['::ffff:8.8.8.8', 'ipv4Mapped'],
    ['::ffff:7f00:1', 'ipv4Mapped'],
    ['::127.0.0.1', 'ipv4Mapped'],
    ['::7f00:1', 'reserved'],
    ['::ffff:0:127.0.0.1', 'rfc6145'],
    ['fd00::1', 'uniqueLocal'],
    ['fc00::1', 'uniqueLocal'],
    ['fd00:ec2::254', 'uniqueLocal'],
    ['fe80::1', 'linkLocal'],
    ['fe80::1%eth0', 'linkLocal'],
    ['fec0::1', 'deprecatedSiteLocal'],
    ['64:ff9b::a9fe:a9fe', 'rfc6052'],
    ['64:ff9b::10.0.0.1', 'rfc6052'],
    ['64:ff9b::127.0.0.1', 'rfc6052'],
    ['64:ff9b::168.63.129.16', 'rfc6052'],
    ['64:ff9b::', 'rfc6052'],
    ['64:ff9b::1:8.8.8.8', 'reserved'],
    ['64:ff9b:1::1', 'rfc6052'],
    ['64:ff9b:1::8.8.8.8', 'rfc6052'],
    ['2002:7f00:1::', '6to4'],
    ['2002:808:808::1', '6to4'],
    ['2001:0:4136:e378:8000:63bf:3fff:fdd2', 'teredo'],
    ['2001:db8::1', 'reserved'],
    ['2001:2::1', 'benchmarking'],
    ['2001:10::1', 'deprecatedOrchid'],
    ['3fff::1', 'reserved'],
    ['5f00::1', 'segmentRouting'],
    ['100::1', 'discard'],
    ['ff02::1', 'multicast'],
    ['4000::1', 'reserved'],
    ['1::1', 'reserved'],
    ['2600:1f00::5efe:7f00:1', 'isatap'],
    ['2600:1f00::200:5efe:7f00:1', 'isatap'],
  ])('%s is refused: %s', (ip, reason) => {
    expect(refused(ip)).toBe(reason);
  });
  it.each([
    '2130706433',
    '0x7f000001',
    '0177.0.0.1',
    '127.1',
    '0',
    '127.0.0.1.',
    '①27.0.0.1',
    'localhost',
    '',
    '1.2.3.4/8',
    '[::1]',
    ' 8.8.8.8',
  ])('"%s" is not an address', (ip) => {
    expect(refused(ip)).toBe('not_an_address');
  });
  it.each([
    '8.8.8.8',
    '1.1.1.1',
    '172.15.255.255',
    '172.32.0.1',
    '100.63.255.255',
    '100.128.0.1',
    '169.253.1.1',
    '192.0.1.1',
    '198.17.0.1',
    '223.255.255.255',
    '2606:4700::1111',
    '2600:1f00::1',
    '2a00:1450:4001::8a',
    '2001:4860:4860::8888',
    '64:ff9b::8.8.8.8',
    '64:FF9B:0:0::8c52:7906',
  ])('%s is public', (ip) => {
    expect(refused(ip)).toBe('public');
  });
  it('a NAT64 address is as public as its embedded IPv4 address (property)', () => {
    fc.assert(
      fc.property(fc.ipV4(), (ip) => {
        expect(refused(`64:ff9b::${ip}`) === 'public').toBe(refused(ip) === 'public');
      }),
    );
  });
  it('no address outside 2000::/3 is public except NAT64, and none that embeds an IPv4 address (property)', () => {
    const part = fc.integer({ min: 0, max: 0xffff });
    fc.assert(
      fc.property(
        fc.array(part, { minLength: 8, maxLength: 8 }),
        fc.constantFrom(0, 0x64, 0x2001, 0x2002, 0x2600, 0xfd00, 0xffff),
        (parts, head) => {
          const address = new ipaddr.IPv6([head, ...parts.slice(1)]);
          const text = address.toNormalizedString();
          const inside = head >= 0x2000 && head <= 0x3fff;
          if (head === 0x64 && parts[1] === 0xff9b) return;
          if (!inside || head === 0x2002) expect(refused(text)).not.toBe('public');
          else if (head === 0x2600 && parts[5] !== 0x5efe) expect(refused(text)).toBe('public');
        },
      ),
    );
  });
});

describe('addresses listed by the operator', () => {
  it('a listed name allows private, loopback and shared addresses; metadata addresses must be listed themselves', () => {
    for (const ip of ['127.0.0.1', '::1', '10.1.2.3', '192.168.0.1', '100.64.1.1', 'fd12::1', '8.8.8.8']) {
      expect([ip, addressRefusal(ip, 'name')]).toEqual([ip, undefined]);
    }
    for (const ip of [
      '169.254.169.254',
      'fe80::1',
      'fd00:ec2::254',
      '168.63.129.16',
      '64:ff9b::a9fe:a9fe',
      // Other forms that embed an IPv4 address.
      '::ffff:0:a9fe:a9fe',
      '2002:a9fe:a9fe::',
      '2001::a9fe:a9fe',
      '2600:1f00::5efe:a9fe:a9fe',
      '240.0.0.1',
    ]) {
      expect([ip, addressRefusal(ip, 'name')]).not.toEqual([ip, undefined]);
      expect([ip, addressRefusal(ip, 'address')]).toEqual([ip, undefined]);
    }
    for (const ip of ['0.0.0.0', '::', '224.0.0.1', 'ff02::1', '255.255.255.255', 'x']) {
      expect([ip, addressRefusal(ip, 'address')]).not.toEqual([ip, undefined]);
    }
    expect(addressRefusal('127.0.0.1', 'no')).toBe('loopback');
  });
});

it('an address is recognised in other notations', () => {
  expect(sameAddress('::ffff:127.0.0.1', '127.0.0.1')).toBe(true);
  expect(sameAddress('64:ff9b::8.8.8.8', '8.8.8.8')).toBe(true);
  expect(sameAddress('64:ff9b:1::8.8.8.8', '8.8.8.8')).toBe(false);
  expect(sameAddress('fe80::1%lo', 'fe80:0::1')).toBe(true);
  expect(sameAddress('127.0.0.1', '127.0.0.2')).toBe(false);
  expect(sameAddress('localhost', 'localhost')).toBe(false);
  expect([
    isThisMachine('127.0.0.1'),
    isThisMachine('::1'),
    isThisMachine('0.0.0.0'),
    isThisMachine('8.8.8.8'),
  ]).toEqual([true, true, true, false]);
});
