import type { Broker } from '../broker.ts';
import { mintToken } from '../crypto/one-time-token.ts';
import { putOneTimeToken } from '../store/one-time-tokens.ts';
import type { OwnerTable } from '../store/schema.ts';

const LINK_MS = 15 * 60_000;

/** Mints a sign-in link. The token is in the fragment, which is never sent to servers or in Referer. */
export async function signInLink(broker: Broker, owner: OwnerTable): Promise<{ url: string; expires_at: string }> {
  const { token, hash } = mintToken('sign_in');
  const now = broker.clock();
  await putOneTimeToken(broker.store.db, {
    organisation_id: owner.organisation_id,
    token_hash: hash,
    kind: 'sign_in',
    subject: owner.id,
    created_at: now,
    expires_at: now + LINK_MS,
  });
  return {
    url: `${broker.baseUrl}/console/sign-in#${token.reveal()}`,
    expires_at: new Date(now + LINK_MS).toISOString(),
  };
}
