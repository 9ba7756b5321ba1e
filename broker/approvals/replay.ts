/**
 * Replays approved calls at most once: the claim is durable before anything else, all checks are repeated on current facts, and each state change is
 * written in the transaction of its audit row.
 */

import { type ApprovalProvenance, approvedBefore, howDecided, provenanceOf } from '../audit/approval-state.ts';
import { AuditUnavailable } from '../audit/audit-unavailable.ts';
import { eventRow } from '../audit/event-row.ts';
import { executionError } from '../audit/execution-error.ts';
import type { Outcome, OutcomeOf, ReplayFailure } from '../audit/outcome.ts';
import type { Changing } from '../audit/record-change.ts';
import type { Companion, Recording } from '../audit/recorder.ts';
import { rowOf } from '../audit/row.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import type { Broker, Uses } from '../broker.ts';
import { correlationId as newCorrelationId, uuidv7 } from '../crypto/ids.ts';
import { present } from '../runtime/present.ts';
import { withTimeout } from '../runtime/waits.ts';
import { type AuditRow, storable } from '../store/audit.ts';
import type { FactsReader } from '../store/facts-reader.ts';
import { findHeldCall, type HeldCall } from '../store/held-calls.ts';
import { endIntendedReplay, moveReplay, type ReplayStep } from '../store/replays.ts';
import type { ApprovalTable } from '../store/tables/approvals.ts';
import type { Action } from '../wire/action.ts';
import { eventOfHeld, readHeldRequest, recordOfHeld } from './held-call.ts';
import { actionOf, callerOf, type Destination, type HeldCaller, rawOf, sealedDestination } from './held-request.ts';
import { sealResult, summarise } from './sealed.ts';

/**
 * An approved call. The approval overrides only a hold: it does not override a refusal, and does not apply to another request, connection or address.
 */
export type Replay = {
  approvalId: string;
  provenance: ApprovalProvenance;
  /** SHA-256 of the request that was approved. */
  requestHash: string;
  /** The connection that was used when the call was held. */
  connectionId: string | null;
  /** The destination when the call was held; earlier versions stored only part of it. */
  destination: Partial<Destination>;
  /** The person for whom it was held; undefined: for nobody in particular. */
  caller: HeldCaller | undefined;
  companion: Companion;
};

/** Executes an approved call: decides it again on current facts, sends it at most once, and records it. */
export type MakeReplay = (
  who: AgentPrincipal,
  action: Action,
  options: { correlationId: string; auditId: string; now: number; replay: Replay; raw?: ReturnType<typeof rawOf> },
) => Promise<unknown>;

type ReplayServices = Changing & { facts: FactsReader };

export type Replays = {
  /** Replays an approval that this process has claimed. Resolves when that is finished; never rejects. */
  start(claimed: ApprovalTable, options?: { recovered: boolean }): Promise<void>;
  isRunning(id: string): boolean;
  /** Starts no more replays: pending ones are left to another process, or to the next start. */
  stop(): void;
  /** Resolves when no replay is in progress, or after `timeoutMs`. */
  settled(timeoutMs: number): Promise<void>;
};

export function makeReplays(services: ReplayServices & Uses<'vault'>, make: MakeReplay): Replays {
  const running = new Map<string, Promise<void>>();
  let isStopped = false;
  const run = async (claimed: ApprovalTable, recovered: boolean): Promise<void> => {
    const { broker, changes } = services;
    try {
      await replayOnce(services, make, claimed, recovered);
    } catch (error) {
      // A failure before the intent means that nothing was sent, and the next recovery sweep retries; after the intent there is no retry.
      broker.log.error({ err: error, approval: claimed.id }, 'replay of an approved call failed');
    } finally {
      changes.tell(claimed);
    }
  };
  return {
    start: (claimed, { recovered } = { recovered: false }) => {
      const found = running.get(claimed.id);
      if (found) return found;
      if (isStopped) return Promise.resolve();
      const replay = run(claimed, recovered).finally(() => running.delete(claimed.id));
      running.set(claimed.id, replay);
      return replay;
    },
    isRunning: (id) => running.has(id),
    stop: () => {
      isStopped = true;
    },
    settled: async (timeoutMs) => {
      await withTimeout(Promise.all(running.values()), timeoutMs);
    },
  };
}

async function replayOnce(
  services: ReplayServices & Uses<'vault'>,
  make: MakeReplay,
  claimed: ApprovalTable,
  recovered: boolean,
): Promise<void> {
  const { broker } = services;
  const held = await findHeldCall(broker.store.db, claimed.organisation_id, claimed.id);
  // Another process took over the claim.
  if (held?.exec_state !== 'claimed' || held.fence !== claimed.fence) return;
  const now = broker.clock();
  const ids = { auditId: uuidv7(now), correlationId: newCorrelationId(), now };
  const provenance = provenanceOf(held, {
    at: present(held.decided_at, 'moment of the decision'),
    by: present(held.decided_by, 'owner who decided'),
    how: present(howDecided(held), 'way of the decision'),
    with: held.decided_with,
    on: held.decided_on,
    before: approvedBefore(held),
  });
  const state = approvalState(services, held, { auditId: ids.auditId, provenance });
  try {
    await replayHeld(services, make, { held, recovered, ids, provenance, companion: state.companion });
  } catch (error) {
    if (!(error instanceof AuditUnavailable && state.isElsewhere())) throw error;
  }
}

type Held = {
  held: HeldCall;
  recovered: boolean;
  ids: { auditId: string; correlationId: string; now: number };
  provenance: ApprovalProvenance;
  companion: Companion;
};

async function replayHeld(
  services: ReplayServices & Uses<'vault'>,
  make: MakeReplay,
  { held, recovered, ids, provenance, companion }: Held,
): Promise<void> {
  const { broker, recorder } = services;
  const refuse = async (reason: string, detail: string): Promise<void> => {
    const call = recordOfHeld(held, provenance, ids, broker);
    const outcome: OutcomeOf<'not_as_approved'> = { kind: 'not_as_approved', reason, detail, call };
    await recorder.record({ row: rowOf(outcome), value: outcome, companion });
  };
  const rows = await services.facts(held.agent_public_id, held.platform_id, '');
  const agent = rows[0];
  if (agent && agent.restored !== null)
    return await refuse(
      'store_restored',
      'The store was restored from a backup, in which this call was approved and not made yet. It may have been made since, and was not repeated.',
    );
  if (recovered && held.expires_at <= ids.now)
    return await refuse(
      'approval_expired',
      'The approval expired before the call could be begun, so nothing was sent.',
    );
  const request = readHeldRequest(services, held);
  if (request === undefined) return await refuse('request_unreadable', 'The stored request cannot be opened.');
  if (!agent) return await refuse('agent_revoked', 'The agent is no longer there.');
  const who = { kind: 'agent' as const, rows, agent, source: '', sessionId: held.session_id };
  const replay: Replay = {
    approvalId: held.id,
    provenance,
    requestHash: held.request_hash,
    connectionId: held.connection_id,
    destination: sealedDestination(request),
    caller: callerOf(request),
    companion,
  };
  await make(who, actionOf(request), { ...ids, replay, raw: rawOf(request) });
}

/** Records an outcome as an event after another process considered this one dead and closed the row as unknown. The signed row stays. */
async function recordLate(
  { broker, recorder }: Recording,
  held: HeldCall,
  { auditId, provenance, outcome }: { auditId: string; provenance: ApprovalProvenance; outcome: Outcome | undefined },
): Promise<void> {
  const now = broker.clock();
  const ids = { auditId: uuidv7(now), correlationId: newCorrelationId(), now };
  const event = eventOfHeld(held, provenance, ids, broker);
  const row = eventRow({
    ...event,
    reason: 'late_outcome',
    detail: `The call ended (${outcome?.kind ?? 'unknown'}) after its outcome had been recorded as unknown.`,
    upstreamStatus: outcome?.kind === 'answered' ? outcome.upstreamStatus : null,
    flags: { ...event.flags, late_for: auditId },
  });
  await recorder.record({ row, value: undefined });
}

/** Updates the approval in the transaction of the replay's audit row. `isElsewhere`: another process took over the replay, or closed its row. */
function approvalState(
  services: ReplayServices & Uses<'vault'>,
  held: HeldCall,
  call: { auditId: string; provenance: ApprovalProvenance },
): { companion: Companion; isElsewhere(): boolean } {
  const { broker, changes } = services;
  let elsewhere = false;
  const store: Companion['store'] = async (tx, row, value) => {
    // The call was not sent, and its intent may or may not be stored: without an intent the claim stays, and the replay is retried.
    if (row.state === 'final' && row.reason === 'audit_unavailable') {
      const step = {
        exec_state: 'failed' as const,
        executed_at: null,
        execution_error: executionError(row, undefined).text,
      };
      await endIntendedReplay(tx, held, row.id, step, broker.clock());
      return undefined;
    }
    const step = stepOf(broker, held, row, value as OutcomeOf<'answered'> | ReplayFailure | undefined);
    const moved = await moveReplay(tx, held, row.id, step, broker.clock());
    if (!moved) {
      elsewhere = true;
      return 'taken_over';
    }
    if (step.exec_state !== 'intent') await changes.announce(tx, held);
    broker.log.debug({ approval: held.id, state: step.exec_state }, 'replay state changed');
    return undefined;
  };
  const tooLate = async (outcome: unknown): Promise<void> => {
    await recordLate(services, held, { ...call, outcome: outcome as Outcome | undefined });
    elsewhere = true;
  };
  return { companion: { store, tooLate }, isElsewhere: () => elsewhere };
}

function stepOf(
  broker: Pick<Broker, 'clock' | 'vault'>,
  held: HeldCall,
  row: Readonly<AuditRow>,
  outcome: OutcomeOf<'answered'> | ReplayFailure | undefined,
): ReplayStep {
  if (row.state === 'intent') return { exec_state: 'intent' };
  const at = row.finished_at;
  if (outcome?.kind === 'answered')
    return {
      exec_state: 'done',
      executed_at: at ?? broker.clock(),
      result: sealResult(broker, held, outcome),
      result_summary: summarise(outcome),
    };
  const { unknown, made, ...said } = executionError(row, outcome);
  const text = storable(said.text);
  return unknown
    ? { exec_state: 'unknown', execution_error: text }
    : { exec_state: 'failed', executed_at: made ? at : null, execution_error: text };
}
