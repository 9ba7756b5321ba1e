/** Binding an agent's own key: with a bootstrap token or an invite (specification, Registration and binding). */

import { type Changing, recordInTurn } from '../../audit/record-change.ts';
import { hashToken } from '../../crypto/one-time-token.ts';
import type { AgentPublicKey } from '../../crypto/public-key.ts';
import type { Instant, JsonObject } from '../../policy/facts.ts';
import { present } from '../../runtime/present.ts';
import { BINDABLE, bindKey, findOtherAgentWithKey, isFormerKey } from '../../store/agent-keys.ts';
import { findAgent } from '../../store/agents.ts';
import { endOneTimeTokens } from '../../store/governance.ts';
import { findOneTimeToken, useOneTimeToken } from '../../store/one-time-tokens.ts';
import { destroyUncollectedKey } from '../../store/registrations.ts';
import { type EndedChildren, type EndedRequest, revokeChildren } from '../../store/revoke-agent.ts';
import type { Db } from '../../store/store.ts';
import type { AgentTable } from '../../store/tables/agents.ts';
import { ChangeRefused } from '../refused.ts';

/** Whether an agent authenticates with a key of its own, and so can be given one. */
export const usesOwnKey = ({ agent_type, status }: Pick<AgentTable, 'agent_type' | 'status'>): boolean =>
  agent_type !== 'child' && agent_type !== 'mcp_client' && BINDABLE.includes(status);

/** Whether an agent can sign already; a pending agent has no key in use. */
export const hasKey = ({ public_key_pem, status }: Pick<AgentTable, 'public_key_pem' | 'status'>): boolean =>
  public_key_pem !== null && (status === 'active' || status === 'suspended');

const tokenUnusable = () =>
  new ChangeRefused(
    'token_used',
    'This bootstrap token is unknown, used or expired, or the agent already has a key and the token was not made to replace it. Ask an owner for another.',
  );

/**
 * Binds an agent's key with a bootstrap token, and records it: the token is consumed, and the agent's other tokens are revoked. Of concurrent callers
 * one wins. A former key stops working with the commit, and children that were made before are ended. Returns the updated agent.
 *
 * @throws ChangeRefused, or AuditUnavailable: then nothing is changed
 */
export async function bindAgent(
  services: Changing,
  token: string,
  key: AgentPublicKey,
  correlationId: string,
): Promise<AgentTable> {
  const { store, clock } = services.broker;
  const bootstrap = await findBootstrap(store.db, token, clock());
  const { agent } = bootstrap;
  const owner = { id: agent.agent_id, organisation_id: agent.organisation_id };
  const by = { owner, how: 'token', correlationId } as const;
  const bound = await recordInTurn(services, by, { reason: 'agent_bound', agent }, async (tx, note) => {
    const made = await bindByBootstrap(tx, bootstrap, key, clock(), note);
    for (const request of made.requests) await services.changes.announce(tx, request);
    return made;
  });
  for (const request of bound.requests) services.changes.tell(request);
  return bound.agent;
}

type Bootstrap = { tokenHash: string; agent: AgentTable; rotates: boolean };

/** Finds the agent of a bootstrap token. Throws ChangeRefused when the token is invalid. */
async function findBootstrap(db: Db, token: string, now: Instant): Promise<Bootstrap> {
  const tokenHash = hashToken(token, 'bootstrap');
  const found = tokenHash === undefined ? undefined : await findOneTimeToken(db, 'bootstrap', tokenHash);
  if (!found || found.used_at !== null || found.expires_at <= now) throw tokenUnusable();
  const agent = await findAgent(db, found.organisation_id, found.subject);
  const rotates = found.rotates === 1;
  if (!agent || !usesOwnKey(agent) || (hasKey(agent) && !rotates)) throw tokenUnusable();
  return { tokenHash: found.token_hash, agent, rotates };
}

async function bindByBootstrap(
  db: Db,
  { tokenHash, agent: { organisation_id: organisationId, id }, rotates }: Bootstrap,
  key: AgentPublicKey,
  now: Instant,
  note: (facts: JsonObject) => void,
): Promise<{ agent: AgentTable; requests: EndedRequest[] }> {
  if (!(await useOneTimeToken(db, 'bootstrap', tokenHash, now))) throw tokenUnusable();
  const before = await findAgent(db, organisationId, id);
  if (!before || !usesOwnKey(before) || (hasKey(before) && !rotates)) throw tokenUnusable();
  await refuseSharedKey(db, { organisationId, id }, key);
  // The agent may have been revoked concurrently.
  const ended = await bindAgentKey(db, before, key, now);
  if (!ended) throw tokenUnusable();
  note({
    fingerprint: key.fingerprint,
    before: before.key_fingerprint,
    ...(rotates && { rotate: true }),
    ...(ended.count > 0 && { children_ended: ended.count }),
  });
  return { agent: present(await findAgent(db, organisationId, id), 'agent'), requests: ended.requests };
}

/**
 * In a transaction: binds a key to an agent, deletes its unclaimed key, and invalidates its bootstrap tokens. When it replaces a key (`agent`: the
 * row before the change), the agent's children are ended, since whoever had that key may have made them. Returns the ended children; undefined when
 * the agent accepts no key any more, and then the transaction has to be rolled back.
 */
export async function bindAgentKey(
  db: Db,
  agent: AgentTable,
  key: Pick<AgentPublicKey, 'pem' | 'fingerprint'>,
  now: Instant,
): Promise<EndedChildren | undefined> {
  const { organisation_id: organisationId, id } = agent;
  if (!(await bindKey(db, { organisationId, id }, key, now))) return undefined;
  await destroyUncollectedKey(db, { organisationId, id });
  await endOneTimeTokens(db, { organisationId, kind: 'bootstrap', subject: id }, now);
  const isReplaced = hasKey(agent) && agent.key_fingerprint !== key.fingerprint;
  return isReplaced ? await revokeChildren(db, { organisationId, id }, now) : { count: 0, requests: [] };
}

/**
 * Refuses a key that another agent uses: two agents with one key could sign for each other; and a key that was replaced, because somebody else may
 * have it. Only the organisation's own agents are checked: public keys are public, and registering somebody else's in another organisation must not
 * block its owner.
 */
export async function refuseSharedKey(
  db: Db,
  agent: { organisationId: string; id: string },
  key: AgentPublicKey,
): Promise<void> {
  if (await findOtherAgentWithKey(db, agent, key.fingerprint))
    throw new ChangeRefused(
      'invalid_request',
      'public_key_pem: this key is bound to another agent already. Every agent has its own: make a new key pair.',
    );
  if (await isFormerKey(db, agent.organisationId, key.fingerprint))
    throw new ChangeRefused(
      'invalid_request',
      'public_key_pem: this key was replaced by another one and cannot be used again. Make a new key pair.',
    );
}
