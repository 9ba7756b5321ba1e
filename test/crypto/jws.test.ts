import { generateKeyPairSync, sign } from 'node:crypto';
import fc from 'fast-check';
import { CompactSign, compactVerify, importJWK } from 'jose';
import { describe, expect, it } from 'vitest';
import { createCompactSigner, signCompact, verifyCompact } from '../../broker/crypto/jws.ts';
import { generateSigningKey, importSigningKey, keySet } from '../../broker/crypto/key-set.ts';
import type { JsonObject } from '../../broker/policy/facts.ts';

const key = importSigningKey(generateSigningKey());
const { verifyKeys } = keySet([{ ...key, activatesAt: 0, retiredAt: null }]);
const TYP = 'svc-receipt+jwt';
const PAYLOAD = { jti: 'a', path: '/users/ü', n: 1.5, deep: [{ x: null }] };
const good = signCompact(key, { typ: TYP }, PAYLOAD);
const [header, payload, signature] = good.split('.') as [string, string, string];
const check = (jws: string) => verifyCompact(jws, verifyKeys, { typ: TYP });
const b64 = (value: string | object) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');

/** Signs any header and payload, as a hostile holder of the key would. */
function forge(head: string | object, body: string | object = PAYLOAD): string {
  const input = `${b64(head)}.${b64(body)}`;
  const signed = sign('sha256', Buffer.from(input), { key: key.privateKey, dsaEncoding: 'ieee-p1363' });
  return `${input}.${signed.toString('base64url')}`;
}
const HEAD = { alg: 'ES256', typ: TYP, kid: key.kid };

describe('a compact JWS signed by the broker', () => {
  it('is verified by jose', async () => {
    const publicKey = await importJWK({ ...key.publicJwk }, 'ES256');
    const verified = await compactVerify(good, publicKey, { algorithms: ['ES256'] });
    expect(JSON.parse(new TextDecoder().decode(verified.payload))).toEqual(PAYLOAD);
    expect(verified.protectedHeader).toEqual(HEAD);
  });

  it('is verified by verifyCompact, as is one signed by jose', async () => {
    expect(check(good)).toEqual({ ok: true, kid: key.kid, payload: PAYLOAD });
    const privateKey = await importJWK(
      { ...key.publicJwk, ...key.privateKey.export({ format: 'jwk' }) } as never,
      'ES256',
    );
    const theirs = await new CompactSign(Buffer.from(JSON.stringify(PAYLOAD)))
      .setProtectedHeader(HEAD)
      .sign(privateKey);
    expect(check(theirs)).toEqual({ ok: true, kid: key.kid, payload: PAYLOAD });
  });

  it('signs given JSON text byte for byte', () => {
    const text = '{"b":1,  "a":2}';
    const jws = signCompact(key, { typ: TYP }, text);
    expect(Buffer.from(jws.split('.')[1]!, 'base64url').toString()).toBe(text);
    expect(check(jws)).toMatchObject({ ok: true, payload: { a: 2, b: 1 } });
  });

  it.each([
    ['R', 0],
    ['S', 32],
  ])('is verified when %s begins with zero bytes, or has a high bit', (_name, from) => {
    const found = new Set<string>();
    // One signature in 256 has such a byte.
    for (let attempt = 0; attempt < 10_000 && found.size < 2; attempt++) {
      const jws = signCompact(key, { typ: TYP }, { attempt });
      const first = Buffer.from(jws.split('.')[2]!, 'base64url')[from]!;
      if (first !== 0 && first < 0x80) continue;
      found.add(first === 0 ? 'zero' : 'high');
      expect(check(jws)).toMatchObject({ ok: true, payload: { attempt } });
    }
    expect(found.size).toBe(2);
  });

  it('has the same header from a signer that caches headers, by key and by type', () => {
    const remember = createCompactSigner();
    const other = importSigningKey(generateSigningKey());
    for (const [who, typ] of [
      [key, TYP],
      [key, 'svc-attest+jwt'],
      [other, TYP],
      [key, TYP],
    ] as const) {
      expect(remember(who, { typ }, {}).split('.')[0]).toBe(signCompact(who, { typ }, {}).split('.')[0]);
    }
    expect(check(remember(key, { typ: TYP }, PAYLOAD))).toMatchObject({ ok: true });
  });

  it('preserves any JSON object', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue(), { noNullPrototype: true }), (value) => {
        const text = JSON.stringify(value);
        const verified = check(signCompact(key, { typ: TYP }, JSON.parse(text) as JsonObject));
        expect(verified.ok && JSON.stringify(verified.payload)).toBe(text);
      }),
      { numRuns: 100 },
    );
  });
});

describe('verifyCompact refuses', () => {
  const other = importSigningKey(generateSigningKey());
  const flipped = Buffer.from(signature, 'base64url');
  flipped[5]! ^= 1;
  const resized = (by: number) =>
    Buffer.concat([Buffer.from(signature, 'base64url'), Buffer.alloc(1)], 64 + by).toString('base64url');
  const { privateKey: rsa } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const rsaInput = `${b64({ ...HEAD, alg: 'RS256' })}.${payload}`;
  const cases: [name: string, jws: string, code: string, detail: string][] = [
    ['a changed payload', `${header}.${b64({ ...PAYLOAD, jti: 'b' })}.${signature}`, 'bad_signature', 'signature'],
    ['a changed signature', `${header}.${payload}.${flipped.toString('base64url')}`, 'bad_signature', 'signature'],
    [
      'another key under a known kid',
      signCompact({ ...other, kid: key.kid }, { typ: TYP }, PAYLOAD),
      'bad_signature',
      '',
    ],
    ['an unknown kid', signCompact(other, { typ: TYP }, PAYLOAD), 'unknown_key', 'kid'],
    ['no kid', forge({ alg: 'ES256', typ: TYP }), 'unknown_key', 'kid'],
    ['a kid that is not a string', forge({ ...HEAD, kid: [key.kid] }), 'unknown_key', 'kid'],
    ['another type (JW-23)', signCompact(key, { typ: 'svc-attest+jwt' }, PAYLOAD), 'wrong_type', TYP],
    ['no type', forge({ alg: 'ES256', kid: key.kid }), 'wrong_type', TYP],
    ['alg none', `${b64({ ...HEAD, alg: 'none' })}.${payload}.`, 'malformed', 'base64url'],
    ['alg none with a signature', forge({ ...HEAD, alg: 'none' }), 'unsupported', 'alg'],
    ['RS256', `${rsaInput}.${sign('sha256', Buffer.from(rsaInput), rsa).toString('base64url')}`, 'unsupported', 'alg'],
    [
      'a DER signature',
      `${header}.${payload}.${sign('sha256', Buffer.from(`${header}.${payload}`), key.privateKey).toString('base64url')}`,
      'bad_signature',
      '',
    ],
    ['a signature that is one byte short', `${header}.${payload}.${resized(-1)}`, 'bad_signature', ''],
    ['a signature with one more byte', `${header}.${payload}.${resized(1)}`, 'bad_signature', ''],
    ['a signature of zeros', `${header}.${payload}.${Buffer.alloc(64).toString('base64url')}`, 'bad_signature', ''],
    [
      'a signature of ones',
      `${header}.${payload}.${Buffer.alloc(64, 0xff).toString('base64url')}`,
      'bad_signature',
      '',
    ],
    ['crit', forge({ ...HEAD, crit: ['exp'] }), 'unsupported', 'crit'],
    ['an unencoded payload (b64)', forge({ ...HEAD, b64: false }), 'unsupported', 'b64'],
    ['an embedded jwk', forge({ ...HEAD, jwk: key.publicJwk }), 'unsupported', 'jwk'],
    ['a jku', forge({ ...HEAD, jku: 'http://169.254.169.254/' }), 'unsupported', 'jku'],
    ['an x5u', forge({ ...HEAD, x5u: 'http://169.254.169.254/' }), 'unsupported', 'x5u'],
    ['an x5c', forge({ ...HEAD, x5c: [] }), 'unsupported', 'x5c'],
    ['padding', `${header}.${payload}.${signature}==`, 'malformed', 'base64url'],
    ['a newline', `${good}\n`, 'malformed', 'base64url'],
    [
      'standard base64',
      `${header}.${payload}.${Buffer.from(signature, 'base64url').toString('base64')}`,
      'malformed',
      'base64url',
    ],
    [
      'spare bits',
      `${header}.${payload}.${signature.slice(0, -1)}${bumped(signature.at(-1)!)}`,
      'malformed',
      'base64url',
    ],
    ['two parts', `${header}.${payload}`, 'malformed', 'three'],
    ['four parts', `${good}.${signature}`, 'malformed', 'three'],
    ['the empty string', '', 'malformed', 'three'],
    [
      'a header with a duplicate alg',
      forge(`{"alg":"ES256","alg":"ES256","typ":"${TYP}","kid":"${key.kid}"}`),
      'malformed',
      'header',
    ],
    ['a duplicate claim', forge(HEAD, '{"jti":"a","jti":"b"}'), 'malformed', 'payload'],
    ['a payload that is a list', forge(HEAD, '[1]'), 'malformed', 'payload'],
    ['a header that is not JSON', forge('ES256'), 'malformed', 'header'],
    ['a JWS that is too long', `${header}.${'A'.repeat(70_000)}.${signature}`, 'malformed', 'longer'],
  ];
  for (const [name, jws, code, detail] of cases) {
    it(name, () => {
      const refused = check(jws);
      expect(refused).toMatchObject({ ok: false, code });
      expect(!refused.ok && refused.detail).toContain(detail);
    });
  }

  it('nothing in an unmodified JWS that was signed with the same helper', () => {
    expect(check(forge(HEAD))).toEqual({ ok: true, kid: key.kid, payload: PAYLOAD });
  });

  it('any text without throwing', () => {
    const part = fc.oneof(
      fc.constantFrom(header, payload, signature, ''),
      fc.string(),
      fc.jsonValue().map((v) => b64(JSON.stringify(v))),
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 4 }), (parts) => {
        const jws = parts.join('.');
        expect(check(jws).ok).toBe(jws === good);
      }),
      { numRuns: 500 },
    );
  });
});

/** Returns the next character of the alphabet: other spare bits for the same bytes. */
function bumped(char: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  return alphabet[alphabet.indexOf(char) + 1]!;
}
