/** Consents of people (specification, Per-person consent): begun by agents, and readable with their token. */
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

/** How long a consent can be completed (specification, Limits). */
const LIFETIME_MS = 30 * 60_000;
/** A repeated request returns the same consent as long as it has this much time left. */
const MIN_TIME_LEFT_MS = 20 * 60_000;
/** Limit of pending consents of a family: an agent and its children. */
export const MAX_OPEN_CONSENTS = 20;

/** A consent that waits to be completed by its person. */
export type BegunConsent = { token: string; expiresAt: Instant };

/** A consent as it is stored. */
export type Consent = PersonConsentTable;

type Services = Uses<'clock' | 'store'> & { people: People };

/** Begins a consent of a person for a connection, or returns the pending one that this agent began. `too_many`: the family has reached its limit. */
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
    // Serialises concurrent consents of a family.
    await lockPending(tx, organisationId, familyId);
    const personId = await putPerson(tx, { organisationId, hash: who.hash, now });
    const place = { organisationId, agentId: agent.id, connectionId: at.connectionId, personId };
    const open = await findOpenConsent(tx, place, now + MIN_TIME_LEFT_MS);
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

/** Returns the consent with this token; undefined when it does not exist, or was deleted a day after it ended. */
export async function findConsent(
  { store }: Pick<Broker, 'store'>,
  token: string,
): Promise<PersonConsentTable | undefined> {
  const hash = hashToken(token, 'consent');
  return hash === undefined ? undefined : await findPersonConsent(store.db, hash);
}

/** Returns the consent's status for API responses. */
export const consentStatusAt = (
  { status, expires_at: expiresAt }: Pick<PersonConsentTable, 'status' | 'expires_at'>,
  now: Instant,
): 'pending' | 'completed' | 'expired' => (status === 'pending' && expiresAt <= now ? 'expired' : status);

/** The change that long polls for a consent subscribe to. The prefix keeps it apart from changes of held calls. */
export const changeOfConsent = ({ organisation_id, id }: Pick<PersonConsentTable, 'organisation_id' | 'id'>) => ({
  organisation_id,
  id: `consent:${id}`,
});

/**
 * The change that the owners' inbox subscribes to, when tokens begin or cease to wait for a confirmation. Without a prefix, like other changes of what
 * waits for owners.
 */
export const changeOfWaiting = ({ organisation_id, id }: Pick<PersonTokenTable, 'organisation_id' | 'id'>) => ({
  organisation_id,
  id,
});

/** Notifies the other replicas, in the transaction that completes a consent. */
export const announceConsent = (changes: ApprovalChanges, tx: Db, consent: PersonConsentTable): Promise<void> =>
  changes.announce(tx, changeOfConsent(consent));

const CONSENT_PATH = '/me/consent';

/** The page for the person, and the path that the agent polls. */
export const consentUrl = (baseUrl: string, token: string): string => `${baseUrl}${CONSENT_PATH}/${token}`;
export const consentPollUrl = (token: string): string => `/v1/consent/caller/status/${token}`;
