/** Approving a held call by passkey (specification, Passkeys, sign/finish). */

import type { AuthenticationResponseJSON } from '@simplewebauthn/server';
import { statusAt } from '../audit/approval-state.ts';
import { AuditUnavailable } from '../audit/audit-unavailable.ts';
import type { Recording } from '../audit/record.ts';
import type { Changing } from '../audit/record-change.ts';
import { beginRow, noteFlags } from '../audit/row.ts';
import { uuidv7 } from '../crypto/ids.ts';
import {
  disableRegressed,
  findSignableApproval,
  listSigningPasskeys,
  type SignableApproval,
  usePasskey,
} from '../store/passkeys.ts';
import type { PasskeyTable } from '../store/schema.ts';
import { type Decided, decideHeld } from './decide.ts';
import { judgeChallenge, subjectOf } from './passkey-challenge.ts';
import { readClientData, relyingPartyOf } from './passkey-client-data.ts';
import { type Asserted, verifyAssertion } from './passkey-verify.ts';
import type { Replays } from './replay.ts';

export type Signed =
  | Exclude<Decided, { kind: 'changed' }>
  | { kind: 'challenge_expired' }
  /** The answer is not one of an active passkey of the agent's owner to this challenge. */
  | { kind: 'unverified'; detail: string }
  | { kind: 'counter_regression' };

const unverified = (detail: string): Signed => ({ kind: 'unverified', detail });

/** One sentence for all of them: it tells nobody whose passkeys there are. */
const NO_PASSKEY = "This is no active passkey of the agent's owner.";

/** Undoes what was begun with a passkey that turned out, at the last moment, not to count. */
class NotUsed extends Error {}

/**
 * Approves the call that the challenge was made for. The approval and the passkey's counter move in one transaction, so
 * that neither is used without the other; the replay then goes on by itself. Throws AuditUnavailable: nothing was decided.
 */
export async function approveByPasskey(
  services: Changing & { replays: Replays },
  response: AuthenticationResponseJSON,
  ids: { correlationId: string },
): Promise<Signed> {
  const { broker } = services;
  const { db } = broker.store;
  const rp = relyingPartyOf(broker);
  const clientData = readClientData(response.response.clientDataJSON, 'webauthn.get', rp);
  if (typeof clientData === 'string') return unverified(clientData);
  const { challenge } = clientData;
  const subject = subjectOf(challenge);
  if (subject?.purpose !== 'sign') return unverified('The challenge is not one for an approval.');
  const approval = await findSignableApproval(db, subject.id);
  if (!approval) return { kind: 'not_found' };
  const status = statusAt(approval, broker.clock());
  if (status === 'expired') return { kind: 'expired' };
  if (status !== 'pending') return { kind: 'already_decided', status };
  const state = await judgeChallenge(broker, challenge, {
    ...subject,
    purpose: 'sign',
    requestHash: approval.request_hash,
  });
  if (state === 'expired') return { kind: 'challenge_expired' };
  if (state === 'foreign') return unverified('The challenge is not one for this request.');
  const passkey = (await listSigningPasskeys(db, approval)).find((one) => one.credential_id === response.id);
  if (!passkey) return unverified(NO_PASSKEY);
  const requireUserVerification = approval.require_user_verification === 1;
  const asserted = await verifyAssertion(response, passkey, { challenge, rp, requireUserVerification });
  if (!asserted.ok) return unverified(asserted.detail);
  return await decide(services, approval, passkey, asserted, ids);
}

async function decide(
  services: Changing & { replays: Replays },
  approval: SignableApproval,
  passkey: PasskeyTable,
  { counter, userVerified }: Asserted,
  ids: { correlationId: string },
): Promise<Signed> {
  const owner = { id: approval.owner_id, organisation_id: approval.organisation_id };
  try {
    const decided = await decideHeld(
      services,
      owner,
      approval.id,
      {
        status: 'approved',
        how: 'passkey',
        passkey: {
          credential_id: passkey.credential_id,
          user_verified: userVerified,
          counter: counter === 0 ? 'not_kept' : 'increased',
        },
        requestHash: approval.request_hash,
        // After the decision, which only one can make: whoever sends an answer twice is late, not a clone.
        also: async (tx) => {
          const use = { counter, at: services.broker.clock(), agentUuid: approval.agent_id };
          if (!(await usePasskey(tx, passkey, use))) throw new NotUsed();
        },
      },
      ids,
    );
    return decided.kind === 'changed' ? unverified('The challenge is not one for this request.') : decided;
  } catch (error) {
    if (!(error instanceof NotUsed)) throw error;
    return (await disable(services, approval, passkey, counter, ids))
      ? { kind: 'counter_regression' }
      : unverified(NO_PASSKEY);
  }
}

/**
 * Disables a passkey that another one seems to be a copy of (WebAuthn section 7.2, step 22), for good, although the
 * decision was undone. False: its counter is not why it did not count. The agent did nothing, so its breaker stays shut.
 */
async function disable(
  { broker, recorder }: Recording,
  approval: SignableApproval,
  passkey: PasskeyTable,
  counter: number,
  { correlationId }: { correlationId: string },
): Promise<boolean> {
  const about = {
    organisation_id: approval.organisation_id,
    id: approval.agent_id,
    agent_id: approval.agent_public_id,
  };
  const ids = { auditId: uuidv7(broker.clock()), correlationId };
  const row = beginRow({ agent: about, sessionId: null }, {}, ids, broker);
  row.kind = 'event';
  row.reason = 'passkey_counter_regression';
  row.detail = 'The counter of a passkey did not go up: it may have been cloned, and was disabled.';
  row.approval_id = approval.id;
  let disabled: PasskeyTable | undefined;
  try {
    await recorder.finishWith(row, undefined, async (tx) => {
      disabled = await disableRegressed(tx, passkey, counter);
      if (!disabled) throw new NotUsed();
      const { id, owner_id: owner, credential_id, device_name, counter: stored_counter } = disabled;
      noteFlags(row, { passkey: { id, owner, credential_id, device_name, stored_counter, reported_counter: counter } });
    });
  } catch (error) {
    if (error instanceof AuditUnavailable && error.cause instanceof NotUsed) return false;
    throw error;
  }
  broker.log.warn({ security: true, passkey: passkey.id, owner: passkey.owner_id }, row.detail);
  return true;
}
