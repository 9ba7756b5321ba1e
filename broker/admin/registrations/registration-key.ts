/** The key pair of a registered agent: generated at the approval; the private half is stored sealed until it is collected, once. */

import { generateKeyPair } from 'node:crypto';
import { promisify } from 'node:util';
import { statusAt } from '../../audit/approval-state.ts';
import { type Changing, recordChange } from '../../audit/record-change.ts';
import type { Broker, Uses } from '../../broker.ts';
import { type AgentPublicKey, parsePublicKey } from '../../crypto/public-key.ts';
import { SealError } from '../../crypto/seal.ts';
import { Secret } from '../../crypto/secret.ts';
import type { Instant } from '../../policy/facts.ts';
import { present } from '../../runtime/present.ts';
import { findAgent, moveAgent } from '../../store/agents.ts';
import { type KnownRegistration, type RegistrationRef, takePrivateKey } from '../../store/registrations.ts';
import type { AgentTable } from '../../store/tables/agents.ts';
import type { RegistrationTable } from '../../store/tables/registrations.ts';
import { RolledBack, rollback } from '../../store/transaction.ts';
import { ChangeRefused } from '../refused.ts';
import { loadRegistrationByToken } from './read-registration.ts';

const BITS = 2048;

/** Generates an RSA key pair: the private half as PKCS#8 PEM. Takes a tenth of a second, in another thread. */
export async function makeKeyPair(): Promise<{ publicKey: AgentPublicKey; privatePem: Secret }> {
  const { publicKey, privateKey } = await promisify(generateKeyPair)('rsa', {
    modulusLength: BITS,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  const parsed = parsePublicKey(publicKey);
  if (!parsed.ok) throw new Error(`The key pair that was just generated is not valid: ${parsed.error}`);
  return { publicKey: parsed, privatePem: new Secret(privateKey) };
}

const placeOf = ({ organisation_id: organisationId, id: rowId }: RegistrationRef) => ({
  table: 'registrations' as const,
  organisationId,
  rowId,
});

export function sealPrivateKey({ vault }: Pick<Broker, 'vault'>, ref: RegistrationRef, pem: Secret): Buffer {
  return vault.seal(placeOf(ref), pem.reveal());
}

/** Throws SealError when the stored value was altered or belongs to another row. */
export function openPrivateKey(
  { vault }: Pick<Broker, 'vault'>,
  registration: RegistrationRef & { private_key: NonNullable<RegistrationTable['private_key']> },
): Secret {
  return new Secret(vault.open(placeOf(registration), registration.private_key).toString('utf8'));
}

const KEY_COLLECTED = 'The key was already collected. If you did not collect it, ask an owner to revoke the agent.';
const TOO_LATE =
  'Nobody collected the key within an hour of the approval, so it was deleted, and the agent is revoked. Register again.';
const STOPPED =
  'An owner revoked the agent before its key was collected, and the key was deleted. Ask the owner before you register again.';
const OTHERWISE =
  'An owner created a bootstrap token with which the agent brings its own key, so the key that was generated for it was deleted. Ask the owner for the bootstrap token.';

/** Returns why the key of an approved registration cannot be collected; undefined when it can. `agent`: the agent that the approval created. */
function whyNoKey(
  { claimed_at, claim_until, private_key }: RegistrationTable,
  agent: AgentTable | undefined,
  now: Instant,
): string | undefined {
  if (claimed_at !== null) return KEY_COLLECTED;
  if (agent?.status === 'pending')
    return private_key === null || claim_until === null || claim_until <= now ? TOO_LATE : undefined;
  // The registration was read before its agent: it still had the key, so the key was collected between the two reads.
  if (private_key !== null && agent?.status === 'active') return KEY_COLLECTED;
  if (agent && agent.status !== 'revoked' && agent.status !== 'deleted') return OTHERWISE;
  return agent?.status_cause === 'unknown' ? TOO_LATE : STOPPED;
}

const keyGone = (detail: string) => new ChangeRefused('key_gone', detail);

/**
 * Returns the private key of an approved registration, to one caller, ever, before the deadline, and not after the agent was stopped or waits for
 * another key. The commit destroys the stored key and activates the agent.
 *
 * @throws ChangeRefused, or AuditUnavailable: then nothing is changed
 */
export async function claimKey(
  services: Changing & Uses<'vault'>,
  token: string,
  correlationId: string,
): Promise<Secret> {
  const { broker } = services;
  const { found, agent } = await loadClaimable(broker, token);
  const pem = openKey(broker, found);
  const by = {
    owner: { id: found.agent_id, organisation_id: found.organisation_id },
    how: 'token',
    correlationId,
  } as const;
  const change = { reason: 'registration_key_claimed', agent };
  const claimed = await recordChange(services, by, change, async (tx, note) => {
    const place = { organisationId: found.organisation_id, id: agent.id };
    const move = { from: ['pending'], to: 'active', cause: null, detail: null } as const;
    const now = broker.clock();
    if (!(await moveAgent(tx, place, move, now)) || !(await takePrivateKey(tx, found, now)))
      return rollback('not_first');
    note({ registration: found.id, status: 'active' });
    return pem;
  });
  if (!(claimed instanceof RolledBack)) return claimed;
  // A concurrent request was first: reads the state again to report why.
  await loadClaimable(broker, token);
  throw keyGone(KEY_COLLECTED);
}

/** Loads the registration with its agent, if the key appears to be collectable. Throws ChangeRefused. */
async function loadClaimable(broker: Pick<Broker, 'clock' | 'store'>, token: string) {
  const found = await loadRegistrationByToken(broker, token);
  const now = broker.clock();
  refuseUndecided(found, now);
  const agent = await findAgent(broker.store.db, found.organisation_id, found.agent_id);
  const why = whyNoKey(found, agent, now);
  if (why !== undefined) throw keyGone(why);
  return { found, agent: present(agent, 'agent') };
}

function refuseUndecided(found: RegistrationTable, now: number): asserts found is KnownRegistration {
  const status = statusAt(found, now);
  if (status === 'pending')
    throw new ChangeRefused('registration_pending', 'No owner has approved this registration yet. Poll its status.');
  if (status !== 'approved') throw keyGone(`This registration is ${status}: there is no key. Register again.`);
}

function openKey(broker: Pick<Broker, 'log' | 'vault'>, found: KnownRegistration): Secret {
  try {
    return openPrivateKey(broker, { ...found, private_key: present(found.private_key, 'private key') });
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
    broker.log.error({ err: error, security: true, registration: found.id }, 'a private key cannot be opened');
    throw new ChangeRefused(
      'credential_unreadable',
      'The stored key cannot be opened; it was not handed out. Ask an owner for a bootstrap token.',
    );
  }
}
