/** Policies, guardrails and manifests by version: immutable rows, which can be cached. */
import type { Db } from './store.ts';

/** Returns the rules (JSON text) of a policy's version; undefined when there is none. */
export async function findPolicyRules(db: Db, organisationId: string, policyId: string, version: number) {
  const row = await db
    .selectFrom('policy_versions')
    .select('rules')
    .where('organisation_id', '=', organisationId)
    .where('policy_id', '=', policyId)
    .where('version', '=', version)
    .executeTakeFirst();
  return row?.rules;
}

/** Returns the rules (JSON text) of the guardrails' version; undefined when there is none. */
export async function findGuardrailRules(db: Db, organisationId: string, version: number) {
  const row = await db
    .selectFrom('guardrails_versions')
    .select('rules')
    .where('organisation_id', '=', organisationId)
    .where('version', '=', version)
    .executeTakeFirst();
  return row?.rules;
}

/** Returns the manifest (JSON text) of a platform's version; undefined when there is none. */
export async function findManifest(db: Db, organisationId: string, platformId: string, version: number) {
  const row = await db
    .selectFrom('platform_versions')
    .select('manifest')
    .where('organisation_id', '=', organisationId)
    .where('platform_id', '=', platformId)
    .where('version', '=', version)
    .executeTakeFirst();
  return row?.manifest;
}

/** Returns a platform of an organisation, with its current manifest version; undefined when there is none. */
export async function findPlatform(db: Db, organisationId: string, platformId: string) {
  return await db
    .selectFrom('platforms')
    .selectAll()
    .where('organisation_id', '=', organisationId)
    .where('platform_id', '=', platformId)
    .executeTakeFirst();
}

/** Inserts the next version of a policy and activates it; creates the policy when it is new. Returns the version. */
export async function putPolicy(
  db: Db,
  policy: { organisationId: string; id: string; name: string; rules: string },
  now: number,
): Promise<number> {
  const row = await db
    .insertInto('policies')
    .values({ organisation_id: policy.organisationId, id: policy.id, name: policy.name, version: 1, created_at: now })
    .onConflict((c) =>
      c
        .columns(['organisation_id', 'id'])
        .doUpdateSet((eb) => ({ version: eb('policies.version', '+', 1), name: policy.name })),
    )
    .returning('version')
    .executeTakeFirstOrThrow();
  await db
    .insertInto('policy_versions')
    .values({
      organisation_id: policy.organisationId,
      policy_id: policy.id,
      version: row.version,
      rules: policy.rules,
      created_at: now,
    })
    .execute();
  return row.version;
}

/** Inserts the next version of the organisation's guardrails and activates it. */
export async function putGuardrails(db: Db, organisationId: string, rules: string, now: number): Promise<number> {
  const row = await db
    .updateTable('organisations')
    .set((eb) => ({ guardrails_version: eb('guardrails_version', '+', 1) }))
    .where('id', '=', organisationId)
    .returning('guardrails_version')
    .executeTakeFirstOrThrow();
  await db
    .insertInto('guardrails_versions')
    .values({ organisation_id: organisationId, version: row.guardrails_version, rules, created_at: now })
    .execute();
  return row.guardrails_version;
}

/**
 * Inserts the next version of a platform's manifest and activates it; creates the platform when it is new. Continues the numbering of a
 * removed platform, so that a version number never means two manifests. `entry`: for a built-in platform, the settings that the manifest
 * was generated from.
 */
export async function putPlatform(
  db: Db,
  platform: { organisationId: string; platformId: string; manifest: string; entry?: string | null },
  now: number,
): Promise<number> {
  const last = await db
    .selectFrom('platform_versions')
    .select((eb) => eb.fn.max('version').as('version'))
    .where('organisation_id', '=', platform.organisationId)
    .where('platform_id', '=', platform.platformId)
    .executeTakeFirst();
  const version = (last?.version ?? 0) + 1;
  await db
    .insertInto('platforms')
    .values({
      organisation_id: platform.organisationId,
      platform_id: platform.platformId,
      version,
      suspended: 0,
      created_at: now,
    })
    .onConflict((c) => c.columns(['organisation_id', 'platform_id']).doUpdateSet({ version }))
    .execute();
  await db
    .insertInto('platform_versions')
    .values({
      organisation_id: platform.organisationId,
      platform_id: platform.platformId,
      version,
      manifest: platform.manifest,
      entry: platform.entry ?? null,
      created_at: now,
    })
    .execute();
  return version;
}
