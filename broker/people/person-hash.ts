/**
 * Hashes identities of people: HMAC-SHA-256 with a key of the organisation, over parts that are encoded so that none can run into the
 * next. Byte for byte, without normalisation. The key is generated once, sealed as credentials are, and never replaced.
 */
import { createHmac, createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import type { Broker } from '../broker.ts';
import { uuidv4 } from '../crypto/ids.ts';
import { TOKEN_PREFIXES } from '../crypto/one-time-token.ts';
import { Secret } from '../crypto/secret.ts';
import { present } from '../runtime/present.ts';
import { recentlyUsed } from '../runtime/recently-used.ts';
import { findPersonKey, putFirstPersonKey } from '../store/people.ts';

/** A person's identity: by a verified assertion, or as a source states it. */
export type Identity = { issuer: string; subject: string } | { source: string; id: string };

export type PersonHasher = {
  /** Returns the hash of a person of an organisation, in hexadecimal. */
  hash(organisationId: string, identity: Identity): Promise<string>;
  /**
   * Derives the token of a consent from its random id: so only the token's hash has to be stored, and a repeated request gets the same
   * token. It has the form of every one-time token.
   */
  consentToken(organisationId: string, consentId: string): Promise<Secret>;
  /** Derives the session cookie that the browser with this hash gets by completing a consent; the same one for repeated requests. */
  sessionCookie(organisationId: string, consentId: string, browserHash: string): Promise<Secret>;
};

const KEY_BYTES = 32;
/** The number of organisations whose keys are cached in the clear. A key never changes, so the cache is never out of date. */
const CACHE_SIZE = 1_000;

export function personHasher({ store, vault }: Pick<Broker, 'store' | 'vault'>): PersonHasher {
  const kept = recentlyUsed<KeyObject>(CACHE_SIZE);
  const keyOf = async (organisationId: string): Promise<KeyObject> => {
    const found = kept.get(organisationId);
    if (found) return found;
    const placeOf = (id: string) => ({ table: 'person_keys', organisationId, rowId: id }) as const;
    let stored = await findPersonKey(store.db, organisationId);
    if (!stored) {
      const id = uuidv4();
      const sealed = vault.seal(placeOf(id), randomBytes(KEY_BYTES));
      await putFirstPersonKey(store.db, { organisation_id: organisationId, id, hash_key: sealed });
      stored = present(await findPersonKey(store.db, organisationId), 'key of the organisation');
    }
    const key = createSecretKey(vault.open(placeOf(stored.id), stored.hash_key));
    kept.set(organisationId, key);
    return key;
  };
  const macOf = async (organisationId: string, parts: readonly string[]): Promise<Buffer> => {
    const mac = createHmac('sha256', await keyOf(organisationId));
    for (const part of [organisationId, ...parts]) {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(Buffer.byteLength(part));
      mac.update(length).update(part);
    }
    return mac.digest();
  };
  return {
    hash: async (organisationId, identity) => {
      const parts =
        'issuer' in identity ? ['jwt', identity.issuer, identity.subject] : ['id', identity.source, identity.id];
      return (await macOf(organisationId, ['person', ...parts])).toString('hex');
    },
    consentToken: async (organisationId, consentId) => {
      const mac = await macOf(organisationId, ['consent', consentId]);
      return new Secret(TOKEN_PREFIXES.consent + mac.toString('base64url'));
    },
    sessionCookie: async (organisationId, consentId, browserHash) => {
      const mac = await macOf(organisationId, ['session', consentId, browserHash]);
      return new Secret(mac.toString('base64url'));
    },
  };
}
