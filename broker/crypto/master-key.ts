import { createHmac, createSecretKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto';
import { Secret } from './secret.ts';
import { decodeBase64 } from './strict-decoding.ts';

/** The key that wraps all data keys. `id` is 16 hexadecimal digits derived from the key, safe to print and to store. */
export type MasterKey = { readonly id: string; readonly key: KeyObject };

/** New values are sealed with `current`; values sealed with a previous key can still be opened and re-wrapped. */
export type MasterKeys = { readonly current: MasterKey; readonly previous: readonly MasterKey[] };

export type MasterKeyErrorCode = 'missing' | 'malformed' | 'weak' | 'unsafe_file' | 'busy' | 'unreadable';

/** The reason why there is no usable master key, for the operator; never contains any part of the key. */
export class MasterKeyError extends Error {
  override readonly name = 'MasterKeyError';
  readonly code: MasterKeyErrorCode;
  constructor(code: MasterKeyErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

const MAKE_ONE = 'Make one with: openssl rand -base64 32';

/**
 * Parses one master key: 32 bytes in standard base64, exactly 44 characters.
 * @param source name of the source for messages, such as `AGENT_BROKER_MASTER_KEY`
 * @throws MasterKeyError `malformed`, or `weak` for a sample key, all zeros or anything obviously not random (KEY-06)
 */
export function parseMasterKey(text: string, source: string): MasterKey {
  const bytes = decodeBase64(text);
  if (bytes?.length !== 32) {
    throw new MasterKeyError(
      'malformed',
      `${source} is not a master key: it must be 32 bytes in base64 (44 characters). ${MAKE_ONE}`,
    );
  }
  const reason = weakness(bytes);
  if (reason !== undefined) {
    throw new MasterKeyError('weak', `${source} is refused as a master key: ${reason}. ${MAKE_ONE}`);
  }
  return masterKey(bytes);
}

/** Generates a master key: its text for a key file (32 random bytes in base64), and the key. */
export function generateMasterKey(): { text: Secret; key: MasterKey } {
  const bytes = randomBytes(32);
  return { text: new Secret(bytes.toString('base64')), key: masterKey(bytes) };
}

/**
 * Returns the key check value, HMAC-SHA-256(key, "kcv") in hexadecimal: it is stored, shows at the next start whether the same key sealed the stored values
 * (ST-08), and reveals nothing about the key.
 */
export function checkValue(key: MasterKey): string {
  return createHmac('sha256', key.key).update('kcv').digest('hex');
}

/**
 * Derives a key for one purpose, 32 bytes: HKDF-SHA-256 (RFC 5869) of the master key.
 * @param salt further input of the derivation; need not be secret
 */
export function deriveKey(master: MasterKey, job: string, salt = ''): Buffer {
  return Buffer.from(hkdfSync('sha256', master.key, salt, `agent-broker ${job}`, 32));
}

function masterKey(bytes: Buffer): MasterKey {
  const key = createSecretKey(bytes);
  // Uses another label than the check value, because the id is truncated and part of every sealed value.
  const id = createHmac('sha256', key).update('key id').digest('hex').slice(0, 16);
  bytes.fill(0);
  return { id, key };
}

/**
 * Published keys, such as test vectors that get copied. Any key in this repository must be listed here or be refused by the patterns below; a test searches
 * the repository.
 */
const PUBLISHED_KEYS: readonly string[] = [
  'YD3rEBXKcb4rc67whX13gR81LAc7YQjXLZgQowkU3/Q=', // NIST SP 800-38A, F.1.5
  'saH0gFSP4XM/tAP/a5rU9ooHbltwLiJpL4LLLnrqQPw=', // RFC 7516, A.1.2
];

/** Returns why a key of 32 bytes is obviously not random; undefined when it may be. A random key is refused with a probability below 10^-10. */
function weakness(key: Buffer): string | undefined {
  if (key.every((byte) => byte === 0)) return 'it is all zeros';
  if (PUBLISHED_KEYS.includes(key.toString('base64'))) return 'it is a published sample key';
  if (key.every((byte) => byte >= 0x20 && byte < 0x7f)) return 'it is text, not random bytes';
  const step = (key.readUInt8(1) - key.readUInt8(0)) & 0xff;
  if (key.every((byte, at) => at === 0 || ((byte - key.readUInt8(at - 1)) & 0xff) === step))
    return 'its bytes are a plain sequence';
  if (key.subarray(0, 16).equals(key.subarray(16))) return 'its second half repeats its first';
  if (new Set(key).size < 16) return 'it has too few different bytes';
  return undefined;
}
