/** Consents of people (specification, Per-person consent): begun by agents, and told of to whoever has the token. */
import type { ApprovalChanges } from '../audit/changes.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import type { Broker, Uses } from '../broker.ts';
import { sha256Hex } from '../crypto/canonical.ts';
import { uuidv4 } from '../crypto/ids.ts';
import { hashToken } from '../crypto/one-time-token.ts';
import type { Instant } from '../policy/facts.ts';
import { lockPending } from '../store/approvals.ts';
import { putPerson } from '../store/people.ts';
import { countOpenConsents, findOpenConsent, findPersonConsent, putPersonConsent } from '../store/person-consents.ts';
import type { Db } from '../store/store.ts';
import type { PersonConsentTable, PersonTokenTable } from '../store/tables/people.ts';
import { inTransaction, RolledBack, rollback } from '../store/transaction.ts';
import type { Identified, People } from './people.ts';

/** So long a consent can be used (specification, Limits). */
const LIFETIME_MS = 30 * 60_000;
/** Whoever asks again is told the same one, as long as that much of it is left. */
const ENOUGH_MS = 20 * 60_000;
/** Of an agent with its children at once. */
export const MAX_OPEN_CONSENTS = 20;

/** A consent that waits for its person. */
export type BegunConsent = { token: string; expiresAt: Instant };

/** A consent as it is stored. */
export type Consent = PersonConsentTable;

type Services = Uses<'clock' | 'store'> & { people: People };

/** Begins a consent of a person for a connection, or finds the one that this agent began. `too_many`: of this agent's wait already. */
export async function beginConsent(
  { broker, people }: Services,
  { agent }: Pick<AgentPrincipal, 'agent'>,
  at: { platformId: string; connectionId: string },
  who: Identified,
): Promise<BegunConsent | 'too_many'> {
  const now = broker.clock();
  const { organisation_id: organisationId } = agent;
  const familyId = agent.parent_id ?? agent.id;
  const id = uuidv4();
  const fresh = await people.hasher.consentToken(organisationId, id);
  const begun = await inTransaction(broker.store.db, async (tx) => {
    // Serialises the consents of a family.
    await lockPending(tx, organisationId, familyId);
    const personId = await putPerson(tx, { organisationId, hash: who.hash, now });
    const place = { organisationId, agentId: agent.id, connectionId: at.connectionId, personId };
    const open = await findOpenConsent(tx, place, now + ENOUGH_MS);
    if (open) return open;
    if ((await countOpenConsents(tx, organisationId, familyId, now)) >= MAX_OPEN_CONSENTS) return rollback('too_many');
    const consent: PersonConsentTable = {
      token_hash: sha256Hex(fresh.reveal()),
      organisation_id: organisationId,
      id,
      agent_id: agent.id,
      family_id: familyId,
      platform_id: at.platformId,
      connection_id: at.connectionId,
      person_id: personId,
      named_by: who.namedBy,
      verified: who.verified ? 1 : 0,
      status: 'pending',
      browser_hash: null,
      state_hash: null,
      flow: null,
      created_at: now,
      expires_at: now + LIFETIME_MS,
    };
    await putPersonConsent(tx, consent);
    return consent;
  });
  if (begun instanceof RolledBack) return 'too_many';
  const token = begun.id === id ? fresh : await people.hasher.consentToken(organisationId, begun.id);
  return { token: token.reveal(), expiresAt: begun.expires_at };
}

/** The consent with this token; undefined: there is none, or it was over for a day. */
export async function findConsent(
  { store }: Pick<Broker, 'store'>,
  token: string,
): Promise<PersonConsentTable | undefined> {
  const hash = hashToken(token, 'consent');
  return hash === undefined ? undefined : await findPersonConsent(store.db, hash);
}

/** Its status on the wire. */
export const consentStatusAt = (
  { status, expires_at: expiresAt }: Pick<PersonConsentTable, 'status' | 'expires_at'>,
  now: Instant,
): 'pending' | 'completed' | 'expired' => (status === 'pending' && expiresAt <= now ? 'expired' : status);

/** What whoever waits for a consent watches. Named, so that it counts for no held call. */
export const changeOfConsent = ({ organisation_id, id }: Pick<PersonConsentTable, 'organisation_id' | 'id'>) => ({
  organisation_id,
  id: `consent:${id}`,
});

/** What the owners' inbox hears when tokens begin or cease to wait for a confirmation: not named, as what waits for owners. */
export const changeOfWaiting = ({ organisation_id, id }: Pick<PersonTokenTable, 'organisation_id' | 'id'>) => ({
  organisation_id,
  id,
});

/** Tells the other processes, in the transaction that completes a consent. */
export const announceConsent = (changes: ApprovalChanges, tx: Db, consent: PersonConsentTable): Promise<void> =>
  changes.announce(tx, changeOfConsent(consent));

const CONSENT_PATH = '/me/consent';

/** Where the person goes, and where the agent polls. */
export const consentUrl = (baseUrl: string, token: string): string => `${baseUrl}${CONSENT_PATH}/${token}`;
export const consentPollUrl = (token: string): string => `/v1/consent/caller/status/${token}`;
