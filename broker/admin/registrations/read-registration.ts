/** Reads registrations, for owners and for holders of a registration's token. */
import { statusAt } from '../../audit/approval-state.ts';
import type { Broker } from '../../broker.ts';
import { hashToken } from '../../crypto/one-time-token.ts';
import type { Instant } from '../../policy/facts.ts';
import { findLiveAgentNamed } from '../../store/agents.ts';
import {
  findRegistration,
  findRegistrationByToken,
  type KnownRegistration,
  listRegistrations as listStored,
  type ShownRegistration,
} from '../../store/registrations.ts';
import { readStored, ScopesOnPlatforms } from '../../store/stored-json.ts';
import type { OwnerTable } from '../../store/tables/organisations.ts';
import type { RegistrationTable, ScopesOn } from '../../store/tables/registrations.ts';
import type { PolicyTable } from '../../store/tables/rules.ts';
import { choosePolicy, knownScopes } from '../agents/new-agent.ts';
import { ChangeRefused } from '../refused.ts';

type Reader = Pick<OwnerTable, 'id' | 'organisation_id' | 'role'>;
type Reading = Pick<Broker, 'store' | 'clock'>;

/** The current state, without its token and key. `mayDecide`: whether the reader may decide it. */
export type ReadRegistration = ReturnType<typeof readRegistrationRow>;

export function readRegistrationRow(row: ShownRegistration, owner: Reader, now: Instant) {
  const { granted, token_hash: _token, private_key: _key, ...registration } = row;
  const status = statusAt(row, now);
  return {
    ...registration,
    status,
    requested_scopes: requestedScopes(row),
    granted:
      granted === null ? null : readStored(ScopesOnPlatforms, granted, `granted scopes of registration ${row.id}`),
    mayDecide: status === 'pending' && mayDecide(owner, row),
  };
}

export const requestedScopes = ({ id, requested_scopes: text }: RegistrationTable): ScopesOn[] =>
  readStored(ScopesOnPlatforms, text, `requested scopes of registration ${id}`);

/** The named owner may decide, and so may an admin of that owner's organisation; viewers may not. */
export function mayDecide(
  owner: Reader,
  registration: { organisation_id: string | null; owner_id: string },
): registration is KnownRegistration {
  if (registration.organisation_id !== owner.organisation_id || owner.role === 'viewer') return false;
  return owner.role === 'admin' || registration.owner_id === owner.id;
}

/** Returns a page of registrations, newest first; `next`: cursor of the next page. */
export async function listRegistrations(
  { store, clock }: Reading,
  owner: Reader,
  page: { limit: number; status?: RegistrationTable['status'] | undefined; before?: string | undefined },
): Promise<{ registrations: ReadRegistration[]; next: string | null }> {
  const now = clock();
  const { limit, status, before } = page;
  const wanted = { limit, now, ...(status && { status }), ...(before && { before }) };
  const found = await listStored(store.db, owner.organisation_id, wanted);
  return {
    registrations: found.map((one) => readRegistrationRow(one, owner, now)),
    next: found.length === limit ? (found.at(-1)?.id ?? null) : null,
  };
}

/** Loads a registration of the organisation. Throws ChangeRefused. */
export async function loadRegistration(
  { store }: Pick<Broker, 'store'>,
  organisationId: string,
  id: string,
): Promise<ShownRegistration> {
  const found = await findRegistration(store.db, organisationId, id);
  if (!found) throw new ChangeRefused('not_found', 'The organisation has no such registration.');
  return found;
}

/** Loads the registration with this token, of any organisation. Throws ChangeRefused. */
export async function loadRegistrationByToken(
  { store }: Pick<Broker, 'store'>,
  token: string,
): Promise<RegistrationTable> {
  const hash = hashToken(token, 'registration');
  const found = hash && (await findRegistrationByToken(store.db, hash));
  if (!found) throw new ChangeRefused('not_found', 'There is no such registration, or it expired long ago.');
  return found;
}

export type WholeRegistration = ReadRegistration & {
  /** The requested scopes that no platform of the organisation has. */
  unknownScopes: ScopesOn[];
  /** The policy that the agent would get; undefined: there is no default one. */
  policy: PolicyTable | undefined;
  /** The id of an agent that already has this name. */
  namesake: string | null;
};

/** Loads a registration of the organisation, with what an approval would create now. Throws ChangeRefused. */
export async function readRegistration(broker: Reading, owner: Reader, id: string): Promise<WholeRegistration> {
  const { organisation_id } = owner;
  const { db } = broker.store;
  const row = await loadRegistration(broker, organisation_id, id);
  const registration = readRegistrationRow(row, owner, broker.clock());
  const namesake = await findLiveAgentNamed(db, organisation_id, row.agent_name);
  return {
    ...registration,
    unknownScopes: (await knownScopes(db, organisation_id, registration.requested_scopes)).out,
    policy: await choosePolicy(db, organisation_id, undefined),
    namesake: namesake?.agent_id ?? null,
  };
}
