/** Encrypted state that a browser stores (as in a cookie): needs no table, and works on every replica. */
import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto';
import type { MasterKey, MasterKeys } from './master-key.ts';
import { decodeBase64url } from './strict-decoding.ts';

const NONCE = 12;
const TAG = 16;

/**
 * Seals a text (AES-256-GCM) under a key that is derived from the current master key for this purpose only, so that many
 * seals (which strangers can cause) use up the nonce space of no other key. Returns base64url.
 */
export function sealForBrowser(keys: MasterKeys, purpose: string, text: string): string {
  const nonce = randomBytes(NONCE);
  const cipher = createCipheriv('aes-256-gcm', derive(keys.current, purpose), nonce, { authTagLength: TAG });
  const sealed = cipher.update(text, 'utf8');
  cipher.final();
  return Buffer.concat([nonce, sealed, cipher.getAuthTag()]).toString('base64url');
}

/** Opens what `sealForBrowser` made for the same purpose, also under a previous master key; undefined for anything else. */
export function openFromBrowser(keys: MasterKeys, purpose: string, sealed: string): string | undefined {
  const bytes = decodeBase64url(sealed);
  if (!bytes || bytes.length < NONCE + TAG) return undefined;
  for (const key of [keys.current, ...keys.previous]) {
    const decipher = createDecipheriv('aes-256-gcm', derive(key, purpose), bytes.subarray(0, NONCE), {
      authTagLength: TAG,
    });
    decipher.setAuthTag(bytes.subarray(-TAG));
    const text = decipher.update(bytes.subarray(NONCE, -TAG));
    try {
      decipher.final();
      return text.toString('utf8');
    } catch {
      // Sealed with another key, or modified.
    }
  }
  return undefined;
}

/** RFC 5869; the master key is uniformly random, so it needs no salt. */
function derive(master: MasterKey, purpose: string): KeyObject {
  return createSecretKey(Buffer.from(hkdfSync('sha256', master.key, '', `agent-broker ${purpose}`, 32)));
}
