import { type Broker, didOfAgent, workloadIdOf } from '../broker.ts';
import { sha256Base64url } from '../crypto/canonical.ts';
import { createPublicKeyCache } from '../crypto/public-key.ts';
import { BREAKER_LIMITS } from '../decision/breaker.ts';
import { strike } from '../store/breakers.ts';
import type { FactsRow } from '../store/facts.ts';
import { factsReader } from '../store/facts-reader.ts';
import { parseAgentToken } from './agent-token.ts';
import type { AgentPrincipal, AuthRefusal } from './principal.ts';
import { createAgentTokenVerifier } from './verify-agent-token.ts';

/**
 * `(token, platform id or '', source address)` → the agent with the facts about that platform, or why not. One query,
 * whether the agent exists or not; unknown, deleted and keyless agents answer like a wrong signature, after the same work.
 */
export type AuthenticateAgent = (
  token: string,
  platformId: string,
  source: string,
) => Promise<AgentPrincipal | AuthRefusal>;

const KEPT_STRIKES = 10_000;

/** Told of an agent for which tokens with wrong signatures have opened a breaker, and of the address they came from. */
export type BreakerOpened = (agent: FactsRow, source: string) => Promise<void>;

/** Specification, Authentication 1 to 3. Keys are parsed once and kept by fingerprint. */
export function agentAuthenticator(broker: Broker, opened: BreakerOpened): AuthenticateAgent {
  const readFacts = factsReader(broker.store);
  const keys = createPublicKeyCache();
  const verifier = createAgentTokenVerifier();

  /** A client that repeats one bad token makes one mistake, not five: only distinct ones count. */
  const struck = new Set<string>();
  const countStrike = async (agent: FactsRow, source: string, signingInput: string): Promise<void> => {
    const seen = sha256Base64url(`${source} ${signingInput}`);
    if (struck.has(seen)) return;
    struck.add(seen);
    if (struck.size > KEPT_STRIKES) struck.delete(struck.values().next().value as string);
    const key = {
      organisation_id: agent.organisation_id,
      agent_id: agent.id,
      cause: 'breaker_auth_failure' as const,
      key: source,
    };
    const now = broker.clock();
    const row = await strike(broker.store.db, key, BREAKER_LIMITS.breaker_auth_failure, now);
    if (row.opened_at === now) await opened(agent, source);
  };

  return async (token, platformId, source) => {
    const parsed = parseAgentToken(token);
    if (!parsed.ok) return { kind: 'refused', code: parsed.code, detail: parsed.detail };
    const rows = await readFacts(parsed.token.claims.agentId, platformId, source);
    const agent = rows[0];
    if (!agent?.public_key_pem || !agent.key_fingerprint || agent.status === 'deleted') {
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
      keys.keyOf(agent.key_fingerprint, agent.public_key_pem),
      { now: broker.clock(), baseUrl: broker.baseUrl },
    );
    if (!verified.ok) {
      if (verified.countsAsStrike) await countStrike(agent, source, parsed.token.signingInput);
      return { kind: 'refused', code: verified.code, detail: verified.detail };
    }
    return { kind: 'agent', rows, agent, source, sessionId: verified.claims.sessionId ?? null };
  };
}
