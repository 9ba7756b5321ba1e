import { type KeyObject, sign, verify } from 'node:crypto';
import type { JsonObject } from '../policy/facts.ts';
import type { SigningKey } from './key-set.ts';
import { decodeBase64url, parseSignedObject } from './strict-decoding.ts';

/** The members of the protected header other than `alg` and `kid`. */
export type JwsHeader = { readonly typ: string };

/**
 * Signs a compact JWS (RFC 7515 section 7.1) with ES256, synchronously.
 * @param payload an object, or its JSON text, which is then signed byte for byte
 */
export type SignCompact = (key: SigningKey, header: JwsHeader, payload: JsonObject | string) => string;

export type VerifiedJws = { ok: true; kid: string; payload: JsonObject };
export type RefusedJws = {
  ok: false;
  code: 'malformed' | 'unsupported' | 'wrong_type' | 'unknown_key' | 'bad_signature';
  detail: string;
};

/** In characters. Larger than any receipt; limits the work for untrusted input. */
const MAX_JWS = 65_536;
/** Header parameters by which a token could supply its own key or change how it is verified. */
const FORBIDDEN_HEADERS = ['crit', 'b64', 'jwk', 'jku', 'x5u', 'x5c'];

/** Implements `SignCompact`, for occasional signatures; for frequent ones use `createCompactSigner`. */
export const signCompact: SignCompact = (key, header, payload) => finish(key, encodeHeader(key, header), payload);

/** A signer that caches its encoded headers: one for each key and type, of which there are a handful. */
export function createCompactSigner(): SignCompact {
  const headers = new WeakMap<SigningKey, Map<string, string>>();
  return (key, header, payload) => {
    const byType = headers.get(key) ?? new Map<string, string>();
    const encoded = byType.get(header.typ) ?? encodeHeader(key, header);
    headers.set(key, byType.set(header.typ, encoded));
    return finish(key, encoded, payload);
  };
}

/**
 * Verifies a compact JWS: ES256 by one of the given keys, of exactly this type, canonical base64url throughout, no unknown critical header (RFC 8725 sections
 * 3.1, 3.10 and 3.11). The caller checks the claims.
 */
export function verifyCompact(
  jws: string,
  keys: ReadonlyMap<string, KeyObject>,
  expected: { typ: string },
): VerifiedJws | RefusedJws {
  if (jws.length > MAX_JWS) return refuse('malformed', `it is longer than ${MAX_JWS} characters`);
  const segments = jws.split('.', 4);
  if (segments.length !== 3) return refuse('malformed', 'a compact JWS has three parts, separated by dots');
  const [headerBytes, payloadBytes, signature] = segments.map(decodeBase64url);
  if (!headerBytes || !payloadBytes || !signature)
    return refuse('malformed', 'a part of it is not canonical base64url');
  const header = parseSignedObject(headerBytes);
  if (header === undefined) return refuse('malformed', 'its header is not a JSON object with unique names');
  if (header.alg !== 'ES256') return refuse('unsupported', 'its alg is not ES256');
  const forbidden = FORBIDDEN_HEADERS.find((name) => Object.hasOwn(header, name));
  if (forbidden !== undefined) return refuse('unsupported', `its header has ${forbidden}, which is not accepted`);
  if (header.typ !== expected.typ) return refuse('wrong_type', `its typ is not ${expected.typ}`);
  const { kid } = header;
  const key = typeof kid === 'string' ? keys.get(kid) : undefined;
  if (key === undefined) return refuse('unknown_key', 'its kid names none of the known keys');
  const signed = Buffer.from(jws.slice(0, jws.lastIndexOf('.')), 'latin1');
  if (signature.length !== RAW_BYTES || !verify('sha256', signed, key, derSignature(signature)))
    return refuse('bad_signature', 'its signature does not match');
  const payload = parseSignedObject(payloadBytes);
  if (payload === undefined) return refuse('malformed', 'its payload is not a JSON object with unique names');
  return { ok: true, kid: kid as string, payload };
}

/** Reassembles the compact JWS that was signed with this key and header over this text. `signature`: its third part. */
export const compactJws = (key: { kid: string }, header: JwsHeader, payload: string, signature: string): string =>
  `${signedPart(encodeHeader(key, header), payload)}.${signature}`;

const encodeHeader = ({ kid }: { kid: string }, { typ }: JwsHeader): string =>
  Buffer.from(JSON.stringify({ alg: 'ES256', typ, kid })).toString('base64url');

const signedPart = (header: string, payload: string): string =>
  `${header}.${Buffer.from(payload, 'utf8').toString('base64url')}`;

function finish(key: SigningKey, header: string, payload: JsonObject | string): string {
  const signed = signedPart(header, typeof payload === 'string' ? payload : JSON.stringify(payload));
  const signature = rawSignature(sign('sha256', Buffer.from(signed, 'latin1'), key.privateKey));
  return `${signed}.${signature.toString('base64url')}`;
}

/** R and S of ES256, 32 bytes each. */
const RAW_BYTES = 64;

/**
 * Converts the DER signature (RFC 3279 section 2.2.3) of OpenSSL to R and S concatenated (RFC 7518 section 3.4). Node can do it (`ieee-p1363`), but copies
 * the key each time, which doubles the cost of signing, and adds 40 % to that of verifying.
 */
function rawSignature(der: Buffer): Buffer {
  const raw = Buffer.alloc(RAW_BYTES);
  let at = 2;
  for (const end of [32, 64]) {
    const next = at + 2 + der.readUInt8(at + 1);
    // DER integers have a leading zero byte when the high bit is set, and no other leading zeros.
    const from = Math.max(at + 2, next - 32);
    der.copy(raw, end - (next - from), from, next);
    at = next;
  }
  return raw;
}

/** Converts R and S, concatenated, to a DER signature. */
function derSignature(raw: Buffer): Buffer {
  // The longest: two integers of 33 bytes with two bytes before each, and two before both.
  const der = Buffer.alloc(2 + 2 * (2 + 33));
  let at = 2;
  for (const end of [32, 64]) {
    let from = end - 32;
    // No leading zero bytes but the one before a high bit, which would be a sign.
    while (from < end - 1 && raw[from] === 0) from++;
    const isSigned = raw.readUInt8(from) >= 0x80;
    der[at] = 0x02;
    der[at + 1] = end - from + (isSigned ? 1 : 0);
    at += isSigned ? 3 : 2;
    at += raw.copy(der, at, from, end);
  }
  der[0] = 0x30;
  der[1] = at - 2;
  return der.subarray(0, at);
}

const refuse = (code: RefusedJws['code'], detail: string): RefusedJws => ({ ok: false, code, detail });
