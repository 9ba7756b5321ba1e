import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import type { MasterKey, MasterKeys } from './master-key.ts';

/**
 * The place where a sealed value is stored. It is the additional authenticated data (AAD) of the value, so that a value cannot be opened in another place
 * (KEY-01). A row that needs rollback protection puts its revision into `rowId`.
 */
export type SealedPlace = {
  readonly table: string;
  readonly column: string;
  readonly rowId: string;
  readonly organisationId: string;
};

/**
 * `malformed`: not a sealed value of a known version. `unknown_key`: sealed under a master key that is not available.
 * `tampered`: modified, or moved from another place. `bad_place`: a part of the place is empty or not well-formed text.
 */
export type SealErrorCode = 'malformed' | 'unknown_key' | 'tampered' | 'bad_place';

export class SealError extends Error {
  override readonly name = 'SealError';
  readonly code: SealErrorCode;
  constructor(code: SealErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/*
 * version 1 | master key id 8 | nonce 12, wrapped data key 32, tag 16 | nonce 12, ciphertext, tag 16
 *
 * Each value has its own data key, used once. A random nonce is safe for 2^32 values under one master key
 * (NIST SP 800-38D, section 8.3); the master key is rotated long before.
 */
const ALGORITHM = 'aes-256-gcm';
const VERSION = 1;
const KEY_ID = 1;
const WRAP_NONCE = 9;
const WRAPPED = 21;
const WRAP_TAG = 53;
const NONCE = 69;
const CIPHERTEXT = 81;
const TAG_BYTES = 16;
const TAG_OPTION = { authTagLength: TAG_BYTES };

/**
 * Seals bytes, or text as UTF-8, for one place, under the current master key. Adds 97 bytes.
 * @throws SealError `bad_place`
 */
export function seal(keys: MasterKeys, place: SealedPlace, plaintext: Buffer | string): Buffer {
  const context = contextOf(place);
  const random = randomBytes(44);
  const dataKey = random.subarray(0, 32);
  const nonce = random.subarray(32);
  const cipher = createCipheriv(ALGORITHM, createSecretKey(dataKey), nonce, TAG_OPTION);
  cipher.setAAD(Buffer.from(context, 'utf8'));
  const ciphertext = typeof plaintext === 'string' ? cipher.update(plaintext, 'utf8') : cipher.update(plaintext);
  cipher.final();
  const head = wrap(keys.current, context, dataKey);
  const sealed = Buffer.concat([head, nonce, ciphertext, cipher.getAuthTag()]);
  dataKey.fill(0);
  return sealed;
}

/**
 * Opens a value that was sealed for the same place.
 * @throws SealError for anything else
 */
export function open(keys: MasterKeys, place: SealedPlace, sealed: Uint8Array): Buffer {
  const bytes = asSealed(sealed);
  const context = contextOf(place);
  const dataKey = unwrap(keys, place, context, bytes);
  const end = bytes.length - TAG_BYTES;
  const plaintext = decrypt(createSecretKey(dataKey), Buffer.from(context, 'utf8'), {
    nonce: bytes.subarray(NONCE, CIPHERTEXT),
    ciphertext: bytes.subarray(CIPHERTEXT, end),
    tag: bytes.subarray(end),
  });
  dataKey.fill(0);
  return plaintext ?? refuse(place);
}

/** Returns the id of the master key under which a value is sealed. @throws SealError `malformed` */
export function sealedWith(sealed: Uint8Array): string {
  return asSealed(sealed).toString('hex', KEY_ID, WRAP_NONCE);
}

/**
 * Re-wraps a value's data key under the current master key; the ciphertext itself is neither read nor changed, so its length does not matter. A value that is
 * already under the current key is returned unchanged: the operation is idempotent.
 * @throws SealError
 */
export function rewrap(keys: MasterKeys, place: SealedPlace, sealed: Uint8Array): Buffer {
  const bytes = asSealed(sealed);
  if (sealedWith(bytes) === keys.current.id) return bytes;
  const context = contextOf(place);
  const dataKey = unwrap(keys, place, context, bytes);
  const rewrapped = Buffer.concat([wrap(keys.current, context, dataKey), bytes.subarray(NONCE)]);
  dataKey.fill(0);
  return rewrapped;
}

function wrap(master: MasterKey, context: string, dataKey: Buffer): Buffer {
  const nonce = randomBytes(12);
  const cipher = createCipheriv(ALGORITHM, master.key, nonce, TAG_OPTION);
  cipher.setAAD(wrapContext(context, master.id));
  const wrapped = cipher.update(dataKey);
  cipher.final();
  return Buffer.concat([Buffer.of(VERSION), Buffer.from(master.id, 'hex'), nonce, wrapped, cipher.getAuthTag()]);
}

function unwrap(keys: MasterKeys, place: SealedPlace, context: string, sealed: Buffer): Buffer {
  const id = sealedWith(sealed);
  const master = keys.current.id === id ? keys.current : keys.previous.find((key) => key.id === id);
  if (master === undefined) {
    throw new SealError(
      'unknown_key',
      `${nameOf(place)} is sealed with the master key ${id}, which this broker does not have (it has ${[keys.current, ...keys.previous].map((key) => key.id).join(', ')}).`,
    );
  }
  const dataKey = decrypt(master.key, wrapContext(context, id), {
    nonce: sealed.subarray(WRAP_NONCE, WRAPPED),
    ciphertext: sealed.subarray(WRAPPED, WRAP_TAG),
    tag: sealed.subarray(WRAP_TAG, NONCE),
  });
  return dataKey ?? refuse(place);
}

type Encrypted = { nonce: Buffer; ciphertext: Buffer; tag: Buffer };

function decrypt(key: KeyObject, context: Buffer, { nonce, ciphertext, tag }: Encrypted): Buffer | undefined {
  const decipher = createDecipheriv(ALGORITHM, key, nonce, TAG_OPTION);
  decipher.setAAD(context);
  decipher.setAuthTag(tag);
  const plaintext = decipher.update(ciphertext);
  try {
    decipher.final();
  } catch {
    return undefined;
  }
  return plaintext;
}

/**
 * Encodes the AAD: each part with its length as prefix, so that the encoding is unambiguous. The master key's id is added for the data key only, so that a
 * rotation does not change the ciphertext of the value.
 */
function contextOf(place: SealedPlace): string {
  let context = `${VERSION}`;
  for (const part of [place.table, place.column, place.rowId, place.organisationId]) {
    // A lone surrogate would become U+FFFD in UTF-8, so that two places could collide.
    if (part === '' || !part.isWellFormed()) throw new SealError('bad_place', 'A sealed value needs a complete place.');
    context += `:${part.length}:${part}`;
  }
  return context;
}

const wrapContext = (context: string, keyId: string): Buffer =>
  Buffer.from(`${context}:${keyId.length}:${keyId}`, 'utf8');

/** Returns a Buffer view, not a copy: SQLite returns Uint8Arrays, PostgreSQL Buffers. */
function asSealed(value: Uint8Array): Buffer {
  const bytes = Buffer.isBuffer(value) ? value : Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  if (bytes.length < CIPHERTEXT + TAG_BYTES || bytes[0] !== VERSION) {
    throw new SealError('malformed', 'This is not a sealed value in a format that this version of the broker knows.');
  }
  return bytes;
}

const nameOf = (place: SealedPlace): string => `${place.table}.${place.column} of row ${place.rowId}`;

function refuse(place: SealedPlace): never {
  throw new SealError('tampered', `${nameOf(place)} cannot be opened: it was modified, or sealed for another row.`);
}
