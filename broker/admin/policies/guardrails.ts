/** Reads and replaces an organisation's guardrails: a change applies to all of them, in force from the next decision. */
import { type Changing, type ChangingOwner, recordInTurn } from '../../audit/record-change.ts';
import type { RuleSource } from '../../policy/facts.ts';
import { present } from '../../runtime/present.ts';
import { findGuardrailRules, putGuardrails } from '../../store/governed-versions.ts';
import { findOrganisation } from '../../store/organisations.ts';
import { listGuardrailVersions as listVersions } from '../../store/policies.ts';
import type { Db } from '../../store/store.ts';
import { readStoredRules } from '../../store/stored-json.ts';
import type { OrganisationTable } from '../../store/tables/organisations.ts';
import { checkRules, refuseOtherVersion, type SubmittedRules } from './check-rules.ts';
import { nextOf, type RuleVersion, readVersions } from './rule-versions.ts';

/** `version`: 0 before the first change. */
export type GuardrailsInForce = { version: number; guardrails: RuleSource[] };

/** Reads the guardrails in force. */
export async function readGuardrails(db: Db, organisationId: string): Promise<GuardrailsInForce> {
  return await guardrailsOf(db, present(await findOrganisation(db, organisationId), 'organisation'));
}

/** Reads the guardrails of the version that the organisation's row names. Throws Error when they are missing from the store, or altered. */
export async function guardrailsOf(
  db: Db,
  { id, guardrails_version: version }: OrganisationTable,
): Promise<GuardrailsInForce> {
  if (version === 0) return { version, guardrails: [] };
  const rules = present(await findGuardrailRules(db, id, version), `version ${version} of the guardrails`);
  return { version, guardrails: readStoredRules(rules, `guardrails version ${version}`) };
}

/** Returns a page of their versions, newest first; `next`: cursor of the next page. */
export async function listGuardrailVersions(
  db: Db,
  organisationId: string,
  { limit, before }: { limit: number; before?: number | undefined },
): Promise<{ versions: RuleVersion[]; next: number | null }> {
  const found = await listVersions(db, organisationId, { limit, ...(before && { before }) });
  const versions = await readVersions(db, organisationId, 'guardrails', found);
  return { versions, next: nextOf(versions, limit) };
}

/**
 * Replaces the guardrails. `seen`: the version that was edited; when another is in force by now, nothing is changed. Throws ChangeRefused, or
 * AuditUnavailable: then nothing is changed.
 */
export async function changeGuardrails(
  services: Changing,
  by: ChangingOwner,
  { rules: asked, seen }: { rules: SubmittedRules['rules']; seen: number | undefined },
): Promise<GuardrailsInForce & { warnings: string[] }> {
  const { store, clock } = services.broker;
  const { organisation_id: organisationId } = by.owner;
  const given = { kind: 'guardrail', at: 'guardrails', rules: asked } as const;
  const { rules, warnings } = await checkRules(store.db, organisationId, given);
  return await recordInTurn(services, by, { reason: 'guardrails_changed' }, async (db, note) => {
    const before = present(await findOrganisation(db, organisationId), 'organisation');
    refuseOtherVersion(seen, before.guardrails_version);
    const version = await putGuardrails(db, organisationId, JSON.stringify(rules), clock());
    note({ guardrails: { version } });
    return { version, guardrails: rules, warnings };
  });
}
