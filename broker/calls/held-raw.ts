/** Held raw requests: which held call the same request joins, and what becomes of it (decisions, Raw door and sidecar). */
import { findOwnApproval, readResult } from '../approvals/own-approvals.ts';
import { isSettled, statusAt } from '../audit/approval-state.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import type { Broker } from '../broker.ts';
import { sha256Hex } from '../crypto/canonical.ts';
import type { Instant } from '../policy/facts.ts';
import { endHeldJoin, type FoundJoin, findHeldJoins, tellHeldJoin } from '../store/held-joins.ts';
import type { ApprovalTable } from '../store/tables/approvals.ts';
import { essenceOf } from '../wire/media-type.ts';
import { boundaryOf, MOST_PARTS } from './parse-multipart.ts';
import { bytesOf, type HeldJoin, isLong, type RawRequest } from './raw-request.ts';

/**
 * A denial answers the same request for so long, without asking a person again. So does what a client was told of a call that was made and has no
 * answer, or of which it is not known whether it was made: whoever sends it again may have missed that, and would make the call a second time.
 */
const REMEMBERED_FOR_MS = 10 * 60_000;

/**
 * What makes it the same request: agent, connection, method, target, media type and body. Other headers do not count, since clients
 * change them from one attempt to the next; another Idempotency-Key separates requests that are open at the same time. Undefined: it
 * joins none, as reads, and bodies that are not kept.
 *
 * @param range where the body belongs, of one that is a part: the same bytes may be written in several places
 * @param body of a form with parts, its parts in order: the boundary is another each time
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
 * The same request for another person is another call: its answer is of what that person may see.
 *
 * @param person what stands for the person whom the request names; undefined: it names nobody
 */
export const joinFor = (join: HeldJoin, person: string | undefined): HeldJoin =>
  person === undefined ? join : { ...join, key: sha256Hex(JSON.stringify([join.key, person])) };

/**
 * The hash of a body. Of one in parts it is that of what stands between its delimiters (RFC 2046 section 5.1.1), where each is a line of its own,
 * so that it cannot be taken for text of a part; elsewhere another boundary is another body.
 */
function bodyHash({ 'content-type': type = '' }: RawRequest['bodyHeaders'], bytes: Buffer): string {
  if (!/^multipart\//i.test(type)) return sha256Hex(bytes);
  const boundary = boundaryOf(type);
  // Each piece costs a hash, before anything is decided: of more, the body counts as it is.
  const pieces = boundary === undefined ? [] : bytes.toString('latin1').split(`--${boundary}`, MOST_PARTS + 3);
  const [before = '', ...parts] = pieces;
  const end = parts.pop();
  const areLines =
    pieces.length <= MOST_PARTS + 2 &&
    end?.startsWith('--') &&
    (before === '' || before.endsWith('\n')) &&
    parts.every((part) => /^\r?\n/.test(part) && part.endsWith('\n'));
  return sha256Hex(
    JSON.stringify(
      areLines ? pieces.map((piece) => sha256Hex(Buffer.from(piece, 'latin1'))) : [type, sha256Hex(bytes)],
    ),
  );
}

/** The approval that the same request joins; undefined: it is a call of its own. Forgets those that are over. */
export async function findJoined(
  { store, clock }: Pick<Broker, 'store' | 'clock'>,
  { agent }: AgentPrincipal,
  join: HeldJoin,
): Promise<string | undefined> {
  const now = clock();
  const place = { organisation_id: agent.organisation_id, agent_id: agent.id };
  const open: FoundJoin[] = [];
  for (const found of await findHeldJoins(store.db, { ...place, key: join.key }))
    if (isOver(found, now)) await endHeldJoin(store.db, found);
    else if (found.separate === join.separate) return found.approval_id;
    else if (found.open_until <= now) open.push(found);
  return open[0]?.approval_id;
}

function isOver(found: FoundJoin, now: Instant): boolean {
  const status = statusAt(found, now);
  if (status === 'expired') return true;
  // Whoever comes long after the call was made was told nothing yet.
  const since = status === 'denied' ? found.decided_at : found.told_at;
  return since !== null && since + REMEMBERED_FOR_MS <= now;
}

/** The same request is answered so for ten minutes from when its client was first told that there is no answer, which is now. */
export async function tellJoin(
  { store, clock }: Pick<Broker, 'store' | 'clock'>,
  { agent }: AgentPrincipal,
  approvalId: string,
): Promise<void> {
  const { organisation_id, id: agent_id } = agent;
  await tellHeldJoin(store.db, { organisation_id, agent_id, approval_id: approvalId }, clock());
}

/** The next equal request is another call: this one's client has its answer, or it was not made. */
export async function endJoin(
  { store }: Pick<Broker, 'store'>,
  { agent }: AgentPrincipal,
  approvalId: string,
): Promise<void> {
  const { organisation_id, id: agent_id } = agent;
  await endHeldJoin(store.db, { organisation_id, agent_id, approval_id: approvalId });
}

/**
 * What became of a held call. `in_progress`: it was approved, and is being made. `unknown`: it may have been made. `no_answer`: it was
 * made, and there is no answer to give. `failed`: it was approved, and not made. `result`: the stored answer of the platform, as JSON text.
 */
export type HeldEnd =
  | { kind: 'pending' }
  | { kind: 'in_progress' }
  | { kind: 'denied'; note: string | null }
  | { kind: 'expired' }
  | { kind: 'unknown' | 'no_answer' | 'failed'; error: string; auditId: string | null }
  | { kind: 'made'; result: string; auditId: string | null };

/** Undefined: there is no such held call of this agent. */
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
  const error = found.execution_error ?? 'It was not made.';
  if (found.exec_state === 'unknown') return { kind: 'unknown', error, auditId };
  const result = found.exec_state === 'done' ? readResult(broker, found) : undefined;
  if (result === 'unreadable') return { kind: 'no_answer', error: 'The stored answer cannot be opened.', auditId };
  if (result === undefined) return { kind: found.executed_at === null ? 'failed' : 'no_answer', error, auditId };
  return { kind: 'made', result, auditId };
}
