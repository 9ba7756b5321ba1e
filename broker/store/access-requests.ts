/** Access requests (specification, Access request): pending, decided, expired. */
import type { AgentStatus } from '../policy/facts.ts';
import { livingFamily } from './children.ts';
import { addressOf } from './former-owners.ts';
import type { Db } from './store.ts';
import type { AccessRequestTable } from './tables/rules.ts';

/** Stores a new request. A unique index rejects a second pending one for the same agent, platform and scope. */
export async function putAccessRequest(db: Db, request: AccessRequestTable): Promise<void> {
  await db.insertInto('access_requests').values(request).execute();
}

export type RequestedScope = {
  organisationId: string;
  agentUuid: string;
  platformId: string;
  /** Empty when the request names no scope. */
  scope: string;
};

/** Returns the pending request for exactly this agent, platform and scope; undefined when there is none. */
export async function findOpenRequest(
  db: Db,
  asked: RequestedScope,
  now: number,
): Promise<AccessRequestTable | undefined> {
  return await db
    .selectFrom('access_requests')
    .selectAll()
    .where('organisation_id', '=', asked.organisationId)
    .where('agent_id', '=', asked.agentUuid)
    .where('platform_id', '=', asked.platformId)
    .where('scope', '=', asked.scope)
    .where('status', '=', 'pending')
    .where('expires_at', '>', now)
    .executeTakeFirst();
}

/** Number of pending requests of this agent and its children. */
export async function countOpenRequests(
  db: Db,
  { organisationId, agentUuid }: { organisationId: string; agentUuid: string },
  now: number,
): Promise<number> {
  const row = await db
    .selectFrom('access_requests')
    .select((eb) => eb.fn.countAll().as('count'))
    .where('organisation_id', '=', organisationId)
    .where('agent_id', 'in', livingFamily(db, organisationId, agentUuid))
    .where('status', '=', 'pending')
    .where('expires_at', '>', now)
    .executeTakeFirstOrThrow();
  return Number(row.count);
}

/** Returns the request with this token, of any agent; undefined when there is none. */
export async function findRequestByToken(db: Db, token: string): Promise<AccessRequestTable | undefined> {
  return await db.selectFrom('access_requests').selectAll().where('token', '=', token).executeTakeFirst();
}

/** A request with its agent and its deciding owner, for owners: without the token, which is the agent's. */
export type ShownRequest = Omit<AccessRequestTable, 'token'> & {
  agent_public_id: string;
  agent_name: string;
  agent_status: AgentStatus;
  parent_public_id: string | null;
  parent_name: string | null;
  parent_status: AgentStatus | null;
  decided_by_email: string | null;
};

const SHOWN = [
  'organisation_id',
  'id',
  'agent_id',
  'platform_id',
  'scope',
  'reason_code',
  'reason',
  'status',
  'created_at',
  'expires_at',
  'decided_at',
  'decided_by',
  'note',
  'granted',
  'decision_audit_id',
] as const satisfies readonly (keyof AccessRequestTable)[];

const shownRequests = (db: Db, organisationId: string) =>
  db
    .selectFrom('access_requests as r')
    .innerJoin('agents as a', (j) =>
      j.onRef('a.organisation_id', '=', 'r.organisation_id').onRef('a.id', '=', 'r.agent_id'),
    )
    .leftJoin('agents as pa', (j) =>
      j.onRef('pa.organisation_id', '=', 'a.organisation_id').onRef('pa.id', '=', 'a.parent_id'),
    )
    .select(SHOWN.map((column) => `r.${column}` as const))
    .select([
      'a.agent_id as agent_public_id',
      'a.name as agent_name',
      'a.status as agent_status',
      'pa.agent_id as parent_public_id',
      'pa.name as parent_name',
      'pa.status as parent_status',
      addressOf('r.organisation_id', 'r.decided_by').as('decided_by_email'),
    ])
    .where('r.organisation_id', '=', organisationId);

/** One request of an organisation, or undefined. */
export async function findAccessRequest(db: Db, organisationId: string, id: string): Promise<ShownRequest | undefined> {
  return await shownRequests(db, organisationId).where('r.id', '=', id).executeTakeFirst();
}

/** A page of an organisation's requests, newest first, older than the request `before`. */
export async function listAccessRequests(
  db: Db,
  organisationId: string,
  page: { status?: AccessRequestTable['status']; before?: string; limit: number; now: number },
): Promise<ShownRequest[]> {
  let query = shownRequests(db, organisationId);
  const { status, now } = page;
  if (status === 'pending') query = query.where('r.status', '=', 'pending').where('r.expires_at', '>', now);
  else if (status === 'expired')
    query = query.where((eb) =>
      eb.or([eb('r.status', '=', 'expired'), eb.and([eb('r.status', '=', 'pending'), eb('r.expires_at', '<=', now)])]),
    );
  else if (status) query = query.where('r.status', '=', status);
  if (page.before !== undefined) {
    const last = await findAccessRequest(db, organisationId, page.before);
    if (!last) return [];
    query = query.where((eb) =>
      eb.or([
        eb('r.created_at', '<', last.created_at),
        eb.and([eb('r.created_at', '=', last.created_at), eb('r.id', '<', last.id)]),
      ]),
    );
  }
  return await query.orderBy('r.created_at', 'desc').orderBy('r.id', 'desc').limit(page.limit).execute();
}

/** Returns which of these requests are decided or expired. */
export async function findSettledRequests(db: Db, ids: readonly string[], now: number): Promise<string[]> {
  const rows = await db
    .selectFrom('access_requests')
    .select('id')
    .where('id', 'in', ids)
    .where((eb) => eb.or([eb('status', '!=', 'pending'), eb('expires_at', '<=', now)]))
    .execute();
  return rows.map(({ id }) => id);
}

export type RequestDecision = {
  status: 'approved' | 'denied';
  at: number;
  by: string;
  note: string | null;
  /** The scopes that an approval grants. */
  granted: readonly string[] | null;
  auditId: string;
};

/**
 * Decides a pending request in one guarded statement, so that one of concurrent callers wins. Returns whether this one did; false: the
 * request was already decided, or has expired.
 */
export async function decideAccessRequest(
  db: Db,
  request: Pick<AccessRequestTable, 'organisation_id' | 'id'>,
  decision: RequestDecision,
): Promise<boolean> {
  const decided = await db
    .updateTable('access_requests')
    .set({
      status: decision.status,
      decided_at: decision.at,
      decided_by: decision.by,
      note: decision.note,
      granted: decision.granted === null ? null : JSON.stringify(decision.granted),
      decision_audit_id: decision.auditId,
    })
    .where('organisation_id', '=', request.organisation_id)
    .where('id', '=', request.id)
    .where('status', '=', 'pending')
    .where('expires_at', '>', decision.at)
    .returning('id')
    .executeTakeFirst();
  return decided !== undefined;
}

/** Expires pending requests that are past their time: all, or those of one agent. Returns which. */
export async function expireAccessRequests(
  db: Db,
  now: number,
  agent?: { organisationId: string; agentUuid: string },
): Promise<Pick<AccessRequestTable, 'organisation_id' | 'id'>[]> {
  let query = db
    .updateTable('access_requests')
    .set({ status: 'expired' })
    .where('status', '=', 'pending')
    .where('expires_at', '<=', now);
  if (agent) query = query.where('organisation_id', '=', agent.organisationId).where('agent_id', '=', agent.agentUuid);
  return await query.returning(['organisation_id', 'id']).execute();
}
