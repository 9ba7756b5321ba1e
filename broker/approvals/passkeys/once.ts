/** Authenticates a person by passkey, to sign in or to change their passkeys. */

import type { AuthenticationResponseJSON } from '@simplewebauthn/server';
import type { Recording } from '../../audit/recorder.ts';
import type { Uses } from '../../broker.ts';
import { sha256Hex } from '../../crypto/canonical.ts';
import { findPasskeyOf, usePasskey } from '../../store/passkeys.ts';
import type { Db } from '../../store/store.ts';
import type { OwnerTable } from '../../store/tables/organisations.ts';
import { inTransaction, RolledBack, rollback } from '../../store/transaction.ts';
import { useChallenge } from '../../store/used-challenges.ts';
import { NOT_VERIFIED, verifyAnybody } from './assertion.ts';
import { CHALLENGE_LIFETIME_MS, type ChallengeSubject, judgeChallenge } from './challenge.ts';
import { disableCloned, noteRestoredCounter } from './counter.ts';
import type { AssertionRefused } from './verify.ts';

/** `isActive`: reads, in the transaction of what the passkey was asserted for, whether it is still there and active. */
export type Asserted = { kind: 'asserted'; owner: OwnerTable; isActive(tx: Db): Promise<boolean> } | AssertionRefused;

/** The purposes that an assertion may have here. */
type Subject = Extract<ChallengeSubject, { purpose: 'sign-in' | 'add-passkey' | 'remove-passkey' }>;

const FOR = {
  'sign-in': 'signing in',
  'add-passkey': 'adding a passkey',
  'remove-passkey': 'removing this passkey',
} as const satisfies Record<Subject['purpose'], string>;

const unverified = (detail: string): Asserted => ({ kind: 'unverified', detail });

/**
 * Returns the owner whose passkey made this assertion for this purpose, once. The challenge is consumed and the counter stored in one transaction.
 * `session`: the owner whose passkey is required; undefined: the passkey identifies the owner.
 *
 * @throws AuditUnavailable when a cloned passkey could not be disabled
 */
export async function assertOnce(
  services: Recording & Uses<'baseUrl' | 'fleetRun' | 'vault'>,
  response: AuthenticationResponseJSON,
  { subject, session }: { subject: Subject; session?: OwnerTable },
  ids: { correlationId: string },
): Promise<Asserted> {
  const { broker } = services;
  const verified = await verifyAnybody(broker, response);
  if (!verified.ok) return unverified(verified.detail);
  const { challenge, passkey, owner, asserted } = verified;
  const state = await judgeChallenge(broker, challenge, subject);
  if (state === 'expired') return { kind: 'challenge_expired' };
  if (state === 'foreign') return unverified(`The challenge is not one for ${FOR[subject.purpose]}.`);
  if (session && session.id !== owner.id)
    return unverified('This passkey does not belong to the person who is signed in here.');
  const { counter } = asserted;
  const at = broker.clock();
  const used = await inTransaction(broker.store.db, async (tx) => {
    const once = { challenge_hash: sha256Hex(challenge), expires_at: at + CHALLENGE_LIFETIME_MS };
    if (!(await useChallenge(tx, once))) return rollback('challenge_expired' as const);
    return (await usePasskey(tx, passkey, { counter, at, may: 'sign_in' })) ? undefined : rollback('unusable' as const);
  });
  if (!(used instanceof RolledBack)) {
    await noteRestoredCounter(services, passkey, counter, {}, ids);
    const isActive = async (tx: Db) => (await findPasskeyOf(tx, owner.organisation_id, passkey.id)) !== undefined;
    return { kind: 'asserted', owner, isActive };
  }
  if (used.reason === 'challenge_expired') return { kind: 'challenge_expired' };
  return (await disableCloned(services, passkey, counter, {}, ids))
    ? { kind: 'counter_regression' }
    : unverified(NOT_VERIFIED);
}
