import type { ConnectionTable, PlatformTable, PolicyTable } from './schema.ts';
import type { Db } from './store.ts';

/** An organisation's connections, in a stable order, credentials sealed. */
export async function listConnections(db: Db, organisationId: string): Promise<ConnectionTable[]> {
  return await db
    .selectFrom('connections')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .orderBy('created_at')
    .orderBy('id')
    .execute();
}

/** Writes a connection: a new one, or another credential for the one with the same id. */
export async function putConnection(db: Db, connection: ConnectionTable): Promise<void> {
  const { organisation_id: _organisation, id: _id, created_at: _created, ...terms } = connection;
  await db
    .insertInto('connections')
    .values(connection)
    .onConflict((c) => c.columns(['organisation_id', 'id']).doUpdateSet(terms))
    .execute();
}

/** Notes that the upstream refused the stored credential, or took it again. */
export async function setConnectionStatus(
  db: Db,
  connection: { organisationId: string; id: string },
  status: ConnectionTable['status'],
): Promise<void> {
  await db
    .updateTable('connections')
    .set({ status })
    .where('organisation_id', '=', connection.organisationId)
    .where('id', '=', connection.id)
    .where('status', '!=', status)
    .execute();
}

/** Removes a connection with its credential. */
export async function deleteConnection(db: Db, organisationId: string, id: string): Promise<void> {
  await db.deleteFrom('connections').where('organisation_id', '=', organisationId).where('id', '=', id).execute();
}

/** An organisation's platforms with their manifests (JSON text). */
export async function listPlatforms(db: Db, organisationId: string): Promise<(PlatformTable & { manifest: string })[]> {
  return await db
    .selectFrom('platforms as p')
    .innerJoin('platform_versions as v', (j) =>
      j
        .onRef('v.organisation_id', '=', 'p.organisation_id')
        .onRef('v.platform_id', '=', 'p.platform_id')
        .onRef('v.version', '=', 'p.version'),
    )
    .selectAll('p')
    .select('v.manifest')
    .where('p.organisation_id', '=', organisationId)
    .orderBy('p.platform_id')
    .execute();
}

/** Removes a platform; its manifests stay, because receipts may speak of them. */
export async function deletePlatform(db: Db, organisationId: string, platformId: string): Promise<void> {
  await db
    .deleteFrom('platforms')
    .where('organisation_id', '=', organisationId)
    .where('platform_id', '=', platformId)
    .execute();
}

/** An organisation's policies with their rules (JSON text). */
export async function listPolicies(db: Db, organisationId: string): Promise<(PolicyTable & { rules: string })[]> {
  return await db
    .selectFrom('policies as p')
    .innerJoin('policy_versions as v', (j) =>
      j
        .onRef('v.organisation_id', '=', 'p.organisation_id')
        .onRef('v.policy_id', '=', 'p.id')
        .onRef('v.version', '=', 'p.version'),
    )
    .selectAll('p')
    .select('v.rules')
    .where('p.organisation_id', '=', organisationId)
    .orderBy('p.name')
    .execute();
}

/** Removes a policy that no agent has; its versions stay, because receipts speak of them. */
export async function deletePolicy(db: Db, organisationId: string, id: string): Promise<void> {
  await db.deleteFrom('policies').where('organisation_id', '=', organisationId).where('id', '=', id).execute();
}
