/** Held calls for display: with their agent, connection, and the reason why they were held. */
import { findApproval } from './approvals.ts';
import { addressOf } from './former-owners.ts';
import type { Db } from './store.ts';
import type { ApprovalTable } from './tables/approvals.ts';

export type HeldCallFilter = {
  status?: ApprovalTable['status'] | undefined;
  /** The agent's uuid or `agt_` id. */
  agent?: string | undefined;
  platform?: string | undefined;
  scope?: string | undefined;
};

/** A held call with its agent, and the reason in its audit row. */
export type HeldCall = ApprovalTable & {
  agent_public_id: string;
  agent_name: string;
  agent_status: string;
  agent_owner_id: string;
  parent_public_id: string | null;
  parent_name: string | null;
  parent_status: string | null;
  /** Not null while all agents of the organisation are stopped. */
  agents_stopped: string | null;
  /** 1 while the organisation has suspended the platform; null: it was removed. */
  platform_suspended: number | null;
  session_id: string | null;
  agent_reason: string | null;
  connection_id: string | null;
  connection_label: string | null;
  /** When the credential of the connection was last replaced; null: never, or the connection was removed. */
  connection_replaced_at: number | null;
  decided_by_email: string | null;
  corrected_by_email: string | null;
  held_reason: string | null;
  held_detail: string | null;
  held_decision: string | null;
  held_flags: string | null;
  /** Of the audit row of the last correction; null when there was none. */
  correction_detail: string | null;
  correction_flags: string | null;
};

const heldCalls = (db: Db) =>
  db
    .selectFrom('approvals as p')
    .innerJoin('agents as a', (j) =>
      j.onRef('a.organisation_id', '=', 'p.organisation_id').onRef('a.id', '=', 'p.agent_id'),
    )
    .innerJoin('organisations as o', 'o.id', 'p.organisation_id')
    .leftJoin('agents as pa', (j) =>
      j.onRef('pa.organisation_id', '=', 'a.organisation_id').onRef('pa.id', '=', 'a.parent_id'),
    )
    .leftJoin('platforms as f', (j) =>
      j.onRef('f.organisation_id', '=', 'p.organisation_id').onRef('f.platform_id', '=', 'p.platform_id'),
    )
    .leftJoin('audit_rows as h', (j) =>
      j.onRef('h.organisation_id', '=', 'p.organisation_id').onRef('h.id', '=', 'p.audit_id'),
    )
    .leftJoin('audit_rows as cr', (j) =>
      j.onRef('cr.organisation_id', '=', 'p.organisation_id').onRef('cr.id', '=', 'p.correction_audit_id'),
    )
    .leftJoin('connections as c', (j) =>
      j.onRef('c.organisation_id', '=', 'p.organisation_id').onRef('c.id', '=', 'h.connection_id'),
    )
    .selectAll('p')
    .select([
      'a.agent_id as agent_public_id',
      'a.name as agent_name',
      'a.status as agent_status',
      'a.owner_id as agent_owner_id',
      'pa.agent_id as parent_public_id',
      'pa.name as parent_name',
      'pa.status as parent_status',
      'o.agents_stopped',
      'f.suspended as platform_suspended',
      'h.session_id',
      'h.agent_reason',
      'h.connection_id',
      'c.label as connection_label',
      'c.credential_replaced_at as connection_replaced_at',
      addressOf('p.organisation_id', 'p.decided_by').as('decided_by_email'),
      addressOf('p.organisation_id', 'p.corrected_by').as('corrected_by_email'),
      'h.reason as held_reason',
      'h.detail as held_detail',
      'h.decision as held_decision',
      'h.flags as held_flags',
      'cr.detail as correction_detail',
      'cr.flags as correction_flags',
    ]);

/** Returns one held call of an organisation, with everything about it except for the sealed request; undefined when there is none. */
export async function findHeldCall(db: Db, organisationId: string, id: string): Promise<HeldCall | undefined> {
  return await heldCalls(db).where('p.organisation_id', '=', organisationId).where('p.id', '=', id).executeTakeFirst();
}

/** Returns a held call by its id alone, which is random and thus a capability. */
export async function findHeldCallById(db: Db, id: string): Promise<HeldCall | undefined> {
  return await heldCalls(db).where('p.id', '=', id).executeTakeFirst();
}

/**
 * Returns a page of an organisation's held calls after the cursor `before`: newest first, or for pending calls by expiry.
 */
export async function listHeldCalls(
  db: Db,
  organisationId: string,
  page: HeldCallFilter & { before?: string | undefined; limit: number; now: number },
): Promise<HeldCall[]> {
  let query = heldCalls(db).where('p.organisation_id', '=', organisationId);
  const { status, now } = page;
  if (status === 'pending') query = query.where('p.status', '=', 'pending').where('p.expires_at', '>', now);
  else if (status === 'expired')
    query = query.where((eb) =>
      eb.or([eb('p.status', '=', 'expired'), eb.and([eb('p.status', '=', 'pending'), eb('p.expires_at', '<=', now)])]),
    );
  else if (status) query = query.where('p.status', '=', status);
  const { agent, platform, scope } = page;
  if (agent !== undefined) query = query.where(agent.startsWith('agt_') ? 'a.agent_id' : 'a.id', '=', agent);
  if (platform !== undefined) query = query.where('p.platform_id', '=', platform);
  if (scope !== undefined) query = query.where('p.scope', '=', scope);
  const [further, direction] = status === 'pending' ? (['>', 'asc'] as const) : (['<', 'desc'] as const);
  if (page.before !== undefined) {
    const last = await findApproval(db, organisationId, page.before);
    if (!last) return [];
    query = query.where((eb) =>
      eb.or([
        eb('p.created_at', further, last.created_at),
        eb.and([eb('p.created_at', '=', last.created_at), eb('p.id', further, last.id)]),
      ]),
    );
  }
  return await query.orderBy('p.created_at', direction).orderBy('p.id', direction).limit(page.limit).execute();
}
