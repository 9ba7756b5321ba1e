import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { joinUpstreamUrl, parseEndpoint } from '../../broker/policy/endpoint.ts';
import { sized } from '../world/runner/thorough.ts';

const BASE = 'https://api.up.test/v1';

function refusal(text: string, options?: { allowEncodedSlash?: boolean; decodeSlash?: boolean }): string {
  const parsed = parseEndpoint(text, options);
  return parsed.ok ? 'accepted' : parsed.error;
}

describe('refused endpoints', () => {
  test.each([
    [
      'PA-01',
      ['/../admin', '/a/../../admin', '/.', '/./x', '/..;/x', '/..;x=1/y', '/..%3Fx', '/a/.%23b', '/a/;x/b', '/a/..'],
      /dot segment/,
    ],
    ['PA-02', ['/%2e%2e/admin', '/.%2e/x', '/%2E%2e/x'], /dot segment/],
    ['PA-02', ['/..%2fadmin', '/..%5cadmin'], /slash or backslash|dot segment/],
    ['PA-03', ['/%252e%252e/admin', '/%25252e%25252e/admin', '/a%25252fb', '/a%255cb'], /escaped/],
    ['PA-03', ['/%2525252e', '/a%25252525b'], /too many times/],
    ['PA-04', ['/a%2fb', '/a%2Fb'], /escaped slash/],
    ['PA-05', ['//evil.test/x', '///evil.test/x'], /empty segment/],
    ['PA-05', ['/\\evil.test/x', '/a\\b'], /backslash/],
    ['PA-05', ['\\\\evil.test\\x'], /begins with/],
    ['HD-06', ['/x?_method=DELETE', '/x?a=1&%24httpMethod=DELETE', '/x?X-HTTP-Method-Override=PUT'], /names a method/],
    [
      'PA-06',
      ['https://evil.test/x', 'http:foo', 'HTTPS:evil.test/x', 'javascript:x', 'file:///etc/passwd', 'x', ''],
      /begins with/,
    ],
    ['PA-08', ['/x\r\nHost: evil', '/x\ty', '/x\u0000', '/a\u2028b', '/a\u0085b', '/x?a=\u007f'], /control character/],
    ['PA-08', ['/x y', '/x ', '/x?a b'], /%20/],
    ['PA-08', [' /x'], /begins with/],
    ['PA-08', ['/x%00y', '/x%0d%0aSet-Cookie:1', '/x%7Fy', '/x%E2%80%A8y', '/x?a=%0d%0a'], /control character/],
    ['PA-09', ['/x#frag', '/x?y#z'], /fragment/],
    [
      'PA-10',
      ['/x?access_token=AAA', '/x?api_key=..', '/x?a=1&API-Key=2', '/x?%61ccess_token=1', '/x?auth[token]=1'],
      /credential/,
    ],
    ['PA-10', ['/x?a=1;client_secret=2', '/x?X-Amz-Signature=1'], /credential/],
    ['PA-12', ['/repos//a//b', '/a//'], /empty segment/],
    ['PA-13', ['/x;jsessionid=1/../y'], /dot segment/],
    ['PA-15', ['/%zz', '/%', '/%u002e', '/x?a=%zz', '/a%2'], /malformed escape/],
    ['PA-16', [`/${'a'.repeat(8192)}`], /longer than/],
    ['PA-16', ['/a'.repeat(2000)], /segments/],
    ['PA-02', ['/%61dmin', '/a%2Db', '/a%7Eb'], /needs no escape/],
    ['PA-02', ['/a%c3%a9'], /upper case/],
    ['PA-08', ['/caf\u00e9', '/x?q=\u00e9', '/\ud800', '/a"b', '/a<b', '/a{b}', "/x?a='b'", '/x?a|b'], /escaped/],
    ['PA-03', ['/%C0%AE%C0%AE/x', '/%ED%A0%80', '/%FF'], /not UTF-8/],
    ['PA-03', ['/%EF%BC%8E%EF%BC%8E/x', '/a%EF%BC%8Fb'], /dot segment|slash/],
    ['PA-09', ['/x?'], /without a query/],
    ['PA-16', [`/x?${'a&'.repeat(1000)}b`, `/x?${'a;'.repeat(1000)}b`], /more than 1000 parameters/],
  ])('%s %j', (_id, endpoints, why) => {
    for (const endpoint of endpoints) expect(refusal(endpoint)).toMatch(why);
  });

  test('a query may have up to 1,000 parameters', () => {
    expect(parseEndpoint(`/x?${'a&'.repeat(999)}b`)).toMatchObject({ ok: true });
  });

  test('a user part never changes the host: it is data in the path', () => {
    expect(parseEndpoint('/@evil.test/x')).toEqual({ ok: true, path: '/@evil.test/x', query: '' });
    expect(refusal('@evil.test/x')).toMatch(/begins with/);
    expect(joinUpstreamUrl(BASE, { path: '/@evil.test/x', query: '' })?.host).toBe('api.up.test');
  });
});

describe('accepted endpoints', () => {
  test.each([
    ['/', '/', ''],
    ['/contacts/7', '/contacts/7', ''],
    ['/contacts/', '/contacts/', ''],
    ['/x;v=1/y', '/x;v=1/y', ''],
    ['/a.b/..c/...', '/a.b/..c/...', ''],
    ['/calendars/ann%40x.example/events', '/calendars/ann%40x.example/events', ''],
    ['/docs/1:batchUpdate', '/docs/1:batchUpdate', ''],
    ['/caf%C3%A9', '/caf%C3%A9', ''],
    ['/100%25', '/100%25', ''],
    ['/x?scope=admin&scope=read', '/x', 'scope=admin&scope=read'],
    ['/x?a=%26b=c', '/x', 'a=%26b=c'],
    ['/x?expand[]=data&q=a%20b+c&d=../..', '/x', 'expand[]=data&q=a%20b+c&d=../..'],
    ['/x?page_token=abc&key=PROJ', '/x', 'page_token=abc&key=PROJ'],
    ['/x?a?b', '/x', 'a?b'],
  ])('%s', (text, path, query) => {
    const parsed = parseEndpoint(text);
    expect(parsed).toEqual({ ok: true, path, query });
    const url = parsed.ok ? joinUpstreamUrl(BASE, parsed) : undefined;
    expect(url && url.pathname + url.search).toBe(`/v1${text}`);
  });

  test('PA-04 an escaped slash is accepted where the platform permits it, and matched as it stands', () => {
    const options = { allowEncodedSlash: true };
    expect(parseEndpoint('/projects/acme%2Fapp/issues', options)).toMatchObject({
      ok: true,
      path: '/projects/acme%2Fapp/issues',
    });
    expect(refusal('/projects/acme%2fapp', options)).toMatch(/upper case/);
    for (const endpoint of [
      '/projects/..%2Fapp',
      '/projects/a%2F.%2Fb',
      '/projects/a%2F%2E%2E',
      '/projects/%2Fa',
      '/projects/a%2F;x',
    ]) {
      expect(refusal(endpoint, options)).toMatch(/dot segment/);
    }
    expect(refusal('/projects/a%252Fb', options)).toMatch(/escaped slash/);
    expect(refusal('/projects/a%5Cb', options)).toMatch(/backslash/);
  });
});

describe('an escaped slash on a platform that reads it as a slash', () => {
  const options = { decodeSlash: true };
  test.each([
    ['/repos/a/b/git/ref/heads%2Ffeature%2fx', '/repos/a/b/git/ref/heads/feature/x'],
    ['/repos/a%2Fb', '/repos/a/b'],
  ])('%s', (text, path) => {
    expect(parseEndpoint(text, options)).toEqual({ ok: true, path, query: '' });
  });

  test('is refused where a slash would be, and stays escaped in a query', () => {
    for (const endpoint of ['/repos/a%2F..%2Fc', '/repos/a%2F.%2Fb', '/repos/..%2fb', '/repos/a%2F%2E%2E'])
      expect(refusal(endpoint, options)).toMatch(/dot segment/);
    expect(refusal('/repos%2F%2Fa', options)).toMatch(/empty segment/);
    expect(refusal('/repos/a%252Fb', options)).toMatch(/escaped slash/);
    expect(parseEndpoint('/repos/a?ref=x%2Fy', options)).toEqual({ ok: true, path: '/repos/a', query: 'ref=x%2Fy' });
  });
});

describe('joining an endpoint with the base URL', () => {
  test.each([
    ['https://h.test', '/x', 'https://h.test/x'],
    ['https://h.test/', '/x', 'https://h.test/x'],
    ['https://h.test:8443/api/', '/', 'https://h.test:8443/api/'],
  ])('%s and %s', (base, path, expected) => {
    expect(joinUpstreamUrl(base, { path, query: '' })?.href).toBe(expected);
  });

  test.each(['not a url', 'https://u:p@h.test', 'https://h.test/?a=1', 'https://h.test/#x', 'data:text/plain,x'])(
    'a base URL with more than origin and path is refused: %s',
    (base) => expect(joinUpstreamUrl(base, { path: '/x', query: '' })).toBeUndefined(),
  );

  test.each(['/../x', '/a/%2e%2e/x', '/a b', '/\\evil.test', '/x#y'])(
    'an endpoint that the URL parser would change is refused: %s',
    (path) => expect(joinUpstreamUrl(BASE, { path, query: '' })).toBeUndefined(),
  );
});

test('PA-22 for 10,000 random strings: refused, or sent byte for byte below the base path', () => {
  const hostile = fc.string({ unit: fc.constantFrom(...'./\\%25;?#@: \t\r\néA2fFeE0c'), maxLength: 24 });
  let accepted = 0;
  fc.assert(
    fc.property(
      fc.oneof(
        hostile,
        hostile.map((text) => `/${text}`),
      ),
      (text) => {
        const parsed = parseEndpoint(text);
        if (!parsed.ok) return;
        accepted++;
        const url = joinUpstreamUrl(BASE, parsed);
        expect(url?.origin).toBe('https://api.up.test');
        expect(url && url.pathname + url.search).toBe(`/v1${text}`);
      },
    ),
    { numRuns: sized(2_500, 10_000) },
  );
  expect(accepted).toBeGreaterThan(100);
});
