/** Verifies a receipt with only a saved key set: no network, no store. */
import { createPublicKey, type KeyObject } from 'node:crypto';
import { verifyCompact } from '../crypto/jws.ts';
import { type EcPublicJwk, ecThumbprint } from '../crypto/key-set.ts';
import type { JsonObject } from '../policy/facts.ts';
import { RECEIPT_TYPE } from './receipt.ts';

/** As in the console: the key set was often saved before the key was rotated. */
const NO_KEY = 'the key set has no key of that name; a receipt by a newer key needs a newer key set';

export type ReceiptCheck = { ok: true; kid: string; payload: JsonObject } | { ok: false; error: string };

/**
 * Verifies a receipt, a compact JWS or the JSON form of the receipt route, with a JWK Set (`keySet`). In the JSON form only the receipt is signed, so its
 * `audit_id` and `kid` have to be equal to the signed ones. Never throws.
 */
export function verifyReceipt(receipt: string, keySet: string): ReceiptCheck {
  const keys = readKeys(keySet);
  if (typeof keys === 'string') return { ok: false, error: keys };
  const given = readReceipt(receipt);
  if (given === undefined) return { ok: false, error: 'it is neither a compact JWS nor the JSON of a receipt.' };
  const verified = verifyCompact(given.jws, keys, { typ: RECEIPT_TYPE });
  if (!verified.ok) return { ok: false, error: `${verified.code === 'unknown_key' ? NO_KEY : verified.detail}.` };
  const { kid, payload } = verified;
  for (const [name, signed] of [
    ['audit_id', payload.jti],
    ['kid', kid],
  ] as const)
    if (given.json[name] !== undefined && given.json[name] !== signed)
      return { ok: false, error: `the ${name} of its JSON is not that of the signed receipt, which is ${signed}.` };
  return { ok: true, kid, payload };
}

function readReceipt(text: string): { jws: string; json: JsonObject } | undefined {
  const trimmed = text.trim();
  if (!trimmed.startsWith('{')) return trimmed === '' ? undefined : { jws: trimmed, json: {} };
  try {
    const json = JSON.parse(trimmed) as JsonObject;
    return typeof json.receipt === 'string' ? { jws: json.receipt, json } : undefined;
  } catch {
    return undefined;
  }
}

/** Parses the key set into keys by kid. A kid that is not its key's thumbprint (RFC 7638) is rejected: key sets are pinned by kid. */
function readKeys(text: string): Map<string, KeyObject> | string {
  let set: { keys?: unknown };
  try {
    set = JSON.parse(text);
  } catch {
    return 'the key set is not JSON.';
  }
  if (!Array.isArray(set?.keys) || set.keys.length === 0) return 'the key set has no keys.';
  const keys = new Map<string, KeyObject>();
  for (const jwk of set.keys as (EcPublicJwk & { kid?: string })[]) {
    try {
      if (typeof jwk.kid !== 'string' || ecThumbprint(jwk) !== jwk.kid)
        return 'a kid in the key set is not the thumbprint of its key.';
      keys.set(jwk.kid, createPublicKey({ key: { kty: jwk.kty, crv: jwk.crv, x: jwk.x, y: jwk.y }, format: 'jwk' }));
    } catch {
      return 'a key in the key set is not an ES256 key.';
    }
  }
  return keys;
}
