/** What an admin has to review in a restored store: all identities and credentials that can act. */

import type { Db } from './store.ts';
import type { AgentTable, StaticKeyTable, WorkloadTable } from './tables/agents.ts';
import type { PasskeyTable } from './tables/approvals.ts';
import type { OwnerTable, PipelineTable } from './tables/organisations.ts';
import type { PersonTokenTable } from './tables/people.ts';
import type { GrantTable } from './tables/rules.ts';

export type ReviewedGrant = Pick<GrantTable, 'agent_id' | 'platform_id' | 'scopes' | 'require_approval' | 'expires_at'>;
export type Review = {
  agents: (Pick<AgentTable, 'id' | 'agent_id' | 'name' | 'status' | 'parent_id'> & { owner_email: string | null })[];
  grants: ReviewedGrant[];
  owners: Pick<OwnerTable, 'id' | 'email' | 'role'>[];
  pipelines: Pick<PipelineTable, 'id' | 'name' | 'role' | 'issuer' | 'subject'>[];
  passkeys: (Pick<
    PasskeyTable,
    'id' | 'device_name' | 'status' | 'created_at' | 'last_used_at' | 'restored_counter'
  > & {
    owner_email: string | null;
  })[];
  workloads: (Pick<WorkloadTable, 'id' | 'issuer' | 'subject'> & { agent_public_id: string })[];
  static_keys: (Pick<StaticKeyTable, 'id' | 'label' | 'expires_at'> & { agent_public_id: string })[];
  person_tokens: Pick<
    PersonTokenTable,
    'id' | 'person_id' | 'platform_id' | 'named_by' | 'standing' | 'status' | 'last_used_at'
  >[];
};

/** Lists what can act; revoked agents and ended keys are omitted. `now`: milliseconds since the epoch. */
export async function readReview(db: Db, organisationId: string, now: number): Promise<Review> {
  const live = db
    .selectFrom('agents as a')
    .where('a.organisation_id', '=', organisationId)
    .where('a.status', 'not in', ['revoked', 'deleted'])
    .where((eb) => eb.or([eb('a.expires_at', 'is', null), eb('a.expires_at', '>', now)]));
  return {
    agents: await live
      .leftJoin('owners as o', (j) =>
        j.onRef('o.organisation_id', '=', 'a.organisation_id').onRef('o.id', '=', 'a.owner_id'),
      )
      .select(['a.id', 'a.agent_id', 'a.name', 'a.status', 'a.parent_id', 'o.email as owner_email'])
      .orderBy('a.name')
      .orderBy('a.id')
      .execute(),
    grants: await db
      .selectFrom('grants')
      .select(['agent_id', 'platform_id', 'scopes', 'require_approval', 'expires_at'])
      .where('organisation_id', '=', organisationId)
      .where('agent_id', 'in', live.select('a.id'))
      .where((eb) => eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', now)]))
      .orderBy('platform_id')
      .orderBy('id')
      .execute(),
    owners: await db
      .selectFrom('owners')
      .select(['id', 'email', 'role'])
      .where('organisation_id', '=', organisationId)
      .orderBy('email')
      .execute(),
    pipelines: await db
      .selectFrom('pipelines')
      .select(['id', 'name', 'role', 'issuer', 'subject'])
      .where('organisation_id', '=', organisationId)
      .orderBy('name')
      .execute(),
    passkeys: await db
      .selectFrom('passkeys as k')
      .leftJoin('owners as o', (j) =>
        j.onRef('o.organisation_id', '=', 'k.organisation_id').onRef('o.id', '=', 'k.owner_id'),
      )
      .select(['k.id', 'k.device_name', 'k.status', 'k.created_at', 'k.last_used_at', 'o.email as owner_email'])
      .select('k.restored_counter')
      .where('k.organisation_id', '=', organisationId)
      .where('k.status', '<>', 'removed')
      .orderBy('k.created_at')
      .execute(),
    workloads: await db
      .selectFrom('workloads as w')
      .innerJoin('agents as a', (j) =>
        j.onRef('a.organisation_id', '=', 'w.organisation_id').onRef('a.id', '=', 'w.agent_id'),
      )
      .select(['w.id', 'w.issuer', 'w.subject', 'a.agent_id as agent_public_id'])
      .where('w.organisation_id', '=', organisationId)
      .where('a.status', 'not in', ['revoked', 'deleted'])
      .orderBy('a.name')
      .execute(),
    static_keys: await db
      .selectFrom('static_keys as k')
      .innerJoin('agents as a', (j) =>
        j.onRef('a.organisation_id', '=', 'k.organisation_id').onRef('a.id', '=', 'k.agent_id'),
      )
      .select(['k.id', 'k.label', 'k.expires_at', 'a.agent_id as agent_public_id'])
      .where('k.organisation_id', '=', organisationId)
      .where('k.ended_at', 'is', null)
      .where('k.expires_at', '>', now)
      .orderBy('k.created_at')
      .execute(),
    person_tokens: await db
      .selectFrom('person_tokens')
      .select(['id', 'person_id', 'platform_id', 'named_by', 'standing', 'status', 'last_used_at'])
      .where('organisation_id', '=', organisationId)
      .where('standing', '<>', 'obtained')
      .orderBy('created_at')
      .execute(),
  };
}
