/** Enrolling passkeys (specification, Passkeys, register/begin and register/finish). */

import type { RegistrationResponseJSON } from '@simplewebauthn/server';
import type { Changing } from '../audit/record-change.ts';
import { type ChangingOwner, recordChange } from '../audit/record-change.ts';
import { sha256Hex } from '../crypto/canonical.ts';
import { uuidv4 } from '../crypto/ids.ts';
import type { JsonObject } from '../policy/facts.ts';
import { findOrganisation } from '../store/organisations.ts';
import { listPasskeys, lockPasskeysOf, putPasskey } from '../store/passkeys.ts';
import type { PasskeyTable } from '../store/schema.ts';
import { useChallenge } from '../store/used-challenges.ts';
import { CHALLENGE_LIFETIME_MS, judgeChallenge } from './passkey-challenge.ts';
import { readClientData, relyingPartyOf } from './passkey-client-data.ts';
import { verifyRegistration } from './passkey-verify.ts';

/** Limit for each owner, disabled ones included. */
export const MOST_PASSKEYS = 20;

export type Enrolment =
  | { kind: 'enrolled'; passkey: PasskeyTable }
  | { kind: 'challenge_expired' }
  | { kind: 'unverified'; detail: string }
  /** The credential id is already enrolled, or was and is disabled. */
  | { kind: 'exists' }
  | { kind: 'too_many' };

/**
 * Enrols the passkey that an authenticator created for this owner's challenge, which is consumed. Throws AuditUnavailable: it is
 * not enrolled.
 */
export async function enrolPasskey(
  services: Changing,
  by: ChangingOwner,
  { response, deviceName }: { response: RegistrationResponseJSON; deviceName: string },
): Promise<Enrolment> {
  const { broker } = services;
  const { owner } = by;
  const rp = relyingPartyOf(broker);
  const clientData = readClientData(response.response.clientDataJSON, 'webauthn.create', rp);
  if (typeof clientData === 'string') return { kind: 'unverified', detail: clientData };
  const { challenge } = clientData;
  const state = await judgeChallenge(broker, challenge, { purpose: 'register', id: owner.id });
  if (state === 'expired') return { kind: 'challenge_expired' };
  if (state === 'foreign')
    return { kind: 'unverified', detail: 'The challenge is not one for an enrolment of this owner.' };
  const organisation = await findOrganisation(broker.store.db, owner.organisation_id);
  const requireUserVerification = organisation?.require_user_verification === 1;
  const verified = await verifyRegistration(response, { challenge, rp, requireUserVerification });
  if (!verified.ok) return { kind: 'unverified', detail: verified.detail };
  const passkey: PasskeyTable = {
    organisation_id: owner.organisation_id,
    id: uuidv4(),
    owner_id: owner.id,
    ...verified.credential,
    transports: JSON.stringify([...new Set(response.response.transports ?? [])]),
    device_name: deviceName,
    status: 'active',
    created_at: broker.clock(),
    last_used_at: null,
  };
  return await keep(services, by, passkey, challenge);
}

/** Undoes an enrolment that cannot be. */
class Impossible extends Error {
  readonly kind: 'exists' | 'too_many' | 'challenge_expired';
  constructor(kind: Impossible['kind']) {
    super(kind);
    this.kind = kind;
  }
}

/** Consumes the challenge and stores the passkey in one transaction. */
async function keep(
  services: Changing,
  by: ChangingOwner,
  passkey: PasskeyTable,
  challenge: string,
): Promise<Enrolment> {
  const owner = { organisationId: passkey.organisation_id, ownerId: passkey.owner_id };
  try {
    const change = { reason: 'passkey_enrolled', detail: passkey.device_name };
    await recordChange(services, by, change, async (db, note) => {
      await lockPasskeysOf(db, owner);
      if (!(await putPasskey(db, passkey))) throw new Impossible('exists');
      // An upper bound of its expiry.
      const used = { challenge_hash: sha256Hex(challenge), expires_at: passkey.created_at + CHALLENGE_LIFETIME_MS };
      if (!(await useChallenge(db, used))) throw new Impossible('challenge_expired');
      if ((await listPasskeys(db, owner)).length > MOST_PASSKEYS) throw new Impossible('too_many');
      note(told(passkey));
    });
    return { kind: 'enrolled', passkey };
  } catch (error) {
    if (!(error instanceof Impossible)) throw error;
    return { kind: error.kind };
  }
}

/** The facts about an added or removed passkey for the audit row and receipt. */
export const told = ({ credential_id, synced }: PasskeyTable): JsonObject => ({
  passkey: { credential_id, synced: synced === 1 },
});
