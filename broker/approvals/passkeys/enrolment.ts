/** Enrolling passkeys (specification, Passkeys, register/begin and register/finish). */

import type { PublicKeyCredentialCreationOptionsJSON, RegistrationResponseJSON } from '@simplewebauthn/server';
import { type Changing, type ChangingOwner, recordInTurn } from '../../audit/record-change.ts';
import type { Broker, Uses } from '../../broker.ts';
import { sha256Hex } from '../../crypto/canonical.ts';
import { uuidv4 } from '../../crypto/ids.ts';
import type { JsonObject } from '../../policy/facts.ts';
import { putNotice } from '../../store/notice-outbox.ts';
import { findOrganisation } from '../../store/organisations.ts';
import { listPasskeys, putPasskey } from '../../store/passkeys.ts';
import type { PasskeyTable } from '../../store/tables/approvals.ts';
import type { OwnerTable } from '../../store/tables/organisations.ts';
import { RolledBack, rollback } from '../../store/transaction.ts';
import { useChallenge } from '../../store/used-challenges.ts';
import { CHALLENGE_LIFETIME_MS, issueChallenge, judgeChallenge } from './challenge.ts';
import { readClientData, relyingPartyOf } from './client-data.ts';
import { creationOptions } from './options.ts';
import { verifyRegistration } from './verify.ts';

/** Limit per owner, disabled passkeys included. */
export const MAX_PASSKEYS = 20;

export type Enrolment =
  | { kind: 'enrolled'; passkey: PasskeyTable }
  | { kind: 'challenge_expired' }
  | { kind: 'unverified'; detail: string }
  /** The credential id is enrolled already, or was enrolled and is disabled. */
  | { kind: 'exists' }
  | { kind: 'too_many' };

/** Returns options for creating a passkey of this owner; undefined when the owner has reached the limit. */
export async function beginEnrolment(
  broker: Pick<Broker, 'baseUrl' | 'fleetRun' | 'clock' | 'store' | 'vault'>,
  owner: OwnerTable,
): Promise<PublicKeyCredentialCreationOptionsJSON | undefined> {
  const { db } = broker.store;
  const [organisation, passkeys] = await Promise.all([
    findOrganisation(db, owner.organisation_id),
    listPasskeys(db, { organisationId: owner.organisation_id, ownerId: owner.id }),
  ]);
  if (passkeys.length >= MAX_PASSKEYS) return undefined;
  return await creationOptions(owner, {
    challenge: await issueChallenge(broker, { purpose: 'register', id: owner.id }),
    rp: relyingPartyOf(broker),
    // A passkey that cannot sign in does not prevent its device from enrolling another one that can.
    passkeys: passkeys.filter(({ status, discoverable }) => status === 'active' && discoverable !== 0),
    requireUserVerification: organisation?.require_user_verification === 1,
  });
}

/**
 * Enrols the passkey that an authenticator created for this owner's challenge, which is consumed. When it throws AuditUnavailable, nothing was
 * enrolled.
 */
export async function enrolPasskey(
  services: Changing & Uses<'baseUrl' | 'fleetRun' | 'vault'>,
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
    restored_counter: null,
    transports: JSON.stringify([...new Set(response.response.transports ?? [])]),
    discoverable: discoverability(response),
    device_name: deviceName,
    status: 'active',
    created_at: broker.clock(),
    last_used_at: null,
  };
  return await keep(services, by, passkey, challenge);
}

/** As the browser reports it (WebAuthn section 10.1.3); null: not reported. */
function discoverability({ clientExtensionResults: { credProps } }: RegistrationResponseJSON): 0 | 1 | null {
  return credProps?.rk === undefined ? null : credProps.rk ? 1 : 0;
}

/** Consumes the challenge and stores the passkey in one transaction. */
async function keep(
  services: Changing,
  by: ChangingOwner,
  passkey: PasskeyTable,
  challenge: string,
): Promise<Enrolment> {
  const owner = { organisationId: passkey.organisation_id, ownerId: passkey.owner_id };
  const change = { reason: 'passkey_enrolled', detail: passkey.device_name };
  // In turn, so that the limit holds, and so that no passkey of a person outlasts what unlinks that person's account (`forgetIdentity`).
  const kept = await recordInTurn(services, by, change, async (tx, note) => {
    if (!(await putPasskey(tx, passkey))) return rollback('exists' as const);
    // An upper bound of the challenge's expiry.
    const used = { challenge_hash: sha256Hex(challenge), expires_at: passkey.created_at + CHALLENGE_LIFETIME_MS };
    if (!(await useChallenge(tx, used))) return rollback('challenge_expired' as const);
    if ((await listPasskeys(tx, owner)).length > MAX_PASSKEYS) return rollback('too_many' as const);
    await putNotice(tx, {
      organisation_id: passkey.organisation_id,
      id: uuidv4(),
      event: 'passkey_added',
      subject_id: passkey.id,
      created_at: passkey.created_at,
    });
    note(passkeyFacts(passkey));
    return undefined;
  });
  return kept instanceof RolledBack ? { kind: kept.reason } : { kind: 'enrolled', passkey };
}

/** Returns the facts about an added or removed passkey for the audit row and receipt. */
export const passkeyFacts = ({ credential_id, synced }: PasskeyTable): JsonObject => ({
  passkey: { credential_id, synced: synced === 1 },
});
