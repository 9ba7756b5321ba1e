/** Reading and deleting policies; creating and changing them is in governed-versions.ts. */
import { UUID_PATTERN } from '../crypto/ids.ts';
import type { Db } from './store.ts';
import type { GuardrailsVersionTable, PolicyTable, PolicyVersionTable } from './tables/rules.ts';

/** `rules`: the current rules, as JSON text; `changed_at`: since when they are current. */
export type PolicyInForce = PolicyTable & { rules: string; changed_at: number };

/** Returns a policy by its id or its name, with the current rules; undefined when there is none. */
export async function findPolicy(db: Db, organisationId: string, idOrName: string): Promise<PolicyInForce | undefined> {
  const isId = UUID_PATTERN.test(idOrName);
  return await db
    .selectFrom('policies as p')
    .innerJoin('policy_versions as v', (j) =>
      j
        .onRef('v.organisation_id', '=', 'p.organisation_id')
        .onRef('v.policy_id', '=', 'p.id')
        .onRef('v.version', '=', 'p.version'),
    )
    .selectAll('p')
    .select(['v.rules', 'v.created_at as changed_at'])
    .where('p.organisation_id', '=', organisationId)
    .where(isId ? 'p.id' : 'p.name', '=', isId ? idOrName.toLowerCase() : idOrName)
    .executeTakeFirst();
}

/** Versions of a policy, newest first, before the cursor `before`. */
export async function listPolicyVersions(
  db: Db,
  policy: { organisationId: string; id: string },
  page: { before?: number; limit: number },
): Promise<PolicyVersionTable[]> {
  let query = db
    .selectFrom('policy_versions')
    .selectAll()
    .where('organisation_id', '=', policy.organisationId)
    .where('policy_id', '=', policy.id);
  if (page.before !== undefined) query = query.where('version', '<', page.before);
  return await query.orderBy('version', 'desc').limit(page.limit).execute();
}

/** Versions of the organisation's guardrails, newest first, before the cursor `before`. */
export async function listGuardrailVersions(
  db: Db,
  organisationId: string,
  page: { before?: number; limit: number },
): Promise<GuardrailsVersionTable[]> {
  let query = db.selectFrom('guardrails_versions').selectAll().where('organisation_id', '=', organisationId);
  if (page.before !== undefined) query = query.where('version', '<', page.before);
  return await query.orderBy('version', 'desc').limit(page.limit).execute();
}

/** Number of agents for each policy id, without revoked agents; policies without agents are absent. */
export async function countAgentsByPolicy(db: Db, organisationId: string): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom('agents')
    .select(['policy_id', (eb) => eb.fn.countAll<number | string>().as('agents')])
    .where('organisation_id', '=', organisationId)
    .where('status', 'not in', ['revoked', 'deleted'])
    .where('policy_id', 'is not', null)
    .groupBy('policy_id')
    .execute();
  return new Map(rows.map(({ policy_id, agents }) => [policy_id ?? '', Number(agents)]));
}

/** Lists an organisation's policies with their current rules. */
export async function listPolicies(db: Db, organisationId: string): Promise<PolicyInForce[]> {
  return await db
    .selectFrom('policies as p')
    .innerJoin('policy_versions as v', (j) =>
      j
        .onRef('v.organisation_id', '=', 'p.organisation_id')
        .onRef('v.policy_id', '=', 'p.id')
        .onRef('v.version', '=', 'p.version'),
    )
    .selectAll('p')
    .select(['v.rules', 'v.created_at as changed_at'])
    .where('p.organisation_id', '=', organisationId)
    .orderBy('p.name')
    .execute();
}

/** Deletes a policy that no agent has; its versions are kept, because receipts refer to them. */
export async function deletePolicy(db: Db, organisationId: string, id: string): Promise<void> {
  await db.deleteFrom('policies').where('organisation_id', '=', organisationId).where('id', '=', id).execute();
}
