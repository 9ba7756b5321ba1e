import type { KeyObject } from 'node:crypto';
import { type Broker, didOfAgent, workloadIdOf } from '../broker.ts';
import { createPublicKeyCache } from '../crypto/public-key.ts';
import { present } from '../runtime/present.ts';
import { recentlyUsed } from '../runtime/recently-used.ts';
import type { FactsRow } from '../store/facts-columns.ts';
import type { factsReaders } from '../store/facts-reader.ts';
import { type ParsedAgentToken, parseAgentToken, type RefusedAgentToken } from './agent-token.ts';
import { childAuthenticator, type EndLifetime } from './authenticate-child.ts';
import { claimedWorkload, refuseOtherAudience } from './authenticate-workload.ts';
import { kindOf } from './bearer.ts';
import { claimsOf } from './claimed.ts';
import type { AuthenticateAgent, AuthRefusal } from './principal.ts';
import { type BreakerOpened, countStrikes } from './strikes.ts';
import { createAgentTokenVerifier } from './verify-agent-token.ts';

/** Whether a bearer claims to be an agent's: signed by the agent, of a child, or of its workload. Unverified. */
export const claimsAgent = (baseUrl: string, bearer: string): boolean =>
  kindOf(bearer) === 'child' ||
  typeof claimsOf(bearer).agent_id === 'string' ||
  claimedWorkload(baseUrl, bearer) !== undefined;

/** Callbacks for side effects of authentication. */
export type Noticed = { breakerOpened: BreakerOpened; endLifetime: EndLifetime };

/** Equal to the size of the cache of parsed public keys. */
const CACHED_KEYS = 10_000;

type WithKey = FactsRow & { public_key_pem: string; key_fingerprint: string };

const hasKey = (agent: FactsRow): agent is WithKey =>
  Boolean(agent.public_key_pem && agent.key_fingerprint) && agent.status !== 'deleted';

/** Returns the authenticator for all of an agent's own bearers (specification, Authentication 1 to 4). Parsed keys are cached by fingerprint. */
export function agentAuthenticator(
  broker: Pick<Broker, 'baseUrl' | 'did' | 'clock' | 'store' | 'keys'>,
  facts: ReturnType<typeof factsReaders>,
  { breakerOpened, endLifetime }: Noticed,
  authenticateWorkload: AuthenticateAgent,
): AuthenticateAgent {
  const readFacts = facts.own;
  const keys = createPublicKeyCache();
  const keyOf = (agent: WithKey): KeyObject => keys.keyOf(agent.key_fingerprint, agent.public_key_pem);
  const verifier = createAgentTokenVerifier();
  const countStrike = countStrikes(broker, breakerOpened);
  const authenticateChild = childAuthenticator(broker, facts.family, countStrike, endLifetime);

  /** The last known key of each agent. For a token signed with it, the request's body is parsed before the facts are read; the facts then decide. */
  const lastKeys = recentlyUsed<KeyObject>(CACHED_KEYS);

  /** Returns why the token is refused, after counting a strike if it counts as one; undefined when the token is the agent's. */
  const refuse = async (token: ParsedAgentToken, agent: FactsRow | undefined, source: string) => {
    if (!agent || !hasKey(agent)) return refused(verifier.refuseUnknown(token));
    const key = keyOf(agent);
    if (lastKeys.get(agent.agent_id) !== key) lastKeys.set(agent.agent_id, key);
    const verified = verifier.verify(
      token,
      {
        agentId: agent.agent_id,
        ownerIds: agent.former_owners === null ? [agent.owner_id] : [agent.owner_id, ...agent.former_owners.split(' ')],
        fingerprint: agent.key_fingerprint,
        acceptedSubjects: token.claims.subject
          ? [
              agent.agent_id,
              didOfAgent(broker, agent.agent_id),
              workloadIdOf(broker.baseUrl, agent.organisation_id, agent.agent_id),
            ]
          : [],
      },
      key,
      { now: broker.clock(), baseUrl: broker.baseUrl },
    );
    if (verified.ok) return undefined;
    if (verified.countsAsStrike) await countStrike(agent, source);
    return refused(verified);
  };

  return async (bearer, platform, source) => {
    if (kindOf(bearer) === 'child') return await authenticateChild(bearer, platform, source);
    const parsed = parseAgentToken(bearer);
    if (!parsed.ok)
      return claimedWorkload(broker.baseUrl, bearer) === undefined
        ? (refuseOtherAudience(broker.baseUrl, bearer) ?? refused(parsed))
        : await authenticateWorkload(bearer, platform, source);
    const { token } = parsed;
    const { agentId } = token.claims;
    if (typeof platform !== 'string') {
      const key = lastKeys.get(agentId);
      if (!key || !verifier.prepare(token, key)) {
        const [agent] = await readFacts(agentId, '', source);
        const refusal = await refuse(token, agent, source);
        if (refusal) return refusal;
      }
    }
    const platformId = typeof platform === 'string' ? platform : await platform();
    const rows = await readFacts(agentId, platformId, source, ([likely]) => {
      if (likely && hasKey(likely)) verifier.prepare(token, keyOf(likely));
    });
    const refusal = await refuse(token, rows[0], source);
    if (refusal) return refusal;
    const agent = present(rows[0], 'agent');
    const signedWith = present(agent.key_fingerprint, 'key');
    return { kind: 'agent', rows, agent, source, sessionId: token.claims.sessionId ?? null, signedWith };
  };
}

const refused = ({ code, detail }: RefusedAgentToken): AuthRefusal => ({ kind: 'refused', code, detail });
