import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { filterAgentHeaders } from '../../broker/egress/request-headers.ts';
import { foldName } from '../../broker/policy/names.ts';

const filter = (headers: Record<string, unknown>, platform: string[] = ['authorization']) =>
  filterAgentHeaders(headers, new Set(platform.map(foldName)));
const dropped = (headers: Record<string, unknown>, platform?: string[]) => {
  const filtered = filter(headers, platform);
  return filtered.ok ? filtered.dropped : filtered.error;
};

describe('headers that an agent may not set are dropped, and listed', () => {
  it.each([
    ['HD-01', ['Host', 'host']],
    [
      'HD-02',
      ['Authorization', 'authorization', 'Proxy-Authorization', 'Cookie', 'X-Upstream-Authorization', 'PRIVATE-TOKEN'],
    ],
    ['HD-04', ['Connection', 'Keep-Alive', 'TE', 'Trailer', 'Upgrade', 'Proxy-Connection']],
    ['HD-05', ['Transfer-Encoding', 'Content-Length', 'Content-Encoding', 'Content-Type', 'Expect', 'Accept-Encoding']],
    ['HD-06', ['X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override']],
    [
      'HD-07',
      [
        'X-Forwarded-For',
        'X-Forwarded-Host',
        'X-Forwarded-Proto',
        'X-Forwarded-Uri',
        'Forwarded',
        'X-Real-IP',
        'X-Original-URL',
        'X-Rewrite-URL',
        'Via',
      ],
    ],
    ['HD-08', ['X-Svc-Attestation', 'X-Svc-Caller', 'X-Svc-Session', 'x-svc-anything']],
  ])('%s %j', (_, names) => {
    for (const name of names) {
      expect(filter({ [name]: 'x', 'X-Kept': 'y' })).toEqual({
        ok: true,
        headers: { 'x-kept': 'y' },
        dropped: [name.toLowerCase()],
      });
    }
  });
  it('HD-02 the header that the platform authenticates with is dropped; for other platforms it is sent', () => {
    expect(dropped({ 'X-Api-Key': 'a', 'X-B': 'b' }, ['x-api-key'])).toEqual(['x-api-key']);
    expect(filter({ 'X-Api-Key': 'a' }, ['x-token'])).toMatchObject({
      ok: true,
      headers: { 'x-api-key': 'a' },
      dropped: [],
    });
  });
  it('HD-04 headers named by Connection are hop-by-hop too', () => {
    expect(filter({ Connection: 'x-foo, Authorization', 'X-Foo': '1', 'X-Bar': '2' })).toEqual({
      ok: true,
      headers: { 'x-bar': '2' },
      dropped: ['connection', 'x-foo'],
    });
  });
  it('all other headers are sent, names in lower case', () => {
    expect(
      filter({ Accept: 'a/b; q=0.5', 'Idempotency-Key': 'k', 'X-Empty': '', 'User-Agent': 'me/1', constructor: 'c' }),
    ).toEqual({
      ok: true,
      headers: { accept: 'a/b; q=0.5', 'idempotency-key': 'k', 'x-empty': '', 'user-agent': 'me/1', constructor: 'c' },
      dropped: [],
    });
    expect(filter({})).toEqual({ ok: true, headers: {}, dropped: [] });
  });
});

describe('HD-09 malformed headers are an error that names the header', () => {
  it.each([
    [{ 'x-a': 'a\r\nEvil: 1' }, 'the value of x-a must be visible ASCII'],
    [{ 'x-a': 'a\nb' }, 'the value of x-a must be visible ASCII'],
    [{ 'x-a': 'a\0' }, 'the value of x-a must be visible ASCII'],
    [{ 'x-a': '\u010a' }, 'the value of x-a must be visible ASCII'],
    [{ 'x-a': 'é' }, 'the value of x-a must be visible ASCII'],
    [{ 'x-a': ' a' }, 'without spaces at its ends'],
    [{ 'x-a': 'a\t' }, 'the value of x-a must be visible ASCII'],
    [{ 'x-a': 'a'.repeat(8_193) }, 'the value of x-a is longer than 8192 bytes'],
    [{ 'x-a': 'a'.repeat(65_536) }, 'the value of x-a is longer than 8192 bytes'],
    [{ 'x-a': 1 }, 'the value of x-a must be a string'],
    [{ 'x-a': ['a'] }, 'the value of x-a must be a string'],
    [{ 'x-a': {} }, 'the value of x-a must be a string'],
    [{ 'x-a': null }, 'the value of x-a must be a string'],
    [{ host: 1 }, 'the value of host must be a string'],
    [{ 'a b': 'x' }, '"a b" is not a header name'],
    [{ 'a:': 'x' }, '"a:" is not a header name'],
    [{ 'a\r\n': 'x' }, '"a\\r\\n" is not a header name'],
    [{ '': 'x' }, '"" is not a header name'],
    [{ é: 'x' }, '"é" is not a header name'],
    [JSON.parse('{"__proto__":"x"}'), '"__proto__" is not a header name'],
    [{ 'X-A': '1', 'x-a': '2' }, 'x-a is duplicated'],
    [{ Host: '1', host: '2' }, 'host is duplicated'],
    [Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`x-${i}`, '1'])), 'at most 100 headers'],
  ])('%j', (headers, error) => {
    expect(filter(headers)).toEqual({ ok: false, error: expect.stringContaining(error) });
  });
  it('the largest allowed headers pass', () => {
    expect(filter(Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`x-${i}`, '1'])))).toMatchObject({
      ok: true,
    });
    expect(filter({ 'x-a': 'a'.repeat(8_192) })).toMatchObject({ ok: true });
  });
  it('a default header of the platform does not allow a forbidden name, in any spelling', () => {
    const defaults = { x_forwarded_for: '10.0.0.1', 'X-Real-IP': '10.0.0.1', app_mode: 'a' };
    const asked = { x_forwarded_for: '127.0.0.1', 'x-real-ip': '127.0.0.1', app_mode: 'b' };
    expect(filterAgentHeaders(asked, new Set(), { defaults })).toEqual({
      ok: true,
      headers: { app_mode: 'b' },
      dropped: ['x-real-ip', 'x_forwarded_for'],
    });
  });
  it('no forbidden header passes for any input (property)', () => {
    const name = fc.oneof(
      fc.string(),
      fc.constantFrom(
        ...['HOST', 'Cookie', 'x-svc-a', 'Content-Type', 'X-Ok', 'connection', 'AUTHORIZATION', '__proto__'],
        ...['X_Ok', 'x_svc_a', 'Content_Type', 'x.svc.a'],
      ),
    );
    const value = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.constantFrom('x-ok', 'a, b'), fc.integer());
    fc.assert(
      fc.property(fc.dictionary(name, value), (headers) => {
        const filtered = filter(headers);
        if (!filtered.ok) return;
        for (const [key, text] of Object.entries(filtered.headers)) {
          expect(key).toMatch(/^[a-z0-9-]+$/);
          expect(key).not.toMatch(/^(host|cookie|authorization|connection|x-svc-.*|content-.*)$/);
          expect(text).toMatch(/^[\x20-\x7e]*$/);
        }
      }),
    );
  });
});
