/** Creates child identities of agents (specification, Child identity; POST /v1/agents/children). */

import { type Changing, recordChange } from '../../audit/record-change.ts';
import { trustsWorkload } from '../../auth/authenticate-workload.ts';
import { mintChildToken } from '../../auth/child-token.ts';
import type { AgentPrincipal } from '../../auth/principal.ts';
import type { Uses } from '../../broker.ts';
import { newAgentId, uuidv4 } from '../../crypto/ids.ts';
import type { SigningKey } from '../../crypto/key-set.ts';
import type { Secret } from '../../crypto/secret.ts';
import { isEntitled } from '../../entitlement.ts';
import type { Compiled } from '../../facts/compiled.ts';
import { grantOfFacts } from '../../facts/facts.ts';
import type { Manifest } from '../../platforms/manifest.ts';
import type { Grant, Instant } from '../../policy/facts.ts';
import { findAgent, putAgent, putGrant } from '../../store/agents.ts';
import { listOverdueChildren, reserveChildSlot } from '../../store/children.ts';
import type { FactsRow } from '../../store/facts-columns.ts';
import type { Db } from '../../store/store.ts';
import { type RolledBack, rollback } from '../../store/transaction.ts';
import { attenuateGrants, type ChildGrant, type ChildGrantRequest, type Holdings } from './child-grants.ts';
import { endLifetime } from './end-lifetime.ts';

/** Limit of live children (neither revoked nor expired) per agent. */
export const MAX_LIVE_CHILDREN = 50;
/** Lifetime of a child, in seconds. */
export const CHILD_TTL = { default: 3600, most: 24 * 3600 } as const;

export type ChildRequest = { name: string | undefined; ttlSeconds: number; grants: readonly ChildGrantRequest[] };

export type IssuedChild = { agentId: string; token: Secret; expiresAt: Instant; granted: readonly ChildGrant[] };

export type Issued =
  | { kind: 'issued'; child: IssuedChild }
  /** The parent was stopped concurrently. */
  | { kind: 'parent_not_active' }
  /** The key or workload with which the parent authenticated was replaced or removed concurrently, which ended its children. */
  | { kind: 'credential_ended' }
  | { kind: 'too_many'; limit: number }
  /** No signing key is available; nothing was created. */
  | { kind: 'no_key' };

/** Limit of attempts to free a slot, since concurrent requests may take the freed ones. */
const MAX_ATTEMPTS = 200;

/**
 * Creates a child of an active agent: its row, its grants, the parent's slot and the event with its receipt, in one transaction. The grants are at
 * most what the parent held when it was authenticated; later changes of the parent narrow every call of the child. When all slots are taken, slots of
 * expired children are freed first. Throws ChangeRefused, or AuditUnavailable: then nothing is created.
 *
 * @param who with the facts about all its platforms
 */
export async function issueChild(
  services: Changing & Uses<'config' | 'baseUrl' | 'did' | 'keys'> & { compiled: Pick<Compiled, 'platform'> },
  who: AgentPrincipal,
  wish: ChildRequest,
  correlationId: string,
): Promise<Issued> {
  const { broker } = services;
  const { db } = broker.store;
  const now = broker.clock();
  const granted = attenuateGrants(wish.grants, await loadHoldings(services, who, wish.grants), now);
  const key = issuingKey(services, now);
  if (!key) return { kind: 'no_key' };
  const made = newChild(services, who.agent, wish, key, now);
  const parent = { organisationId: who.agent.organisation_id, id: who.agent.id };
  for (let tries = 0; tries < MAX_ATTEMPTS; tries++) {
    const { row, token } = made;
    const refused = await recordIssue(services, who, row, granted, correlationId);
    if (refused === undefined)
      return { kind: 'issued', child: { agentId: row.agent_id, token, expiresAt: row.expires_at, granted } };
    if (refused === 'credential_ended') return { kind: refused };
    const overdue = await listOverdueChildren(db, parent, { now: broker.clock(), limit: MAX_LIVE_CHILDREN });
    // Chosen at random, because concurrent requests see the same list.
    const one = overdue[Math.floor(Math.random() * overdue.length)];
    if (one === undefined) break;
    await endLifetime(services, one);
  }
  const today = await findAgent(db, parent.organisationId, parent.id);
  return today?.status === 'active' ? { kind: 'too_many', limit: MAX_LIVE_CHILDREN } : { kind: 'parent_not_active' };
}

/** Loads an agent's grants from the facts about all its platforms. */
async function loadHoldings(
  { broker, compiled }: Uses<'config'> & { compiled: Pick<Compiled, 'platform'> },
  { agent, rows }: AgentPrincipal,
  wanted: readonly ChildGrantRequest[],
): Promise<Holdings> {
  const grants = new Map<string, Grant>();
  const manifests = new Map<string, Manifest>();
  const defaultConnections = new Map<string, string | null>();
  for (const row of rows) {
    if (row.grant_id === null || row.platform_id === null) continue;
    grants.set(row.grant_id, grantOfFacts(row));
    defaultConnections.set(row.platform_id, row.default_connection_id);
    const { platform_id: id, platform_version: version } = row;
    if (version === null || manifests.has(id) || !wanted.some(({ platform }) => platform === id)) continue;
    manifests.set(id, (await compiled.platform(agent.organisation_id, id, version)).manifest);
  }
  const mayLimitRepos = isEntitled(broker, agent.organisation_id, 'repository_constraints');
  return { grants: [...grants.values()], mayLimitRepos, defaultConnections, manifests };
}

function issuingKey({ broker }: Uses<'log' | 'keys'>, now: Instant): SigningKey | undefined {
  try {
    return broker.keys.signer('issuing', now);
  } catch (error) {
    broker.log.error({ err: error }, 'no issuing key available: cannot issue children');
    return undefined;
  }
}

function newChild(
  { broker }: Uses<'baseUrl' | 'did'>,
  parent: FactsRow,
  wish: ChildRequest,
  key: SigningKey,
  now: Instant,
) {
  const issuedAt = Math.floor(now / 1000);
  // Tokens have whole seconds: rounded up to the requested lifetime, but not beyond the parent's.
  const asked = Math.ceil(now / 1000 + wish.ttlSeconds);
  const expiresAt = parent.expires_at === null ? asked : Math.min(asked, Math.floor(parent.expires_at / 1000));
  const agentId = newAgentId();
  const ids = { agentId, ownerId: parent.owner_id, parentAgentId: parent.agent_id };
  const { token, fingerprint } = mintChildToken(broker, key, ids, { issuedAt, expiresAt });
  const row = {
    organisation_id: parent.organisation_id,
    id: uuidv4(),
    agent_id: agentId,
    name: wish.name ?? defaultName(parent.name),
    owner_id: parent.owner_id,
    agent_type: 'child' as const,
    status: 'active' as const,
    status_since: now,
    status_cause: null,
    status_detail: null,
    // A child always uses its parent's current policy.
    policy_id: null,
    origin: 'owner' as const,
    parent_id: parent.id,
    public_key_pem: null,
    key_fingerprint: fingerprint,
    created_at: now,
    expires_at: expiresAt * 1000,
    former_owners: null,
    labels: null,
  };
  return { row, token };
}

/** Limited to 100 characters, the maximum of a name. */
const defaultName = (parent: string): string => `child of ${parent}`.slice(0, 100).toWellFormed();

type NotIssued = 'no_place' | 'credential_ended';

/** Returns why nothing was created; undefined when the child was. */
async function recordIssue(
  services: Changing,
  who: AgentPrincipal,
  row: ReturnType<typeof newChild>['row'],
  granted: readonly ChildGrant[],
  correlationId: string,
): Promise<NotIssued | undefined> {
  const parent = who.agent;
  const organisationId = parent.organisation_id;
  const by = { owner: { id: parent.agent_id, organisation_id: organisationId }, how: 'agent' as const, correlationId };
  const change = { reason: 'child_issued', agent: { id: row.id, agent_id: row.agent_id } };
  const issued = await recordChange(
    services,
    by,
    change,
    async (tx, note): Promise<RolledBack<NotIssued> | undefined> => {
      const place = { organisationId, id: parent.id };
      if (!(await reserveChildSlot(tx, place, MAX_LIVE_CHILDREN, services.broker.clock()))) return rollback('no_place');
      // The parent's row is locked now: a credential that is replaced later ends this child, too.
      if (!(await isCredentialInForce(tx, who))) return rollback('credential_ended');
      await putAgent(tx, row);
      for (const grant of granted) await putPassedOn(tx, row, grant);
      const grants = granted.map(({ platformId, scopes }) => ({ platform: platformId, scopes: [...scopes] }));
      note({ parent: parent.agent_id, expires_at: new Date(row.expires_at).toISOString(), grants });
      return undefined;
    },
  );
  return issued?.reason;
}

/** Whether the agent could still authenticate with the key or workload that it used. */
async function isCredentialInForce(db: Db, who: AgentPrincipal): Promise<boolean> {
  if (who.workload) return await trustsWorkload(db, who);
  const agent = await findAgent(db, who.agent.organisation_id, who.agent.id);
  return who.signedWith === undefined || who.signedWith === agent?.key_fingerprint;
}

const putPassedOn = (db: Db, child: ReturnType<typeof newChild>['row'], grant: ChildGrant): Promise<void> =>
  putGrant(db, {
    organisation_id: child.organisation_id,
    id: uuidv4(),
    agent_id: child.id,
    platform_id: grant.platformId,
    connection_id: grant.connectionId,
    scopes: JSON.stringify(grant.scopes),
    constraints: JSON.stringify(grant.constraints),
    require_approval: grant.requireApproval ? 1 : 0,
    expires_at: grant.expiresAt,
    expires_text: null,
    created_at: child.created_at,
  });
