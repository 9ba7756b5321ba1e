/** The tokens of people, for owners: list them, confirm one before its first use, and end them. */
import { checkAuthorRole } from '../../audit/author-role.ts';
import { type ChangingOwner, recordChange } from '../../audit/record-change.ts';
import type { Broker } from '../../broker.ts';
import { readFacts } from '../../oauth-client/facts.ts';
import { changeOfWaiting } from '../../people/consents.ts';
import type { Caller, People } from '../../people/people.ts';
import { findAgent } from '../../store/agents.ts';
import { pageOfGivenTokens, type TokensPage } from '../../store/given-tokens.ts';
import {
  deletePersonTokens,
  findPersonId,
  listGivenTokens,
  movePersonTokens,
  type PersonTokenFilter,
} from '../../store/people.ts';
import type { PersonTokenTable } from '../../store/tables/people.ts';
import type { Connecting } from '../connections/connections.ts';
import { ChangeRefused } from '../refused.ts';
import { endKept, revokePersonTokens, revokeReplaced } from './person-tokens.ts';

/** Never contains who the person is. `account`: only while an owner has to confirm it, since that is impossible without it. */
export type GivenTokens = Pick<
  PersonTokenTable,
  'id' | 'person_id' | 'platform_id' | 'connection_id' | 'named_by' | 'created_at'
> & {
  verified: boolean;
  state: 'unconfirmed' | 'active' | 'reauth_needed';
  account: string | null;
  agent: string | null;
};

/** `end`: the place after which the next page begins; undefined: this is the last page. */
export type GivenPage = { tokens: GivenTokens[]; end: TokensPage['after'] };

/** Lists a page of the tokens of an organisation, oldest first. */
export async function listPeople(
  { store }: Pick<Broker, 'store'>,
  organisationId: string,
  page: TokensPage,
): Promise<GivenPage> {
  const found = await pageOfGivenTokens(store.db, organisationId, { ...page, limit: page.limit + 1 });
  const rows = found.slice(0, page.limit);
  // One query per agent is fine: the tokens come from few agents.
  const agents = new Map(
    await Promise.all(
      [...new Set(rows.map((row) => row.agent_id))].map(
        async (id) => [id, (await findAgent(store.db, organisationId, id))?.agent_id ?? null] as const,
      ),
    ),
  );
  const tokens = rows.map((row) => ({
    id: row.id,
    person_id: row.person_id,
    platform_id: row.platform_id,
    connection_id: row.connection_id,
    named_by: row.named_by,
    created_at: row.created_at,
    verified: row.verified === 1,
    state: row.standing === 'unconfirmed' ? ('unconfirmed' as const) : row.status,
    account: row.standing === 'unconfirmed' ? (readFacts(row.oauth)?.account ?? null) : null,
    agent: agents.get(row.agent_id) ?? null,
  }));
  return { tokens, end: found.length > page.limit ? rows.at(-1) : undefined };
}

type Services = Connecting & { people: People };

/** Finds the person whom an owner names by the value that agents use; undefined: not known here. The value is hashed and not stored. */
async function personOf(
  { broker, people }: Services,
  organisationId: string,
  caller: Caller,
): Promise<string | undefined> {
  const identified = await people.identify(organisationId, caller);
  if (!identified.ok) throw new ChangeRefused('invalid_request', `caller: ${identified.detail}`);
  return await findPersonId(broker.store.db, organisationId, identified.who.hash);
}

/**
 * Confirms that an account belongs to the person whom the tokens are for. `caller`: the expected person, if the owner wants that compared. Throws
 * ChangeRefused, or AuditUnavailable: then nothing is changed.
 */
export async function confirmPerson(
  services: Services,
  by: ChangingOwner,
  { id, caller }: { id: string; caller: Caller | undefined },
): Promise<void> {
  const { organisation_id: organisationId } = by.owner;
  const [found] = await listGivenTokens(services.broker.store.db, organisationId, { id });
  if (found?.standing !== 'unconfirmed')
    throw new ChangeRefused('not_found', 'No tokens with this id are waiting to be confirmed.');
  if (caller && (await personOf(services, organisationId, caller)) !== found.person_id)
    throw new ChangeRefused(
      'conflict',
      'These tokens are for somebody else than this caller. Nothing was confirmed: end them.',
    );
  const change = { reason: 'person_confirmed', platform: found.platform_id, connection: found.connection_id };
  const before = await recordChange(services, by, change, async (tx, note) => {
    note({ person_id: found.person_id });
    const replaced = await endKept(tx, found);
    // After the lock of the person, for which this transaction may have waited.
    await checkAuthorRole(tx, by);
    if (!(await movePersonTokens(tx, { organisationId, id }, 'unconfirmed', 'kept')))
      throw new ChangeRefused('conflict', 'These tokens were confirmed or ended in the meantime.');
    await services.changes.announce(tx, changeOfWaiting(found));
    return replaced;
  });
  services.changes.tell(changeOfWaiting(found));
  await revokeReplaced(services, found, before);
}

const isWaiting = ({ standing }: PersonTokenTable): boolean => standing === 'unconfirmed';

export type EndedTokens = { ended: number; revoked: number };

/** Ends tokens: of one row, of a person by id or by the value that agents use, of a connection, or all. Throws ChangeRefused; AuditUnavailable. */
export async function endPeople(
  services: Services,
  by: ChangingOwner,
  { caller, ...filter }: PersonTokenFilter & { caller?: Caller | undefined },
): Promise<EndedTokens> {
  const { organisation_id: organisationId } = by.owner;
  const personId = caller ? await personOf(services, organisationId, caller) : filter.personId;
  if (caller && personId === undefined) return { ended: 0, revoked: 0 };
  const wanted = { ...filter, ...(personId !== undefined && { personId }) };
  const { db } = services.broker.store;
  const [first] = await listGivenTokens(db, organisationId, wanted, 1);
  if (!first) return { ended: 0, revoked: 0 };
  const isOfOneConnection = filter.id !== undefined || filter.connectionId !== undefined;
  const change = {
    reason: 'person_ended',
    ...(isOfOneConnection && { platform: first.platform_id, connection: first.connection_id }),
  };
  const ended = await recordChange(services, by, change, async (tx, note) => {
    const rows = await listGivenTokens(tx, organisationId, wanted);
    const [person, another] = new Set(rows.map((row) => row.person_id));
    note({ ended: rows.length, ...(person !== undefined && another === undefined && { person_id: person }) });
    const deleted = await deletePersonTokens(
      tx,
      organisationId,
      rows.map(({ id }) => id),
    );
    const waited = deleted.find(isWaiting);
    if (waited) await services.changes.announce(tx, changeOfWaiting(waited));
    return deleted;
  });
  const waited = ended.find(isWaiting);
  if (waited) services.changes.tell(changeOfWaiting(waited));
  const { revoked } = await revokePersonTokens(services, ended);
  return { ended: ended.length, revoked };
}
