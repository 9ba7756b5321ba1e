/** Registrations of agents (specification, Registration): anybody may send one, an owner decides. */

import { type ApprovalChanges, changeAndNotify } from '../../audit/changes.ts';
import { siteOf } from '../../auth/client-address.ts';
import type { Broker } from '../../broker.ts';
import { newAgentId, uuidv4 } from '../../crypto/ids.ts';
import { mintToken } from '../../crypto/one-time-token.ts';
import type { Secret } from '../../crypto/secret.ts';
import type { Instant } from '../../policy/facts.ts';
import {
  displaceRegistration,
  expireOpenRegistrations,
  listOpenRegistrations,
  listRejectedSources,
  type OpenRegistration,
} from '../../store/open-registrations.ts';
import { findOwner } from '../../store/organisations.ts';
import { putRegistration } from '../../store/registrations.ts';
import type { Db } from '../../store/store.ts';
import type { ScopesOn } from '../../store/tables/registrations.ts';

/** How long an owner has to decide. */
export const REGISTRATION_MS = 24 * 3_600_000;
/** How long the private key can be collected after the approval. */
export const CLAIM_MS = 3_600_000;
/** Limit per owner. When it is reached, networks with fewer registrations displace those of networks with more; see `makeRoom`. */
const MAX_OPEN_REGISTRATIONS = 100;
/** Limit per owner and network: an owner's id is public, and one stranger must not be able to fill the list. */
const MAX_OPEN_PER_NETWORK = 5;
/** Limit of rejections per owner and network within REGISTRATION_MS: a rejected sender must not be able to fill the list again immediately. */
const MAX_REJECTED_PER_NETWORK = 10;

export type Applicant = {
  ownerId: string;
  name: string;
  description: string | null;
  scopes: readonly ScopesOn[];
  /** The client's address. */
  source: string;
};

/** `retryAfterMs`: until the first of the counted registrations no longer counts. */
export type Registered =
  | { kind: 'opened'; token: Secret; agentId: string }
  | { kind: 'too_many'; whose: 'network' | 'owner'; limit: number; retryAfterMs: number };

/** The organisation id in announcements about registrations for unknown owners; nothing listens to it. */
const NO_ORGANISATION = 'nobody';

/**
 * Accepts a registration, whether the owner exists or not. A registration for an unknown owner_id is pending, subject to the same limit, and finally
 * `expired`, like any that nobody decides; so the endpoint does not reveal who is an owner. Such a row holds nothing that was sent but the owner_id,
 * and the source address; it is deleted with the others, or when there are too many of its kind.
 *
 * The key pair is generated when an owner approves: a stranger's request does not cost that work, and a registration that is never approved never had
 * a key. The limit is checked before the insert, so concurrent requests may exceed it.
 */
export async function openRegistration(
  { store, clock }: Pick<Broker, 'store' | 'clock'>,
  changes: ApprovalChanges,
  { ownerId, name, description, scopes, source }: Applicant,
): Promise<Registered> {
  const now = clock();
  const { token, hash } = mintToken('registration');
  const agentId = newAgentId();
  const id = uuidv4();
  const opened = await store.db.transaction().execute(async (tx) => {
    const owner = await findOwner(tx, ownerId);
    const room = await makeRoom(tx, { ownerId, organisationId: owner?.organisation_id, source, now });
    if ('kind' in room) return room;
    for (const displaced of room)
      await changes.announce(tx, { organisation_id: displaced.organisation_id ?? NO_ORGANISATION, id: displaced.id });
    await putRegistration(tx, {
      token_hash: hash,
      organisation_id: owner?.organisation_id ?? null,
      id,
      owner_id: ownerId,
      agent_id: agentId,
      agent_name: owner ? name : '',
      agent_description: owner ? description : null,
      requested_scopes: JSON.stringify(owner ? scopes : []),
      source,
      status: 'pending',
      created_at: now,
      expires_at: now + REGISTRATION_MS,
    });
    const ref = { organisation_id: owner?.organisation_id ?? NO_ORGANISATION, id };
    await changes.announce(tx, ref);
    return { kind: 'opened' as const, ref, displaced: room };
  });
  if (opened.kind === 'too_many') return opened;
  for (const { organisation_id, id } of opened.displaced)
    changes.tell({ organisation_id: organisation_id ?? NO_ORGANISATION, id });
  changes.tell(opened.ref);
  return { kind: 'opened', token, agentId };
}

/**
 * Returns why an owner's list accepts no more registrations of this network, or makes room and returns what was displaced. A full list gives each
 * network its share: a newcomer displaces the newest registration of the network with the most, if that network then still has at least as many as
 * the newcomer's. So an attacker with few networks cannot block others: that takes MAX_OPEN_REGISTRATIONS networks at the same time.
 */
async function makeRoom(
  tx: Db,
  { ownerId, organisationId, source, now }: Place,
): Promise<OpenRegistration[] | Extract<Registered, { kind: 'too_many' }>> {
  const open = await listOpenRegistrations(tx, ownerId, now);
  const network = siteOf(source);
  const isMine = (one: { source: string }) => siteOf(one.source) === network;
  const mine = open.filter(isMine);
  const refuse = (whose: 'network' | 'owner', limit: number, inTheWay: readonly { expires_at: Instant }[]) => {
    const first = Math.min(...inTheWay.map((one) => one.expires_at));
    return { kind: 'too_many', whose, limit, retryAfterMs: first - now } as const;
  };
  if (mine.length >= MAX_OPEN_PER_NETWORK) return refuse('network', MAX_OPEN_PER_NETWORK, mine);
  const rejected = organisationId ? await listRejectedSources(tx, { organisationId, ownerId, now }) : [];
  const refusalOfRegistration = rejected.filter(isMine);
  if (refusalOfRegistration.length >= MAX_REJECTED_PER_NETWORK)
    return refuse('network', MAX_REJECTED_PER_NETWORK, refusalOfRegistration);
  if (open.length < MAX_OPEN_REGISTRATIONS) return [];
  const most = largestNetwork(open);
  const newest = most.at(-1);
  if (!newest || most.length < mine.length + 2) return refuse('owner', MAX_OPEN_REGISTRATIONS, open);
  await displaceRegistration(tx, newest, now);
  return [newest];
}

type Place = { ownerId: string; organisationId: string | undefined; source: string; now: Instant };

/** Returns the registrations of the network that has the most, in the order of the list. */
function largestNetwork(open: readonly OpenRegistration[]): OpenRegistration[] {
  const networks = Map.groupBy(open, (one) => siteOf(one.source));
  return [...networks.values()].reduce((most, one) => (one.length > most.length ? one : most), []);
}

/** Stores which registrations have expired. Readers see them as expired already. */
export const expireRegistrations = (
  { store }: Pick<Broker, 'store'>,
  changes: ApprovalChanges,
  now: Instant,
): Promise<void> =>
  changeAndNotify(store, changes, async (tx) =>
    (await expireOpenRegistrations(tx, now)).map(({ organisation_id: at, id }) => ({
      organisation_id: at ?? NO_ORGANISATION,
      id,
    })),
  );
