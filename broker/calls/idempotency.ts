/** `Idempotency-Key`: returns the first answer again, for 24 hours, instead of a second effect. */

import { MAX_RESULT_BYTES } from '../approvals/sealed.ts';
import { AuditUnavailable } from '../audit/audit-unavailable.ts';
import type { Recorder } from '../audit/recorder.ts';
import { keepsResponse } from '../audit/row.ts';
import { closeUnsent } from '../audit/stranded-keys.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import type { Uses } from '../broker.ts';
import { canonicalJson, sha256Hex } from '../crypto/canonical.ts';
import { uuidv7 } from '../crypto/ids.ts';
import { SealError } from '../crypto/seal.ts';
import { findAuditRow } from '../store/audit.ts';
import {
  claimIdempotencyKey,
  putIdempotentAnswer,
  releaseIdempotencyKey,
  reserveResponseBytes,
} from '../store/idempotency.ts';
import type { KeysToRelease } from '../store/keys-to-release.ts';
import type { IdempotencyTable } from '../store/tables/calls.ts';

/** How long the answer to a key is kept. */
export const LIFETIME_MS = 24 * 3600 * 1000;
/**
 * Age after which a claim without an audit row counts as abandoned. Longer than a write can be without a row, which is stored before it is
 * sent: before that, the tools of an MCP server may be listed, twice in 120 s (it may refuse a token). A read that takes longer is made
 * again. Such a claim was not released by its process, or its machine was asleep: its call is closed first, so that it cannot be made
 * beside the new one. Recovery releases the claims of dead processes sooner.
 */
const ABANDONED_MS = 300_000;

/** Limit of stored responses for an agent and its children together: ever new keys must not fill the disk. */
const MAX_STORED_BYTES = 32 * 1024 * 1024;

/** Grace period for storing an answer after its row; longer than that takes. */
const SETTLING_MS = 30_000;

/** A response as stored for retries with the same key. */
export type StoredResponse = { status: number; body?: string | Buffer };

/**
 * Why a call with this key is not made. `auditId`: the row of the first call with the key, or of this one when the key was reused for
 * another call.
 */
export type KeyRefused = {
  code: 'idempotency_key_reused' | 'idempotency_in_progress' | 'idempotency_outcome_unknown';
  detail: string;
  auditId: string;
};

/** `auditId`: the audit row of the first call. */
type Repeated = { kind: 'again'; response: StoredResponse; auditId: string } | ({ kind: 'key_refused' } & KeyRefused);

/** The result for the caller. `again`: the stored response of the first call with this key. */
export type Once<Answer> = { kind: 'answered'; answer: Answer } | Repeated;

const MAX_KEY = 255;

/** Returns the key of a call, or the error when the header is malformed. */
export function readKey(
  sent: string | readonly string[] | undefined,
): { ok: true; value: string | undefined } | { ok: false; error: string } {
  if (sent === undefined) return { ok: true, value: undefined };
  if (typeof sent === 'string' && sent.length <= MAX_KEY && /^[\x21-\x7e]+$/.test(sent))
    return { ok: true, value: sent };
  return { ok: false, error: `Idempotency-Key: 1 to ${MAX_KEY} visible ASCII characters, one header.` };
}

/**
 * Runs `perform` for the first request with this key, under the audit id that it is given; later ones get the same answer. A call without
 * effect (a refusal, a read) is not kept: a refused call may succeed once it is allowed, and a read is made again.
 *
 * @param request identifies the call: a different one with this key is refused
 * @param isRead whether the call has no effect, so that it may be sent before its row is stored
 */
export async function onceForKey<Answer extends StoredResponse>(
  services: Uses<'clock' | 'instanceId' | 'log' | 'store' | 'vault'> & {
    keysToRelease: KeysToRelease;
    recorder: Recorder;
  },
  who: AgentPrincipal,
  key: string,
  { request, isRead }: { request: object; isRead: boolean },
  perform: (auditId: string) => Promise<First<Answer>>,
): Promise<Once<Answer>> {
  const { broker } = services;
  const { db } = broker.store;
  const now = broker.clock();
  const claim = {
    organisation_id: who.agent.organisation_id,
    agent_id: who.agent.id,
    key_hash: sha256Hex(key),
    request_hash: sha256Hex(canonicalJson(request)),
    audit_id: uuidv7(now),
    instance_id: broker.instanceId,
    is_read: isRead ? 1 : 0,
    created_at: now,
    expires_at: now + LIFETIME_MS,
  };
  for (;;) {
    const earlier = await claimIdempotencyKey(db, claim);
    if (earlier === 'claimed') return { kind: 'answered', answer: await performOnce(services, who, claim, perform) };
    // The first request has just released the key.
    if (!earlier) continue;
    const judged = await judge(services, who, earlier, claim.request_hash);
    if (judged !== 'abandoned') return judged;
    await releaseIdempotencyKey(db, earlier);
  }
}

/** `stored`: what a retry is answered, if that differs from `answer`. `isKept`: whether the call may have had an effect. */
type First<Answer> = { answer: Answer; stored?: Answer; isKept: boolean };

type Claim = Omit<IdempotencyTable, 'status' | 'answer'>;

const placeOf = (claim: Pick<Claim, 'organisation_id' | 'audit_id'>) => ({
  table: 'idempotency_keys' as const,
  organisationId: claim.organisation_id,
  rowId: claim.audit_id,
});

async function performOnce<Answer extends StoredResponse>(
  { broker, keysToRelease }: Uses<'log' | 'store' | 'vault'> & { keysToRelease: KeysToRelease },
  { agent }: AgentPrincipal,
  claim: Claim,
  perform: (auditId: string) => Promise<First<Answer>>,
): Promise<Answer> {
  const { db } = broker.store;
  let first: First<Answer>;
  try {
    first = await perform(claim.audit_id);
  } catch (error) {
    // After an effect, or a possible one, the claim stays, and retries get its status.
    if (!(error instanceof AuditUnavailable && error.sent)) await keysToRelease.release(claim).catch(() => {});
    throw error;
  }
  const { answer, stored = answer } = first;
  try {
    if (!first.isKept) await keysToRelease.release(claim);
    else {
      const body = stored.body ?? '';
      const isSmall = Buffer.byteLength(body) <= MAX_RESULT_BYTES;
      const sealed = isSmall ? broker.vault.seal(placeOf(claim), String(body)) : null;
      const family = { organisation_id: agent.organisation_id, agent_id: agent.parent_id ?? agent.id };
      const { created_at: now, expires_at: expiresAt } = claim;
      const budget = { bytes: sealed?.length ?? 0, expiresAt, now, most: MAX_STORED_BYTES };
      const isKept = sealed !== null && (await reserveResponseBytes(db, family, budget));
      await putIdempotentAnswer(db, claim, { status: stored.status, sealed: isKept ? sealed : null });
    }
  } catch (error) {
    // The call is recorded, so it is answered: an error now would mean that nothing was sent. A retry gets "the answer was lost".
    broker.log.error({ err: error, auditId: claim.audit_id }, 'the answer to an Idempotency-Key could not be stored');
  }
  return answer;
}

async function judge(
  { broker, recorder }: Uses<'clock' | 'instanceId' | 'log' | 'store' | 'vault'> & { recorder: Recorder },
  { agent }: AgentPrincipal,
  earlier: IdempotencyTable,
  hash: string,
): Promise<Repeated | 'abandoned'> {
  const refused = (code: KeyRefused['code'], detail: string): Repeated => ({
    kind: 'key_refused',
    code,
    detail,
    auditId: earlier.audit_id,
  });
  if (earlier.request_hash !== hash)
    return refused('idempotency_key_reused', 'This Idempotency-Key was used for another request. Take a new key.');
  if (earlier.status !== null && earlier.answer !== null)
    try {
      const body = broker.vault.open(placeOf(earlier), earlier.answer).toString('utf8');
      return { kind: 'again', response: { status: earlier.status, body }, auditId: earlier.audit_id };
    } catch (error) {
      if (!(error instanceof SealError)) throw error;
      const { organisation_id: organisation, audit_id: auditId } = earlier;
      broker.log.error({ err: error, security: true, organisation, auditId }, 'a stored answer cannot be opened');
      return refused(
        'idempotency_outcome_unknown',
        'The first call with this key was answered, but the stored answer cannot be opened. Its receipt says what is known; check the platform before you repeat it.',
      );
    }
  if (earlier.status !== null)
    return refused(
      'idempotency_outcome_unknown',
      `The first call with this key was made and answered with ${earlier.status}, but the answer was too large to be kept, or the answers kept for this agent take up all of their ${MAX_STORED_BYTES / 1024 / 1024} MiB. Its receipt says what is known; it is not made again.`,
    );
  const row = await findAuditRow(broker.store.db, earlier.organisation_id, earlier.audit_id);
  // The row is stored just before the answer: within SETTLING_MS the first call may still be storing it.
  const settling = row?.reason !== 'outcome_unknown' && (row?.finished_at ?? 0) > broker.clock() - SETTLING_MS;
  if (row?.state === 'final' && !settling) {
    if (!keepsResponse(row)) return 'abandoned';
    return refused(
      'idempotency_outcome_unknown',
      'The first call with this key was made, may have been made or is held, but its answer was lost. Its receipt says what is known; check the platform before you repeat it.',
    );
  }
  if (!row && earlier.created_at <= broker.clock() - ABANDONED_MS) {
    const key = { ...earlier, agent_public_id: agent.agent_id, parent_agent_id: agent.parent_agent_id || null };
    if (earlier.is_read || (await closeUnsent(recorder, key, broker.instanceId))) return 'abandoned';
  }
  return refused('idempotency_in_progress', 'The first call with this Idempotency-Key is still under way.');
}
