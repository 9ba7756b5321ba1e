import type { KeyObject } from 'node:crypto';
import { type Broker, didOfAgent, workloadIdOf } from '../broker.ts';
import { createPublicKeyCache } from '../crypto/public-key.ts';
import type { FactsRow } from '../store/facts.ts';
import { factsReader } from '../store/facts-reader.ts';
import { parseAgentToken } from './agent-token.ts';
import { childAuthenticator, type EndLifetime } from './authenticate-child.ts';
import { saysChild } from './child-token.ts';
import type { AgentPrincipal, AuthRefusal } from './principal.ts';
import { type BreakerOpened, countStrikes } from './strikes.ts';
import { createAgentTokenVerifier } from './verify-agent-token.ts';

/**
 * `(token, platform id or '', source address)` → the agent with the facts about that platform, or why not. One read,
 * whether the agent exists or not; unknown, deleted and keyless agents answer like a wrong signature, after a verification.
 */
export type AuthenticateAgent = (
  token: string,
  platformId: string,
  source: string,
) => Promise<AgentPrincipal | AuthRefusal>;

/** Told of what authentication notices beside who asks. */
export type Noticed = { breakerOpened: BreakerOpened; endLifetime: EndLifetime };

type WithKey = FactsRow & { public_key_pem: string; key_fingerprint: string };

const hasKey = (agent: FactsRow): agent is WithKey =>
  Boolean(agent.public_key_pem && agent.key_fingerprint) && agent.status !== 'deleted';

/** Specification, Authentication 1 to 4. Keys are parsed once and kept by fingerprint. */
export function agentAuthenticator(broker: Broker, { breakerOpened, endLifetime }: Noticed): AuthenticateAgent {
  const readFacts = factsReader(broker.store, 'alone');
  const keys = createPublicKeyCache();
  const keyOf = (agent: WithKey): KeyObject => keys.keyOf(agent.key_fingerprint, agent.public_key_pem);
  const verifier = createAgentTokenVerifier();
  const countStrike = countStrikes(broker, breakerOpened);
  const authenticateChild = childAuthenticator(broker, countStrike, endLifetime);

  return async (token, platformId, source) => {
    if (saysChild(token)) return await authenticateChild(token, platformId, source);
    const parsed = parseAgentToken(token);
    if (!parsed.ok) return { kind: 'refused', code: parsed.code, detail: parsed.detail };
    const rows = await readFacts(parsed.token.claims.agentId, platformId, source, ([likely]) => {
      if (likely && hasKey(likely)) verifier.prepare(parsed.token, keyOf(likely));
    });
    const agent = rows[0];
    if (!agent || !hasKey(agent)) {
      const refused = verifier.refuseUnknown(parsed.token);
      return { kind: 'refused', code: refused.code, detail: refused.detail };
    }
    const verified = verifier.verify(
      parsed.token,
      {
        agentId: agent.agent_id,
        ownerId: agent.owner_id,
        fingerprint: agent.key_fingerprint,
        acceptedSubjects: parsed.token.claims.subject
          ? [
              agent.agent_id,
              didOfAgent(broker, agent.agent_id),
              workloadIdOf(broker.baseUrl, agent.organisation_id, agent.agent_id),
            ]
          : [],
      },
      keyOf(agent),
      { now: broker.clock(), baseUrl: broker.baseUrl },
    );
    if (!verified.ok) {
      if (verified.countsAsStrike) await countStrike(agent, source, parsed.token.signingInput);
      return { kind: 'refused', code: verified.code, detail: verified.detail };
    }
    return { kind: 'agent', rows, agent, source, sessionId: verified.claims.sessionId ?? null };
  };
}
