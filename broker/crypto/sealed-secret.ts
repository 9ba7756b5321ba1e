/**
 * Secrets on their way here, sealed by whoever has them: a JWE in its compact form (RFC 7516), ECDH-ES on P-256 and
 * AES-256-GCM (RFC 7518, sections 4.6 and 5.3). Nobody between the sender and the broker can read one.
 */
import type { KeyObject } from 'node:crypto';
import { compactDecrypt } from 'jose';
import type { EcPublicJwk } from './key-set.ts';

export const SEALING_ALG = 'ECDH-ES';
export const SEALING_ENC = 'A256GCM';

/** As it stands in a published key set (RFC 7517, section 4). */
export type PublishedSealingJwk = EcPublicJwk & {
  readonly alg: typeof SEALING_ALG;
  readonly use: 'enc';
  readonly kid: string;
};

export function publishedSealingKey(kid: string, { kty, crv, x, y }: EcPublicJwk): PublishedSealingJwk {
  return { kty, crv, x, y, alg: SEALING_ALG, use: 'enc', kid };
}

/** Undefined: the broker has no such key (any more). */
export type SealingKeyOf = (kid: string) => Promise<KeyObject | undefined>;

/**
 * Opens what was sealed to one of our keys. Undefined for whatever is none of it: another form, algorithm or key, an
 * altered text, a header that wants something of us. What of these it was, nobody is told. Rejects as `keyOf` does.
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
        if (!key) throw new Error('there is no such key');
        return key;
      },
      {
        keyManagementAlgorithms: [SEALING_ALG],
        contentEncryptionAlgorithms: [SEALING_ENC],
        // A small text that unpacks to a large one is nothing that a secret needs to be.
        maxDecompressedLength: 0,
      },
    );
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(plaintext);
  } catch {
    if (failed) throw failed.error;
    return undefined;
  }
}
