import { createPublicKey, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { calculateJwkThumbprint } from 'jose';
import { describe, expect, it } from 'vitest';
import { createPublicKeyCache, parsePublicKey } from '../../broker/crypto/public-key.ts';

const pair = generateKeyPairSync('rsa', { modulusLength: 2048 });
const pem = spki(pair.publicKey);

function spki(key: KeyObject): string {
  return key.export({ type: 'spki', format: 'pem' }) as string;
}

/** A public key of any size and exponent, constructed without a private key. */
function made(bits: number, exponent = 65537, last = 1): string {
  const n = randomBytes(Math.ceil(bits / 8));
  n[0] = bits % 8 === 0 ? n[0]! | 0x80 : 1;
  n[n.length - 1] = (n.at(-1)! & 0xfe) | last;
  const e = Buffer.from(exponent.toString(16).padStart(6, '0'), 'hex');
  const key = {
    kty: 'RSA',
    n: n.toString('base64url'),
    e: e.subarray(e.findIndex((b) => b !== 0)).toString('base64url'),
  };
  return spki(createPublicKey({ key, format: 'jwk' }));
}

describe('an agent key', () => {
  it('is parsed, with the RFC 7638 thumbprint that jose computes', async () => {
    const parsed = parsePublicKey(pem);
    if (!parsed.ok) throw new Error(parsed.error);
    expect(parsed.pem).toBe(pem);
    expect(parsed.key.equals(pair.publicKey)).toBe(true);
    expect(parsed.jwk).toEqual(pair.publicKey.export({ format: 'jwk' }));
    expect(parsed.fingerprint).toBe(await calculateJwkThumbprint({ ...parsed.jwk }, 'sha256'));
  });

  it.each([2048, 2049, 3072, 4096])('may have %i bits', (bits) => {
    expect(parsePublicKey(made(bits))).toMatchObject({ ok: true });
  });

  it.each([
    ['CRLF', pem.replaceAll('\n', '\r\n')],
    ['no newline at the end', pem.trimEnd()],
    ['blank lines before and after', `\n\n${pem}\n`],
    [
      'lines of a different length',
      `${pem.split('\n')[0]}\n${pem.split('\n').slice(1, -2).join('')}\n${pem.split('\n').at(-2)}\n`,
    ],
  ])('is normalised: %s', (_name, text) => {
    expect(parsePublicKey(text)).toMatchObject({ ok: true, pem });
  });
});

describe('JW-26 any other key is refused with the reason', () => {
  const body = pem.split('\n').slice(1, -2).join('\n');
  const block = (label: string, der: Buffer) =>
    `-----BEGIN ${label}-----\n${der
      .toString('base64')
      .match(/.{1,64}/g)!
      .join('\n')}\n-----END ${label}-----\n`;
  const der = pair.publicKey.export({ type: 'spki', format: 'der' });
  const cases: [name: string, text: string, code: string, words: string][] = [
    ['1024 bits', made(1024), 'bad_size', 'this one has 1024'],
    ['2047 bits', made(2041), 'bad_size', '2048 to 4096'],
    ['4104 bits', made(4104), 'bad_size', 'this one has 4104'],
    ['16384 bits', made(16384), 'bad_size', 'this one has 16384'],
    ['e = 1', made(2048, 1), 'bad_exponent', '65537'],
    ['e = 3', made(2048, 3), 'bad_exponent', '65537'],
    ['e = 65539', made(2048, 65539), 'bad_exponent', '65537'],
    ['an even modulus', made(2048, 65537, 0), 'bad_modulus', 'even'],
    ['an EC key', spki(generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey), 'not_rsa', 'this one is ec'],
    ['an Ed25519 key', spki(generateKeyPairSync('ed25519').publicKey), 'not_rsa', 'this one is ed25519'],
    ['an X25519 key', spki(generateKeyPairSync('x25519').publicKey), 'not_rsa', 'this one is x25519'],
    [
      'an RSA-PSS key',
      spki(generateKeyPairSync('rsa-pss', { modulusLength: 2048 }).publicKey),
      'not_rsa',
      'restricted to PSS',
    ],
    ['PKCS#1', pair.publicKey.export({ type: 'pkcs1', format: 'pem' }) as string, 'not_spki_pem', 'openssl rsa'],
    [
      'PKCS#1 inside a PUBLIC KEY block',
      block('PUBLIC KEY', pair.publicKey.export({ type: 'pkcs1', format: 'der' })),
      'not_spki_pem',
      'contains no public key',
    ],
    [
      'bytes after the key',
      block('PUBLIC KEY', Buffer.concat([der, Buffer.of(0, 0)])),
      'not_spki_pem',
      'contains no public key',
    ],
    ['a truncated key', block('PUBLIC KEY', der.subarray(0, -3)), 'not_spki_pem', 'contains no public key'],
    ['a certificate', block('CERTIFICATE', der), 'not_spki_pem', 'openssl x509'],
    ['two keys', pem + made(2048), 'not_spki_pem', 'several'],
    ['a certificate and a key', block('CERTIFICATE', der) + pem, 'not_spki_pem', 'several'],
    ['text before', `my key:\n${pem}`, 'not_spki_pem', 'text around it'],
    ['text after', `${pem}x`, 'not_spki_pem', 'text around it'],
    ['a header in the PEM block', pem.replace('\n', '\nProc-Type: 4,ENCRYPTED\n\n'), 'not_spki_pem', 'corrupt'],
    ['line breaks replaced by spaces', pem.replaceAll('\n', ' '), 'not_spki_pem', 'line breaks included'],
    ['line breaks written as \\n', pem.replaceAll('\n', '\\n'), 'not_spki_pem', 'line breaks included'],
    ['no end', pem.replace(/-----END.*/s, ''), 'not_spki_pem', 'corrupt'],
    [
      'padding in the middle',
      pem.replace(body, `${body.slice(0, 64)}\n====\n${body.slice(65)}`),
      'not_spki_pem',
      'contains no public key',
    ],
    ['an empty block', '-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n', 'not_spki_pem', 'corrupt'],
    ['no PEM at all', body, 'not_spki_pem', 'BEGIN PUBLIC KEY'],
    ['an OpenSSH key', 'ssh-rsa AAAAB3NzaC1yc2E ann@host', 'not_spki_pem', 'BEGIN PUBLIC KEY'],
    ['nothing', '', 'not_spki_pem', 'BEGIN PUBLIC KEY'],
    ['a megabyte', pem + ' '.repeat(1_000_000), 'not_spki_pem', 'longer than'],
  ];
  for (const [name, text, code, words] of cases) {
    it(name, () => {
      const parsed = parsePublicKey(text);
      expect(parsed).toMatchObject({ ok: false, code });
      expect(!parsed.ok && parsed.error).toContain(words);
    });
  }

  it.each([
    ['PKCS#8', pair.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string],
    ['PKCS#1', pair.privateKey.export({ type: 'pkcs1', format: 'pem' }) as string],
    [
      'encrypted',
      pair.privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' }) as string,
    ],
    ['the public key first', pem + pair.privateKey.export({ type: 'pkcs8', format: 'pem' })],
  ])('a private key, with what to do next: %s', (_name, text) => {
    const parsed = parsePublicKey(text);
    expect(parsed).toMatchObject({ ok: false, code: 'private_key' });
    expect(!parsed.ok && parsed.error).toContain('make a new key pair');
    expect(!parsed.ok && parsed.error).not.toContain(text.split('\n')[2]!.slice(0, 16));
  });

  it('any modified text, without throwing', () => {
    const edit = fc.record({
      at: fc.nat(pem.length),
      drop: fc.nat(8),
      put: fc.oneof(fc.string({ maxLength: 6 }), fc.constant('\n')),
    });
    fc.assert(
      fc.property(fc.array(edit, { minLength: 1, maxLength: 3 }), (edits) => {
        let text = pem;
        for (const { at, drop, put } of edits) text = text.slice(0, at) + put + text.slice(at + drop);
        const parsed = parsePublicKey(text);
        if (parsed.ok) expect(parsePublicKey(parsed.pem)).toMatchObject({ ok: true, fingerprint: parsed.fingerprint });
        else expect(parsed.error.length).toBeGreaterThan(20);
      }),
      { numRuns: 400 },
    );
  });
});

describe('the key cache', () => {
  it('parses a key once', () => {
    const cache = createPublicKeyCache();
    const key = cache.keyOf('f', pem);
    expect(key.equals(pair.publicKey)).toBe(true);
    expect(cache.keyOf('f', pem.slice())).toBe(key);
    expect(cache.size).toBe(1);
  });

  it('JW-27 never returns a replaced key, even under an unchanged fingerprint', () => {
    const cache = createPublicKeyCache();
    const old = cache.keyOf('f', pem);
    const replaced = cache.keyOf('f', made(2048));
    expect(replaced.equals(old)).toBe(false);
    expect(cache.size).toBe(1);
  });

  it('evicts the least recently used keys beyond its limit', () => {
    const cache = createPublicKeyCache(2);
    const [a, b, c] = [pem, made(2048), made(2048)];
    const first = cache.keyOf('a', a);
    const second = cache.keyOf('b', b);
    expect(cache.keyOf('a', a)).toBe(first);
    cache.keyOf('c', c);
    expect(cache.size).toBe(2);
    expect(cache.keyOf('a', a)).toBe(first);
    expect(cache.keyOf('b', b)).not.toBe(second);
  });

  it('throws for an invalid PEM, and caches nothing', () => {
    const cache = createPublicKeyCache();
    expect(() => cache.keyOf('f', 'nonsense')).toThrow();
    expect(cache.size).toBe(0);
  });
});
