import { createPublicKey, hash, type KeyObject } from 'node:crypto';
import { recentlyUsed } from '../runtime/recently-used.ts';
import { decodeBase64 } from './strict-decoding.ts';

export type RsaPublicJwk = { readonly kty: 'RSA'; readonly n: string; readonly e: string };

/** An agent's public key: `pem` in canonical form, `fingerprint` its SHA-256 thumbprint (RFC 7638) in base64url. */
export type AgentPublicKey = {
  readonly pem: string;
  readonly fingerprint: string;
  readonly key: KeyObject;
  readonly jwk: RsaPublicJwk;
};

export type RefusedPublicKey = {
  ok: false;
  code: 'private_key' | 'not_spki_pem' | 'not_rsa' | 'bad_size' | 'bad_exponent' | 'bad_modulus';
  /** For the sender: what is wrong, and what to do. Never contains any of the text that was sent. */
  error: string;
};

/** Most characters of a public key: five times a 4096-bit key. */
export const MAX_PEM = 4096;
const BEGIN = /-----BEGIN ([^\r\n]{0,64}?)-----/g;
const ONE_BLOCK =
  /^\s*-----BEGIN PUBLIC KEY-----[ \t]*\r?\n((?:[A-Za-z0-9+/=]+[ \t]*\r?\n)+)-----END PUBLIC KEY-----\s*$/;
const HOW =
  'Make one with: openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out agent.key && openssl pkey -in agent.key -pubout';

/**
 * Parses an agent's public key: one PEM block of SubjectPublicKeyInfo (RFC 7468 section 13)
 * with an RSA key of 2048 to 4096 bits and the exponent 65537 (JW-26), without surrounding text. Never throws.
 */
export function parsePublicKey(text: string): ({ ok: true } & AgentPublicKey) | RefusedPublicKey {
  const labels = labelsIn(text);
  if (labels.some(isPrivate)) {
    return refuse(
      'private_key',
      'This is a private key, which never leaves the agent. It was not stored, but it was sent over the network: make a new key pair, and send the public key (openssl pkey -in agent.key -pubout).',
    );
  }
  const wrongText = whatIsWrongWith(text, labels);
  if (wrongText !== undefined) return refuse('not_spki_pem', wrongText);
  const [, base64 = ''] = ONE_BLOCK.exec(text) ?? [];
  const der = decodeBase64(base64.replace(/\s+/g, ''));
  const key = der && parseDer(der);
  // OpenSSL ignores bytes after the key, so its own export has to equal the given bytes.
  if (!der || !key?.export({ format: 'der', type: 'spki' }).equals(der)) {
    return refuse('not_spki_pem', `The PEM block contains no public key (SubjectPublicKeyInfo). ${HOW}`);
  }
  return checkRsa(key);
}

const labelsIn = (text: string): string[] =>
  Array.from(text.slice(0, 4 * MAX_PEM).matchAll(BEGIN), ([, label = '']) => label);

const isPrivate = (label: string): boolean => label.includes('PRIVATE KEY');

/** Whether a text contains a private key in PEM form, which must not be sent anywhere. */
export const holdsPrivateKey = (text: string): boolean => labelsIn(text).some(isPrivate);

/** An LRU cache of parsed public keys. */
export type PublicKeyCache = {
  /**
   * Returns the key of a PEM that `parsePublicKey` has accepted and normalised. Parsed again when the PEM that is cached under that fingerprint differs, so
   * that a replaced key is never returned.
   * @throws Error when the PEM is not valid
   */
  keyOf(fingerprint: string, pem: string): KeyObject;
  readonly size: number;
};

/**
 * Creates a cache, because parsing a key costs half as much as verifying with it.
 * @param limit the number of keys, at some 2.5 KiB each
 */
export function createPublicKeyCache(limit = 10_000): PublicKeyCache {
  const kept = recentlyUsed<{ pem: string; key: KeyObject }>(limit);
  return {
    keyOf(fingerprint, pem) {
      const found = kept.get(fingerprint);
      if (found?.pem === pem) return found.key;
      const key = createPublicKey(pem);
      kept.set(fingerprint, { pem, key });
      return key;
    },
    get size() {
      return kept.size;
    },
  };
}

/** Returns why the text is not a single PEM block of a public key; undefined when it looks like one. */
function whatIsWrongWith(text: string, labels: readonly string[]): string | undefined {
  if (text.length > MAX_PEM) return `The text is longer than ${MAX_PEM} characters: no RSA key of 4096 bits is.`;
  if (labels.length === 0) return `A public key in PEM form (-----BEGIN PUBLIC KEY-----) is required. ${HOW}`;
  if (labels.length > 1) return 'There are several PEM blocks: send the public key alone.';
  switch (labels[0]) {
    case 'PUBLIC KEY':
      break;
    case 'CERTIFICATE':
      return 'This is a certificate. Send the key alone: openssl x509 -in cert.pem -pubkey -noout';
    case 'RSA PUBLIC KEY':
      return 'This is the older PKCS#1 form. Convert it: openssl rsa -RSAPublicKey_in -in key.pem -pubout';
    default:
      return `This PEM block is not a public key (-----BEGIN PUBLIC KEY-----). ${HOW}`;
  }
  if (ONE_BLOCK.test(text)) return undefined;
  return 'The PEM block is corrupt or has text around it. Send exactly the block, line breaks included.';
}

function parseDer(der: Buffer): KeyObject | undefined {
  try {
    return createPublicKey({ key: der, format: 'der', type: 'spki' });
  } catch {
    return undefined;
  }
}

function checkRsa(key: KeyObject): ({ ok: true } & AgentPublicKey) | RefusedPublicKey {
  if (key.asymmetricKeyType !== 'rsa') {
    const type = key.asymmetricKeyType === 'rsa-pss' ? 'RSA restricted to PSS' : key.asymmetricKeyType;
    return refuse('not_rsa', `Agents sign with RS256, which needs a plain RSA key; this one is ${type}. ${HOW}`);
  }
  const { modulusLength = 0, publicExponent } = key.asymmetricKeyDetails ?? {};
  if (modulusLength < 2048 || modulusLength > 4096) {
    return refuse('bad_size', `An RSA key of 2048 to 4096 bits is needed; this one has ${modulusLength}. ${HOW}`);
  }
  if (publicExponent !== 65537n) {
    return refuse('bad_exponent', `The RSA key's public exponent must be 65537. ${HOW}`);
  }
  const { n, e } = key.export({ format: 'jwk' }) as { n: string; e: string };
  // An RSA modulus is odd, and OpenSSL fails on an even one.
  if (((Buffer.from(n, 'base64url').at(-1) ?? 0) & 1) === 0) {
    return refuse('bad_modulus', `The RSA key's modulus is even, so it is not a valid key. ${HOW}`);
  }
  const jwk: RsaPublicJwk = { kty: 'RSA', n, e };
  const pem = key.export({ format: 'pem', type: 'spki' }) as string;
  return { ok: true, pem, fingerprint: rsaThumbprint(jwk), key, jwk };
}

/** RFC 7638: SHA-256 over the required members in lexical order, in base64url. */
function rsaThumbprint({ e, kty, n }: RsaPublicJwk): string {
  return hash('sha256', JSON.stringify({ e, kty, n }), 'base64url');
}

const refuse = (code: RefusedPublicKey['code'], error: string): RefusedPublicKey => ({ ok: false, code, error });
