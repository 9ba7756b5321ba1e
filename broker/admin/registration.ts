/** An agent that asks to be one (specification, Registration): raised by anybody, decided by an owner. */

import { type ApprovalChanges, changeAndTell } from '../audit/changes.ts';
import { siteOf } from '../auth/client-address.ts';
import type { Broker } from '../broker.ts';
import { newAgentId, uuidv4 } from '../crypto/ids.ts';
import { mintToken } from '../crypto/one-time-token.ts';
import type { Secret } from '../crypto/secret.ts';
import type { Instant } from '../policy/facts.ts';
import { findOwner } from '../store/organisations.ts';
import { expireOpenRegistrations, listOpenRegistrations, putRegistration } from '../store/registrations.ts';
import type { RegistrationTable, ScopesOn } from '../store/schema.ts';

/** How long an owner has to decide. */
export const REGISTRATION_MS = 24 * 3_600_000;
/** How long the private key can be collected, from the approval on. */
export const CLAIM_MS = 3_600_000;
/** Per owner: strangers fill this list, and a list that nobody reads to its end is approved unread. */
const MOST_OPEN_REGISTRATIONS = 20;
/** Per owner and source: an owner's id is no secret, and one stranger must not take all of the list. */
const MOST_OPEN_PER_SOURCE = 5;

export type Applicant = {
  ownerId: string;
  name: string;
  description: string | null;
  scopes: readonly ScopesOn[];
  /** The client's address. */
  source: string;
};

/** `retryAfterMs`: until the first of those that are in the way expires. */
export type Registered =
  | { kind: 'opened'; token: Secret; agentId: string }
  | { kind: 'too_many'; whose: 'source' | 'owner'; limit: number; retryAfterMs: number };

/** Stands for the organisation of nobody, in news that nobody hears. */
const NOBODY = 'nobody';

/**
 * Takes a registration, whether there is such an owner or not: who registers with an owner_id that is nobody's waits, is
 * turned away at the same limit, and is told `expired` in the end, like everybody whom nobody answers; so nobody learns
 * here who is an owner. Such a row holds nothing that was sent but the owner_id, and whence; it is forgotten with the others,
 * or when there are too many of its kind.
 *
 * The key pair is made when an owner approves: a stranger's request costs no such work, and what is never approved never
 * had a key. The limit is counted and then written to, so as many as ask at the same instant may pass it.
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
    const refused = whyTooMany(await listOpenRegistrations(tx, ownerId, now), source, now);
    if (refused) return refused;
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
    const ref = { organisation_id: owner?.organisation_id ?? NOBODY, id };
    await changes.announce(tx, ref);
    return { kind: 'opened' as const, ref };
  });
  if (opened.kind === 'too_many') return opened;
  changes.tell(opened.ref);
  return { kind: 'opened', token, agentId };
}

/** `open`: the registrations that wait at the owner, the first to expire first. */
function whyTooMany(
  open: readonly Pick<RegistrationTable, 'source' | 'expires_at'>[],
  source: string,
  now: Instant,
): Extract<Registered, { kind: 'too_many' }> | undefined {
  const site = siteOf(source);
  const mine = open.filter((one) => siteOf(one.source) === site);
  const refuse = (whose: 'source' | 'owner', limit: number, first: number) =>
    ({ kind: 'too_many', whose, limit, retryAfterMs: first - now }) as const;
  const [ofSource] = mine;
  const [first] = open;
  if (ofSource && mine.length >= MOST_OPEN_PER_SOURCE)
    return refuse('source', MOST_OPEN_PER_SOURCE, ofSource.expires_at);
  if (first && open.length >= MOST_OPEN_REGISTRATIONS)
    return refuse('owner', MOST_OPEN_REGISTRATIONS, first.expires_at);
  return undefined;
}

/** Writes down which registrations nobody decided in time. To whoever reads them they were expired already. */
export const expireRegistrations = (
  { store }: Pick<Broker, 'store'>,
  changes: ApprovalChanges,
  now: Instant,
): Promise<void> =>
  changeAndTell(store, changes, async (tx) =>
    (await expireOpenRegistrations(tx, now)).map(({ organisation_id: at, id }) => ({
      organisation_id: at ?? NOBODY,
      id,
    })),
  );
