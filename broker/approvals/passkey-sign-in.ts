/** Signing in by passkey. */

import type { AuthenticationResponseJSON } from '@simplewebauthn/server';
import type { Recording } from '../audit/recorder.ts';
import type { Uses } from '../broker.ts';
import { sha256Hex } from '../crypto/canonical.ts';
import { usePasskey } from '../store/passkeys.ts';
import type { OwnerTable } from '../store/tables/organisations.ts';
import { inTransaction, RolledBack, rollback } from '../store/transaction.ts';
import { useChallenge } from '../store/used-challenges.ts';
import { NOT_VERIFIED, verifyAnybody } from './passkey-assertion.ts';
import { CHALLENGE_LIFETIME_MS, judgeChallenge, NOBODY } from './passkey-challenge.ts';
import { disableCloned, noteRestoredCounter } from './passkey-counter.ts';
import type { AssertionRefused } from './passkey-verify.ts';

export type SignedIn = { kind: 'signed_in'; owner: OwnerTable } | AssertionRefused;

/**
 * Who signs in with this assertion, once. The challenge is used up and the counter is stored in one transaction. Throws
 * AuditUnavailable: a cloned passkey could not be disabled.
 */
export async function signInByPasskey(
  services: Recording & Uses<'baseUrl' | 'fleetRun' | 'vault'>,
  response: AuthenticationResponseJSON,
  ids: { correlationId: string },
): Promise<SignedIn> {
  const { broker } = services;
  const verified = await verifyAnybody(broker, response);
  if (!verified.ok) return { kind: 'unverified', detail: verified.detail };
  const { challenge, passkey, owner, asserted } = verified;
  const state = await judgeChallenge(broker, challenge, { purpose: 'sign-in', id: NOBODY });
  if (state === 'expired') return { kind: 'challenge_expired' };
  if (state === 'foreign') return { kind: 'unverified', detail: 'The challenge is not one for signing in.' };
  const { counter } = asserted;
  const at = broker.clock();
  const used = await inTransaction(broker.store.db, async (tx) => {
    const once = { challenge_hash: sha256Hex(challenge), expires_at: at + CHALLENGE_LIFETIME_MS };
    if (!(await useChallenge(tx, once))) return rollback('challenge_expired' as const);
    return (await usePasskey(tx, passkey, { counter, at, may: 'sign_in' })) ? undefined : rollback('unusable' as const);
  });
  if (!(used instanceof RolledBack)) {
    await noteRestoredCounter(services, passkey, counter, {}, ids);
    return { kind: 'signed_in', owner };
  }
  if (used.reason === 'challenge_expired') return { kind: 'challenge_expired' };
  return (await disableCloned(services, passkey, counter, {}, ids))
    ? { kind: 'counter_regression' }
    : { kind: 'unverified', detail: NOT_VERIFIED };
}
