/** The key pair of a registered agent: made at the approval, the private half kept sealed until it is collected, once. */
import { generateKeyPair } from 'node:crypto';
import { promisify } from 'node:util';
import type { Broker } from '../broker.ts';
import { type AgentPublicKey, parsePublicKey } from '../crypto/public-key.ts';
import { Secret } from '../crypto/secret.ts';
import type { Instant } from '../policy/facts.ts';
import { moveAgent } from '../store/agents.ts';
import { type KnownRegistration, type RegistrationRef, takePrivateKey } from '../store/registrations.ts';
import type { AgentTable, RegistrationTable } from '../store/schema.ts';
import type { Db } from '../store/store.ts';

const BITS = 2048;

/** A new RSA key pair: the private half as PKCS#8 PEM. It takes a tenth of a second, on another thread. */
export async function makeKeyPair(): Promise<{ publicKey: AgentPublicKey; privatePem: Secret }> {
  const { publicKey, privateKey } = await promisify(generateKeyPair)('rsa', {
    modulusLength: BITS,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  const parsed = parsePublicKey(publicKey);
  if (!parsed.ok) throw new Error(`A key pair that was just made is none: ${parsed.error}`);
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

/** Throws SealError when what is stored was altered or is another row's. */
export function openPrivateKey(
  { vault }: Pick<Broker, 'vault'>,
  registration: RegistrationRef & { private_key: NonNullable<RegistrationTable['private_key']> },
): Secret {
  return new Secret(vault.open(placeOf(registration), registration.private_key).toString('utf8'));
}

export const KEY_COLLECTED = 'The key was collected already. If it was not you, have an owner revoke the agent.';
const TOO_LATE =
  'Nobody collected the key within an hour of the approval, so it was deleted, and the agent is revoked. Register again.';
const STOPPED =
  'An owner stopped the agent for good before its key was collected, and the key is destroyed. Ask the owner before you register again.';
const OTHERWISE =
  'An owner has the agent bring another key, so the one that was made for it is destroyed. Ask the owner for the bootstrap token.';

/** Why the key of an approved registration cannot be collected; undefined: it can. `agent`: the one that it made. */
export function whyNoKey(
  { claimed_at, claim_until, private_key }: RegistrationTable,
  agent: AgentTable | undefined,
  now: Instant,
): string | undefined {
  if (claimed_at !== null) return KEY_COLLECTED;
  if (agent?.status === 'pending')
    return private_key === null || claim_until === null || claim_until <= now ? TOO_LATE : undefined;
  // With the key in a registration that was read a moment before its agent, somebody collected it in between.
  if (private_key !== null && agent?.status === 'active') return KEY_COLLECTED;
  if (agent && agent.status !== 'revoked' && agent.status !== 'deleted') return OTHERWISE;
  return agent?.status_cause === 'unknown' ? TOO_LATE : STOPPED;
}

/**
 * In a transaction: the agent is active, and its stored key is destroyed, for whoever collects it now. Answers true to exactly
 * one caller, in time, and to none once the agent was stopped or waits for another key. False: undo the transaction.
 */
export async function collectKey(
  db: Db,
  registration: KnownRegistration,
  agent: Pick<AgentTable, 'id'>,
  now: Instant,
): Promise<boolean> {
  const place = { organisationId: registration.organisation_id, id: agent.id };
  const move = { from: ['pending'], to: 'active', cause: null, detail: null } as const;
  return (await moveAgent(db, place, move, now)) && (await takePrivateKey(db, registration, now));
}
