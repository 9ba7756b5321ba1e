/** Static keys: an owner issues an agent's bearer for one connection, to clients that cannot sign (docs/unmodified.md, Static keys). */
import { type Changing, type ChangingOwner, recordInTurn } from '../../audit/record-change.ts';
import type { Broker } from '../../broker.ts';
import { storedUuid, UUID_PATTERN, uuidv4 } from '../../crypto/ids.ts';
import { mintToken } from '../../crypto/one-time-token.ts';
import type { Secret } from '../../crypto/secret.ts';
import type { Instant } from '../../policy/facts.ts';
import { didYouMean } from '../../runtime/did-you-mean.ts';
import { present } from '../../runtime/present.ts';
import { findAgent, lockAgent } from '../../store/agents.ts';
import { listConnections } from '../../store/connections.ts';
import { endStaticKey, type ListedStaticKey, listStaticKeys, putStaticKey } from '../../store/static-keys.ts';
import type { Db } from '../../store/store.ts';
import type { AgentTable } from '../../store/tables/agents.ts';
import type { ConnectionTable } from '../../store/tables/connections.ts';
import { ChangeRefused } from '../refused.ts';
import { loadAgent } from './find-agent.ts';

const DAY_S = 24 * 3600;
/** In seconds. */
export const STATIC_KEY_LIFETIME = { least: 60, default: 30 * DAY_S, most: 90 * DAY_S } as const;
/** Limit of live keys per agent. */
const MAX_STATIC_KEYS = 20;

/** `connection`: label or id. */
export type NewStaticKey = { agentId: string; label: string; connection: string; lifetimeSeconds: number };

export type ReadStaticKey = Omit<ListedStaticKey, 'token_hash'> & { status: 'live' | 'ended' | 'expired' };

const read = ({ token_hash: _hash, ...key }: ListedStaticKey, now: Instant): ReadStaticKey => ({
  ...key,
  status: key.ended_at !== null ? 'ended' : key.expires_at <= now ? 'expired' : 'live',
});

/** Lists an agent's keys, newest first; revoked and expired ones for 90 days. Throws ChangeRefused. */
export async function readStaticKeys(
  { store: { db }, clock }: Pick<Broker, 'store' | 'clock'>,
  organisationId: string,
  agentId: string,
): Promise<ReadStaticKey[]> {
  const agent = await loadAgent(db, organisationId, agentId);
  return (await listStaticKeys(db, agent)).map((key) => read(key, clock()));
}

/** Issues a key. `secret` is to be shown once. Throws ChangeRefused, or AuditUnavailable: then nothing is issued. */
export async function issueStaticKey(
  services: Changing,
  by: ChangingOwner,
  { agentId, label, connection: named, lifetimeSeconds }: NewStaticKey,
): Promise<{ key: ReadStaticKey; secret: Secret }> {
  const { store, clock } = services.broker;
  const { id: owner_id, organisation_id } = by.owner;
  const agent = await loadAgent(store.db, organisation_id, agentId);
  const connection = await connectionNamed(store.db, organisation_id, named);
  const { token: secret, hash } = mintToken('static_key');
  const about = { agent, platform: connection.platform_id, connection: connection.id };
  const key = await recordInTurn(services, by, { reason: 'static_key_issued', ...about }, async (tx, note) => {
    const now = clock();
    // A revocation ends the keys that it sees: it waits for this one, or this one for it.
    await lockAgent(tx, agent);
    await refuseAgent(tx, present(await findAgent(tx, organisation_id, agent.id), 'agent'), now);
    // The connection may have been removed meanwhile, which ends its keys.
    const { id: connection_id } = await connectionNamed(tx, organisation_id, connection.id);
    const id = uuidv4();
    const expires_at = now + lifetimeSeconds * 1000;
    const made = {
      organisation_id,
      id,
      agent_id: agent.id,
      connection_id,
      label,
      owner_id,
      created_at: now,
      expires_at,
    };
    await putStaticKey(tx, { ...made, token_hash: hash });
    note({ static_key: id, label, expires_at: new Date(expires_at).toISOString() });
    return { ...made, connection_label: connection.label, last_used_at: null, ended_at: null, ended_because: null };
  });
  return { key: { ...key, status: 'live' }, secret };
}

/** Revokes a key: it is refused from the next request on every replica. Throws ChangeRefused, or AuditUnavailable: then it stays valid. */
export async function revokeStaticKey(
  services: Changing,
  by: ChangingOwner,
  { agentId, id }: { agentId: string; id: string },
): Promise<ReadStaticKey> {
  const { store, clock } = services.broker;
  const { organisation_id } = by.owner;
  const agent = await loadAgent(store.db, organisation_id, agentId);
  const find = async (db: Db) => (await listStaticKeys(db, agent)).find((key) => key.id === id);
  const known = await find(store.db);
  if (!known) throw new ChangeRefused('not_found', 'The agent has no such static key.');
  const change = { reason: 'static_key_revoked', agent, connection: known.connection_id };
  const ended = await recordInTurn(services, by, change, async (tx, note) => {
    if (!(await endStaticKey(tx, known, clock())))
      throw new ChangeRefused('conflict', 'This static key was revoked or has expired already.');
    note({ static_key: id, label: known.label });
    return present(await find(tx), 'static key');
  });
  return read(ended, clock());
}

/** Finds a connection by its label, else its id. Throws ChangeRefused. */
async function connectionNamed(db: Db, organisationId: string, named: string): Promise<ConnectionTable> {
  const connections = await listConnections(db, organisationId);
  const id = UUID_PATTERN.test(named) ? storedUuid(named) : undefined;
  const found = connections.find(({ label }) => label === named) ?? connections.find((one) => one.id === id);
  if (found) return found;
  const near = didYouMean(
    named,
    connections.map(({ label }) => label),
  );
  throw new ChangeRefused(
    'invalid_request',
    `connection: the organisation has no connection of this name or id.${near}`,
  );
}

/** Throws ChangeRefused when the agent cannot have a key. */
async function refuseAgent(db: Db, agent: AgentTable, now: Instant): Promise<void> {
  if (agent.agent_type === 'child' || agent.agent_type === 'mcp_client')
    throw new ChangeRefused('conflict', 'Children and the agents of MCP clients get no static keys.');
  if (agent.status === 'revoked' || agent.status === 'deleted')
    throw new ChangeRefused('conflict', 'This agent is revoked.');
  const live = (await listStaticKeys(db, agent)).filter((key) => read(key, now).status === 'live');
  if (live.length >= MAX_STATIC_KEYS)
    throw new ChangeRefused('conflict', `This agent has ${MAX_STATIC_KEYS} static keys already. Revoke one first.`);
}
