/** Creates a bootstrap token, shown once, with which an agent binds its own key. */

import { type Changing, type ChangingOwner, recordInTurn } from '../../audit/record-change.ts';
import { type BootstrapToken, mintBootstrapToken } from '../../auth/bootstrap-token.ts';
import { present } from '../../runtime/present.ts';
import { findAgent, lockAgent } from '../../store/agents.ts';
import { endOneTimeTokens } from '../../store/governance.ts';
import { destroyUncollectedKey } from '../../store/registrations.ts';
import type { AgentTable } from '../../store/tables/agents.ts';
import { ChangeRefused } from '../refused.ts';
import { hasKey, usesOwnKey } from './bind.ts';
import { setAgentStatus } from './change-agent-status.ts';
import { loadAgent } from './find-agent.ts';

/**
 * Revokes earlier tokens of the agent. Its key stays valid until another is bound; a generated key that was not collected yet is destroyed.
 *
 * @param rotates for an agent that has a key, which binding replaces
 * @throws ChangeRefused, or AuditUnavailable: then no token is created
 */
export async function makeBootstrapToken(
  services: Changing,
  by: ChangingOwner,
  { agentId, rotates }: { agentId: string; rotates: boolean },
): Promise<BootstrapToken & { agent: AgentTable }> {
  const { broker } = services;
  const { organisation_id: organisationId } = by.owner;
  const agent = await loadAgent(broker.store.db, organisationId, agentId);
  const minted = await recordInTurn(services, by, { reason: 'bootstrap_token_made', agent }, async (db, note) => {
    // A revocation ends the tokens that it sees: it waits for this one, or this one for it.
    await lockAgent(db, agent);
    const now = present(await findAgent(db, organisationId, agent.id), 'agent');
    if (!usesOwnKey(now))
      throw new ChangeRefused(
        'conflict',
        'This agent cannot get a key: it is revoked, or is of a kind that has no key.',
      );
    if (hasKey(now) && !rotates)
      throw new ChangeRefused(
        'agent_has_key',
        'This agent has its key already. Send {"rotate": true} for a token with which it replaces that key.',
      );
    const at = broker.clock();
    // The agent will bind its own key, so the generated key must not be handed out any more.
    const move = { from: ['pending'], to: 'pending_bind', cause: null, detail: null } as const;
    const waited = await setAgentStatus(db, agent, move, at);
    if (waited) await destroyUncollectedKey(db, { organisationId, id: agent.id });
    await endOneTimeTokens(db, { organisationId, kind: 'bootstrap', subject: agent.id }, at);
    const token = await mintBootstrapToken(db, agent, at, { madeBy: by.owner.id, rotates });
    note({
      expires_at: new Date(token.expiresAt).toISOString(),
      ...(waited && { status: 'pending_bind' }),
      ...(rotates && { rotate: true }),
    });
    return token;
  });
  return { ...minted, agent };
}
