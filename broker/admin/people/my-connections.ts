/** Lists and withdraws what a person gave, for the person's own browser. */
import { recordChange } from '../../audit/record-change.ts';
import type { Broker } from '../../broker.ts';
import { loadManifests } from '../../facts/stored-manifests.ts';
import { readFacts } from '../../oauth-client/facts.ts';
import { changeOfWaiting } from '../../people/consents.ts';
import type { PersonSession } from '../../people/sessions.ts';
import type { Instant } from '../../policy/facts.ts';
import { findConnection, listAgentsUsing } from '../../store/connections.ts';
import { findOrganisation } from '../../store/organisations.ts';
import { deletePersonTokens, listGivenTokens } from '../../store/people.ts';
import type { Db } from '../../store/store.ts';
import { readStored, Texts } from '../../store/stored-json.ts';
import { readScopes } from '../../store/stored-terms.ts';
import type { PersonTokenTable } from '../../store/tables/people.ts';
import type { Connecting } from '../connections/connections.ts';
import { ChangeRefused } from '../refused.ts';
import { revokePersonTokens } from './person-tokens.ts';

/** `agents`: those that may use it now, with their scopes. */
export type Given = {
  id: string;
  platform: string;
  organisation: string;
  account: string | null;
  /** `unconfirmed`: an owner has to confirm it first. `reauth_needed`: the platform no longer accepts it. */
  state: 'unconfirmed' | 'active' | 'reauth_needed';
  /** The platform's own scopes; null: not reported. */
  rights: readonly string[] | null;
  agents: readonly { name: string; scopes: readonly string[] }[];
  givenAt: Instant;
  /** Accurate to some minutes; null: never. */
  lastUsedAt: Instant | null;
};

/** Whether the platform has revoked what a person withdrew. */
export type Withdrawn = 'yes' | 'later' | 'no';

/** Lists what the person of these sessions gave, oldest first. */
export async function listMine(
  { store, clock }: Pick<Broker, 'store' | 'clock'>,
  sessions: readonly PersonSession[],
): Promise<Given[]> {
  const rows = await rowsOf(store.db, sessions);
  return await Promise.all(rows.map((row) => shown(store.db, row, clock())));
}

/** A session that began with a consent shows only what was given in it. */
async function rowsOf(db: Db, sessions: readonly PersonSession[]): Promise<PersonTokenTable[]> {
  const rows = new Map<string, PersonTokenTable>();
  for (const { organisation_id: organisationId, person_id: personId, consent_id: consentId } of sessions)
    for (const row of await listGivenTokens(db, organisationId, { personId }))
      if (consentId === '' || consentId === row.consent_id) rows.set(row.id, row);
  return [...rows.values()].sort((one, other) => one.created_at - other.created_at);
}

async function shown(db: Db, row: PersonTokenTable, now: Instant): Promise<Given> {
  const { organisation_id: organisationId, id, platform_id: platformId, connection_id: connectionId } = row;
  const connection = await findConnection(db, organisationId, connectionId);
  const manifest = (await loadManifests(db, organisationId)).get(platformId);
  const agents = connection ? await listAgentsUsing(db, connection, now) : [];
  return {
    id,
    platform: manifest?.name ?? platformId,
    organisation: (await findOrganisation(db, organisationId))?.name ?? '',
    account: readFacts(row.oauth)?.account ?? null,
    state: row.standing === 'unconfirmed' ? 'unconfirmed' : row.status,
    rights: row.upstream_scopes === null ? null : readStored(Texts, row.upstream_scopes, `upstream scopes of ${id}`),
    agents: agents.map(({ name, grant_id: grant, scopes }) => ({ name, scopes: readScopes(scopes, grant) })),
    givenAt: row.created_at,
    lastUsedAt: row.last_used_at,
  };
}

/**
 * Deletes what the person gave, immediately, and revokes it at the platform. `revoked` later: the platform did not answer, and the broker repeats the
 * request; no: that is not possible there.
 *
 * @throws ChangeRefused not_found when these sessions contain nothing with this id; or AuditUnavailable: then nothing is changed
 */
export async function withdraw(
  services: Connecting,
  sessions: readonly PersonSession[],
  { id, correlationId }: { id: string; correlationId: string },
): Promise<{ platform: string; revoked: Withdrawn }> {
  const { db } = services.broker.store;
  const row = (await rowsOf(db, sessions)).find((one) => one.id === id);
  if (!row) throw notFound();
  const { organisation_id: organisationId, person_id: personId, platform_id, connection_id } = row;
  const { platform } = await shown(db, row, services.broker.clock());
  const by = { owner: { id: personId, organisation_id: organisationId }, how: 'person', correlationId } as const;
  const isWaiting = row.standing === 'unconfirmed';
  const change = { reason: 'person_withdrew', platform: platform_id, connection: connection_id };
  const ended = await recordChange(services, by, change, async (tx, note) => {
    note({ person_id: personId });
    const deleted = await deletePersonTokens(tx, organisationId, [id]);
    if (deleted.length === 0) throw notFound();
    if (isWaiting) await services.changes.announce(tx, changeOfWaiting(row));
    return deleted;
  });
  if (isWaiting) services.changes.tell(changeOfWaiting(row));
  const { revoked, retried } = await revokePersonTokens(services, ended);
  return { platform, revoked: revoked > 0 ? 'yes' : retried > 0 ? 'later' : 'no' };
}

const notFound = () => new ChangeRefused('not_found', 'There is nothing to withdraw: it has already ended.');
