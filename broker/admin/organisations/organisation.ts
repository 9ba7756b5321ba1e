/** The organisation's own settings. */
import { isDeepStrictEqual } from 'node:util';
import { type Changing, type ChangingOwner, recordInTurn } from '../../audit/record-change.ts';
import type { Uses } from '../../broker.ts';
import { type CallerIssuer, readCallerIssuers } from '../../people/caller-issuer.ts';
import type { AgentsStopped } from '../../policy/agents-stopped.ts';
import { AutoSuspend } from '../../policy/auto-suspend.ts';
import type { JsonObject } from '../../policy/facts.ts';
import type { PasskeyDeciders } from '../../policy/passkey-deciders.ts';
import { KEEP_ALL, Retention } from '../../policy/retention.ts';
import type { StoreRestored } from '../../policy/store-restored.ts';
import { isOwnRetention, sealRetention } from '../../retention-authenticity.ts';
import { present } from '../../runtime/present.ts';
import { readAgentsStopped } from '../../store/agents-stopped.ts';
import { findOrganisation, updateOrganisation } from '../../store/organisations.ts';
import { readRestored } from '../../store/restored.ts';
import type { Db } from '../../store/store.ts';
import { readStored } from '../../store/stored-json.ts';
import type { OrganisationTable } from '../../store/tables/organisations.ts';
import type { Vault } from '../../vault.ts';
import { listedChanges } from '../listed-changes.ts';

/** With the names of the API. */
export type Settings = {
  approval_ttl_seconds: number;
  require_user_verification: boolean;
  publish_identity_documents: boolean;
  /** When the broker suspends an agent automatically; null: never. */
  auto_suspend: AutoSuspend | null;
  /** The issuers whose assertions about people are trusted. */
  caller_issuers: CallerIssuer[];
  /** How long audit rows are kept. */
  retention: Retention;
  /** Who decides by passkey without a session. */
  passkey_deciders: PasskeyDeciders;
};

/** Members that are omitted, or undefined, stay unchanged. */
type Wanted<Values> = { [Name in keyof Values]?: Values[Name] | undefined };

export type ReadOrganisation = Pick<OrganisationTable, 'id' | 'name' | 'created_at'> &
  Settings & {
    /** Null: its agents are not stopped as a whole. */
    agents_stopped: AgentsStopped | null;
    /** Null: the store was not restored, or the restore was reviewed. */
    restored: StoreRestored | null;
  };

/** Parses the columns of the row. */
export const readOrganisationRow = (row: OrganisationTable): ReadOrganisation => ({
  id: row.id,
  name: row.name,
  approval_ttl_seconds: Math.floor(row.approval_ttl_ms / 1000),
  require_user_verification: row.require_user_verification === 1,
  publish_identity_documents: row.publish_identity_documents === 1,
  auto_suspend: row.auto_suspend === null ? null : readStored(AutoSuspend, row.auto_suspend, 'auto_suspend'),
  caller_issuers: readCallerIssuers(row.caller_issuers),
  retention: row.retention === null ? KEEP_ALL : readStored(Retention, row.retention, 'retention'),
  passkey_deciders: row.passkey_deciders,
  agents_stopped: readAgentsStopped(row.agents_stopped) ?? null,
  restored: readRestored(row.restored) ?? null,
  created_at: row.created_at,
});

export async function readOrganisation(db: Db, organisationId: string): Promise<ReadOrganisation> {
  return readOrganisationRow(present(await findOrganisation(db, organisationId), 'organisation'));
}

/**
 * Changes settings. A change without effect records no event; a retention that no admin has set is set again. When it throws AuditUnavailable,
 * nothing is changed.
 */
export async function changeOrganisation(
  services: Changing & Uses<'vault'>,
  by: ChangingOwner,
  settings: Wanted<Settings>,
): Promise<ReadOrganisation> {
  const { organisation_id: organisationId } = by.owner;
  const { store, vault } = services.broker;
  const row = present(await findOrganisation(store.db, organisationId), 'organisation');
  const before = readOrganisationRow(row);
  const isStale = (name: string) => name === 'retention' && !isOwnRetention(vault, row);
  const changed: Partial<Settings> = Object.fromEntries(
    Object.entries(settings).filter(
      ([name, value]) =>
        value !== undefined && (isStale(name) || !isDeepStrictEqual(value, before[name as keyof Settings])),
    ),
  );
  if (Object.keys(changed).length === 0) return before;
  return await recordInTurn(services, by, { reason: 'organisation_changed' }, async (tx, note) => {
    const { caller_issuers: issuers, ...others } = changed;
    const { caller_issuers: trusted } = await readOrganisation(tx, organisationId);
    note({ ...others, ...(issuers && notedIssuers(trusted, issuers)) });
    await writeSettings(tx, vault, organisationId, changed);
    return await readOrganisation(tx, organisationId);
  });
}

/** Returns what is recorded of a change of issuers: which are trusted, and the terms of those that are new or changed, as their keys decide who is believed. */
export function notedIssuers(before: readonly CallerIssuer[], after: readonly CallerIssuer[]): JsonObject {
  const isIn = (list: readonly CallerIssuer[], one: CallerIssuer) => list.some(({ issuer }) => issuer === one.issuer);
  const lines = [
    ...after
      .filter((one) => !before.some((was) => isDeepStrictEqual(was, one)))
      .map((one) => `trust ${JSON.stringify(one)}`),
    ...before.filter((one) => !isIn(after, one)).map(({ issuer }) => `distrust ${issuer}`),
  ];
  return { caller_issuers: after.map(({ issuer }) => issuer), ...(lines.length > 0 && listedChanges(lines)) };
}

/** Writes settings in a transaction, for owners and for governance files. */
export async function writeSettings(
  tx: Db,
  vault: Pick<Vault, 'seal'>,
  organisationId: string,
  settings: Wanted<Settings & { name: string }>,
): Promise<void> {
  const { name, approval_ttl_seconds: ttl, require_user_verification: verify } = settings;
  const { publish_identity_documents: publish, auto_suspend: rule, caller_issuers: issuers, retention } = settings;
  const { passkey_deciders: deciders } = settings;
  const kept = retention === undefined || isDeepStrictEqual(retention, KEEP_ALL) ? null : JSON.stringify(retention);
  await updateOrganisation(tx, organisationId, {
    ...(name !== undefined && { name }),
    ...(ttl !== undefined && { approval_ttl_ms: ttl * 1000 }),
    ...(verify !== undefined && { require_user_verification: verify ? 1 : 0 }),
    ...(publish !== undefined && { publish_identity_documents: publish ? 1 : 0 }),
    ...(rule !== undefined && { auto_suspend: rule && JSON.stringify(rule) }),
    ...(deciders !== undefined && { passkey_deciders: deciders }),
    ...(issuers !== undefined && { caller_issuers: issuers.length === 0 ? null : JSON.stringify(issuers) }),
    ...(retention !== undefined && { retention: kept, retention_seal: sealRetention(vault, organisationId, kept) }),
  });
}
