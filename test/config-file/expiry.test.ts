import { describe, expect, it } from 'vitest';
import { expiryOf, parseExpiry } from '../../broker/config-file/expiry.ts';

const NOW = Date.UTC(2026, 0, 1);

describe('expires', () => {
  it.each([
    ['45m', { kind: 'after', milliseconds: 45 * 60_000 }],
    ['12h', { kind: 'after', milliseconds: 12 * 3_600_000 }],
    ['30d', { kind: 'after', milliseconds: 30 * 86_400_000 }],
    ['3650d', { kind: 'after', milliseconds: 3650 * 86_400_000 }],
    ['2027-01-31T18:00:00Z', { kind: 'at', moment: Date.UTC(2027, 0, 31, 18) }],
    ['2027-01-31t18:00:00.5+02:00', { kind: 'at', moment: Date.UTC(2027, 0, 31, 16, 0, 0, 500) }],
    ['2027-01-31t18:00:00.0123456789z', { kind: 'at', moment: Date.UTC(2027, 0, 31, 18, 0, 0, 12) }],
    ['2016-12-31T23:59:60Z', { kind: 'at', moment: Date.UTC(2017, 0, 1) }],
    ['2017-01-01T01:59:60.5+02:00', { kind: 'at', moment: Date.UTC(2017, 0, 1) }],
    ['2028-02-29T00:00:00Z', { kind: 'at', moment: Date.UTC(2028, 1, 29) }],
  ])('parses %s', (text, expiry) => {
    expect(parseExpiry(text)).toEqual(expiry);
  });

  it.each([
    '',
    '30',
    '30w',
    '0d',
    '-1d',
    '1.5h',
    '3651d',
    '999999d',
    ' 30d',
    '2027-02-29T00:00:00Z',
    '2027-02-30T00:00:00Z',
    '2027-13-01T00:00:00Z',
    '2027-01-01',
    '2027-01-01T00:00:00',
    '2027-01-01T24:00:00Z',
    '2027-01-30T23:59:60Z',
    '2027-01-31T22:59:60Z',
    '2027-01-01T00:00:00+25:00',
    'never',
  ])('refuses "%s"', (text) => {
    expect(parseExpiry(text)).toBeUndefined();
  });

  it('runs from the first apply, until its text changes', () => {
    const first = expiryOf('30d', undefined, NOW);
    expect(first).toEqual({ expires_at: NOW + 30 * 86_400_000, expires_text: '30d' });
    expect(expiryOf('30d', first, NOW + 1000)).toEqual(first);
    expect(expiryOf('720h', first, NOW + 1000).expires_at).toBe(NOW + 1000 + 30 * 86_400_000);
    expect(expiryOf(undefined, first, NOW)).toEqual({ expires_at: null, expires_text: null });
  });

  it('treats another spelling of the same moment as unchanged', () => {
    const first = expiryOf('2027-01-31T18:00:00Z', undefined, NOW);
    expect(expiryOf('2027-01-31T19:00:00+01:00', first, NOW)).toEqual(first);
    expect(expiryOf('2027-01-31T19:00:00Z', first, NOW).expires_at).toBe(Date.UTC(2027, 0, 31, 19));
  });
});
