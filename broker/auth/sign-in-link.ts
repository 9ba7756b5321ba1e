import type { Broker } from '../broker.ts';
import { hashToken, mintToken } from '../crypto/one-time-token.ts';
import { findOneTimeToken, putOneTimeToken, useOneTimeToken } from '../store/one-time-tokens.ts';
import { findOwner } from '../store/organisations.ts';
import type { Db } from '../store/store.ts';
import type { OwnerTable } from '../store/tables/organisations.ts';

const LINK_MS = 15 * 60_000;

/**
 * Creates a sign-in link, for the operator, or in the transaction of the owner who makes it for another owner (`made`). The token is in the fragment,
 * which is never sent to servers or in Referer.
 */
export async function signInLink(
  broker: Pick<Broker, 'baseUrl' | 'clock' | 'store'>,
  owner: OwnerTable,
  made?: { by: string; db: Db },
): Promise<{ url: string; expires_at: string }> {
  const { token, hash } = mintToken('sign_in');
  const now = broker.clock();
  await putOneTimeToken(made?.db ?? broker.store.db, {
    organisation_id: owner.organisation_id,
    token_hash: hash,
    kind: 'sign_in',
    subject: owner.id,
    made_by: made?.by ?? null,
    created_at: now,
    expires_at: now + LINK_MS,
  });
  return {
    url: `${broker.baseUrl}/console/sign-in#${token.reveal()}`,
    expires_at: new Date(now + LINK_MS).toISOString(),
  };
}

/** The owner of a link. `use` consumes it, in the transaction that signs in, and returns false when a concurrent request was first. */
export type SignInLink = { owner: OwnerTable; use(tx: Db): Promise<boolean> };

/** Finds a link. Undefined when the link is unknown, used or expired, or its owner was removed. */
export async function findSignInLink(
  { store, clock }: Pick<Broker, 'store' | 'clock'>,
  token: string,
): Promise<SignInLink | undefined> {
  const hash = hashToken(token, 'sign_in');
  const found = hash && (await findOneTimeToken(store.db, 'sign_in', hash));
  if (!found || found.used_at !== null || found.expires_at <= clock()) return undefined;
  const owner = await findOwner(store.db, found.subject);
  return owner && { owner, use: async (tx) => (await useOneTimeToken(tx, 'sign_in', hash, clock())) !== undefined };
}
