/**
 * Secrets that are encrypted by their sender: compact JWE (RFC 7516), ECDH-ES on P-256 and AES-256-GCM (RFC 7518, sections
 * 4.6 and 5.3), so that proxies between the sender and the broker cannot read them.
 */
import type { KeyObject } from 'node:crypto';
import { compactDecrypt } from 'jose';
import type { EcPublicJwk } from './key-set.ts';

const SEALING_ALG = 'ECDH-ES';
const SEALING_ENC = 'A256GCM';

/** The sealing key as published in a key set (RFC 7517, section 4). */
export type PublishedSealingJwk = EcPublicJwk & {
  readonly alg: typeof SEALING_ALG;
  readonly use: 'enc';
  readonly kid: string;
};

export function publishedSealingKey(kid: string, { kty, crv, x, y }: EcPublicJwk): PublishedSealingJwk {
  return { kty, crv, x, y, alg: SEALING_ALG, use: 'enc', kid };
}

/** Returns the private key of a kid; undefined: unknown, or already deleted. */
export type SealingKeyOf = (kid: string) => Promise<KeyObject | undefined>;

/**
 * Decrypts a JWE that was encrypted to one of the broker's keys. Undefined for anything else: another format, algorithm or key, a modified text, an
 * unsupported header. The reason is not distinguished, so that it cannot serve as an oracle. Rejects when `keyOf` does.
 */
export async function openSealed(jwe: string, keyOf: SealingKeyOf): Promise<string | undefined> {
  let failed: { error: unknown } | undefined;
  try {
    const { plaintext } = await compactDecrypt(
      jwe,
      async ({ kid }) => {
        const key = await (typeof kid === 'string' ? keyOf(kid) : undefined)?.catch((error) => {
          failed = { error };
          throw error;
        });
        if (!key) throw new Error('no such key');
        return key;
      },
      {
        keyManagementAlgorithms: [SEALING_ALG],
        contentEncryptionAlgorithms: [SEALING_ENC],
        // No compression: secrets do not need it, and it would allow decompression bombs.
        maxDecompressedLength: 0,
      },
    );
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(plaintext);
  } catch {
    if (failed) throw failed.error;
    return undefined;
  }
}
