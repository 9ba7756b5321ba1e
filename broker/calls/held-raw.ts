/** Held raw requests: which held call an equal request joins, and what became of it (docs/decisions/21-raw-requests.md). */
import { findOwnApproval, readResult } from '../approvals/own-approvals.ts';
import { isSettled, statusAt } from '../audit/approval-state.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import type { Broker } from '../broker.ts';
import { sha256Hex } from '../crypto/canonical.ts';
import type { Instant } from '../policy/facts.ts';
import { endHeldJoin, type FoundJoin, findHeldJoins, recordHeldJoinAnswer } from '../store/held-joins.ts';
import type { ApprovalTable } from '../store/tables/approvals.ts';
import { essenceOf } from '../wire/media-type.ts';
import { boundaryOf, MAX_PARTS } from './parse-multipart.ts';
import { bytesOf, type HeldJoin, isLong, type RawRequest } from './raw-request.ts';

/**
 * How long a denial answers equal requests without asking a person again. The same applies after a client was told that its call has no
 * answer, or that its outcome is unknown: a client that missed that and retries would make the call a second time.
 */
const RETENTION_MS = 10 * 60_000;

/**
 * Returns the key by which equal requests join: agent, connection, method, target, media type and body. Other headers do not count, because
 * clients change them between retries; a different Idempotency-Key separates requests that are open at the same time. Undefined: the
 * request joins none, as for reads and bodies that are not kept.
 *
 * @param range the range of a partial upload: the same bytes may be written at several places
 * @param body for a multipart form its parts are hashed in order, because the boundary differs each time
 */
export function joinOf(
  { method, body, bodyHeaders }: Pick<RawRequest, 'method' | 'body' | 'bodyHeaders'>,
  {
    connectionId,
    target,
    idempotencyKey,
    range,
    openMs,
  }: {
    connectionId: string;
    target: string;
    idempotencyKey: string | undefined;
    range: string | undefined;
    openMs: number;
  },
): HeldJoin | undefined {
  if (method === 'GET' || method === 'HEAD' || isLong(body)) return undefined;
  const bytes = bytesOf(body) ?? Buffer.alloc(0);
  const parts = [
    connectionId,
    method,
    target,
    essenceOf(bodyHeaders['content-type']),
    bodyHash(bodyHeaders, bytes),
    ...(range === undefined ? [] : [range]),
  ];
  return {
    key: sha256Hex(JSON.stringify(parts)),
    separate: idempotencyKey === undefined ? '' : sha256Hex(idempotencyKey),
    openMs,
  };
}

/**
 * Adds the person to the key: the same request for another person is another call, whose answer depends on what that person may see.
 *
 * @param person a value that identifies the named person; undefined when nobody is named
 */
export const joinFor = (join: HeldJoin, person: string | undefined): HeldJoin =>
  person === undefined ? join : { ...join, key: sha256Hex(JSON.stringify([join.key, person])) };

/**
 * Hashes a body. For a multipart body the pieces between its delimiters (RFC 2046 section 5.1.1) are hashed, if each delimiter is a line of
 * its own and so cannot be text of a part; otherwise another boundary makes another body.
 */
function bodyHash({ 'content-type': type = '' }: RawRequest['bodyHeaders'], bytes: Buffer): string {
  if (!/^multipart\//i.test(type)) return sha256Hex(bytes);
  const boundary = boundaryOf(type);
  // Each piece costs a hash before anything is decided: a body of more parts is hashed as a whole.
  const pieces = boundary === undefined ? [] : bytes.toString('latin1').split(`--${boundary}`, MAX_PARTS + 3);
  const [before = '', ...parts] = pieces;
  const end = parts.pop();
  const areLines =
    pieces.length <= MAX_PARTS + 2 &&
    end?.startsWith('--') &&
    (before === '' || before.endsWith('\n')) &&
    parts.every((part) => /^\r?\n/.test(part) && part.endsWith('\n'));
  return sha256Hex(
    JSON.stringify(
      areLines ? pieces.map((piece) => sha256Hex(Buffer.from(piece, 'latin1'))) : [type, sha256Hex(bytes)],
    ),
  );
}

/** Returns the approval that an equal request joins, or undefined when the request is a new call. Deletes joins that have ended. */
export async function findJoined(
  { store, clock }: Pick<Broker, 'store' | 'clock'>,
  { agent }: AgentPrincipal,
  join: HeldJoin,
): Promise<string | undefined> {
  const now = clock();
  const place = { organisation_id: agent.organisation_id, agent_id: agent.id };
  const open: FoundJoin[] = [];
  for (const found of await findHeldJoins(store.db, { ...place, key: join.key }))
    if (hasEnded(found, now)) await endHeldJoin(store.db, found);
    else if (found.separate === join.separate) return found.approval_id;
    else if (found.open_until <= now) open.push(found);
  return open[0]?.approval_id;
}

function hasEnded(found: FoundJoin, now: Instant): boolean {
  const status = statusAt(found, now);
  if (status === 'expired') return true;
  // `told_at` is null until a client was told the result: such a join never ends here.
  const since = status === 'denied' ? found.decided_at : found.told_at;
  return since !== null && since + RETENTION_MS <= now;
}

/** Starts the ten minutes for which equal requests get the same "no answer" result; called when a client is first told. */
export async function startJoinWindow(
  { store, clock }: Pick<Broker, 'store' | 'clock'>,
  { agent }: AgentPrincipal,
  approvalId: string,
): Promise<void> {
  const { organisation_id, id: agent_id } = agent;
  await recordHeldJoinAnswer(store.db, { organisation_id, agent_id, approval_id: approvalId }, clock());
}

/** Ends the join: its client has the answer, or the call was not made, so the next equal request is a new call. */
export async function endJoin(
  { store }: Pick<Broker, 'store'>,
  { agent }: AgentPrincipal,
  approvalId: string,
): Promise<void> {
  const { organisation_id, id: agent_id } = agent;
  await endHeldJoin(store.db, { organisation_id, agent_id, approval_id: approvalId });
}

/**
 * What became of a held call. `in_progress`: approved, and being made. `unknown`: it may have been made. `no_answer`: made, but there is no
 * answer to return. `failed`: approved, but not made. `made`: `result` is the stored answer of the platform, as JSON text.
 */
export type HeldEnd =
  | { kind: 'pending' }
  | { kind: 'in_progress' }
  | { kind: 'denied'; note: string | null }
  | { kind: 'expired' }
  | { kind: 'unknown' | 'no_answer' | 'failed'; error: string; auditId: string | null }
  | { kind: 'made'; result: string; auditId: string | null };

/** Returns the state of a held call; undefined when this agent has no such held call. */
export async function readHeld(
  broker: Pick<Broker, 'store' | 'vault' | 'log' | 'clock'>,
  { agent }: AgentPrincipal,
  id: string,
): Promise<{ found: ApprovalTable; end: HeldEnd; isSettled: boolean } | undefined> {
  const found = await findOwnApproval(broker, agent, id);
  if (!found) return undefined;
  const now = broker.clock();
  return { found, end: endOf(broker, found, now), isSettled: isSettled(found, now) };
}

function endOf(broker: Pick<Broker, 'vault' | 'log'>, found: ApprovalTable, now: Instant): HeldEnd {
  const status = statusAt(found, now);
  if (status === 'denied') return { kind: 'denied', note: found.note };
  if (status === 'expired') return { kind: 'expired' };
  if (status === 'pending') return { kind: 'pending' };
  if (!isSettled(found, now)) return { kind: 'in_progress' };
  const auditId = found.replay_audit_id;
  const error = found.execution_error ?? 'The call was not made.';
  if (found.exec_state === 'unknown') return { kind: 'unknown', error, auditId };
  const result = found.exec_state === 'done' ? readResult(broker, found) : undefined;
  if (result === 'unreadable') return { kind: 'no_answer', error: 'The stored answer cannot be opened.', auditId };
  if (result === undefined) return { kind: found.executed_at === null ? 'failed' : 'no_answer', error, auditId };
  return { kind: 'made', result, auditId };
}
