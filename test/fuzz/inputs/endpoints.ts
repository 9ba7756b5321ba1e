/**
 * PA-22: the endpoint of a call is either refused, or sent byte for byte below the base path of the platform, also as read by `new URL` and by
 * servers that decode, fold or truncate more.
 */
import fc from 'fast-check';
import { expect } from 'vitest';
import { joinUpstreamUrl, parseEndpoint } from '../../../broker/policy/endpoint.ts';
import type { Count, Fuzzed } from '../fuzz.ts';

const BASES = ['https://api.up.test', 'https://api.up.test/v1', 'https://api.up.test:8443/a/b/'];

const hostile = fc.string({ unit: fc.constantFrom(...'./\\%25;?#@: \t\r\néA2fFeE0c'), maxLength: 24 });
const piece = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('a', 'items', 'v1', '1', 'x.json', 'a-b_c~d', 'a:b', '@me', '*', '(a)') },
  fc.constantFrom(
    '.',
    '..',
    '...',
    '%2e',
    '%2E%2E',
    '.%2e',
    '%252e%252e',
    '%2f',
    '%2F',
    '%5c',
    '%00',
    '%0a',
    '%20',
    '%3f',
  ),
  fc.constantFrom(
    ';',
    '..;',
    '..;x',
    ';/..',
    '%3b',
    '\uff0e\uff0e',
    '%EF%BC%8E',
    '\uff0f',
    '%c0%ae',
    '%u002e',
    '%',
    '%2',
  ),
  fc.constantFrom(
    '//evil.test',
    '\\\\evil.test',
    '@evil.test',
    ':80',
    'https://evil.test',
    '\t',
    '\u00a0',
    '\u2028',
    '\ud800',
  ),
  hostile,
);
const path = fc
  .array(piece, { maxLength: 6 })
  .chain((pieces) => fc.constantFrom('/', '', '//').map((between) => `/${pieces.join(between)}`));
const query = fc.oneof(
  { weight: 2, arbitrary: fc.constant('') },
  hostile.map((text) => `?${text}`),
  fc
    .array(fc.tuple(fc.oneof(fc.constantFrom('a', 'a[b]', '_method', 'token', 'a%5Bb%5D'), hostile), hostile), {
      maxLength: 3,
    })
    .map((pairs) => `?${pairs.map((pair) => pair.join('=')).join('&')}`),
);
const text = fc.oneof(
  hostile,
  fc.tuple(path, query).map((all) => all.join('')),
  fc.string({ unit: 'binary' }).map((any) => `/${any}`),
);
const options = fc.record({ allowEncodedSlash: fc.boolean(), decodeSlash: fc.boolean() });

/** Readings of a segment by lenient servers: decoded repeatedly, look-alikes folded, parameters and white space removed. */
function readings(segment: string): string[] {
  const found = [segment];
  for (let turn = 0; turn < 4; turn++) {
    const last = found.at(-1) as string;
    found.push(
      last.replace(/(?:%[0-9a-f]{2})+/gi, (escapes) =>
        Buffer.from(escapes.replaceAll('%', ''), 'hex').toString('utf8'),
      ),
    );
  }
  return found.flatMap((one) => [one, one.normalize('NFKC')]).flatMap((one) => [one, one.replace(/[;?#].*$/s, '')]);
}

export function endpoints(count: Count): Fuzzed {
  const property = fc.property(text, options, fc.constantFrom(...BASES), (written, how, base) => {
    const parsed = parseEndpoint(written, how);
    if (!parsed.ok) {
      expect(parsed.error).toMatch(/\S/);
      return count('refused');
    }
    count('accepted');
    const { path, query } = parsed;
    // Rules are evaluated on what was written, except for slashes that the platform decodes.
    const own = path + (written.includes('?') ? `?${query}` : '');
    expect(own).toBe(how.decodeSlash ? written.replace(/^[^?]*/, (all) => all.replaceAll(/%2f/gi, '/')) : written);
    // It stays below the base, also when parsed as a whole URL.
    const whole = new URL(base);
    const below = whole.pathname.replace(/\/$/, '');
    const url = joinUpstreamUrl(base, parsed);
    if (url === undefined) throw new Error('taken, and not to be joined');
    expect([url.origin, url.username, url.password, url.hash]).toEqual([whole.origin, '', '', '']);
    expect(url.pathname + url.search).toBe(below + own);
    expect(new URL(url.href).href).toBe(url.href);
    // No reading of any segment leads to a parent or another segment.
    const segments = path.slice(1).split('/');
    for (const [at, segment] of segments.entries()) {
      if (segment === '' && at === segments.length - 1) continue;
      for (const reading of segment.split(how.allowEncodedSlash ? /%2f/i : /$^/).flatMap(readings)) {
        expect(reading.trim(), segment).not.toMatch(/^\.{0,2}$/);
        expect(reading, segment).not.toMatch(/[\\\0\r\n]/);
        if (reading.includes('/')) throw new Error(`${segment} may be read as ${reading}`);
      }
    }
  });
  return { property, reaches: ['refused', 'accepted'] };
}
