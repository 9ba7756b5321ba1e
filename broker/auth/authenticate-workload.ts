/**
 * Authenticates agents without a key by a token that the platform they run on issues for them. Such a token is valid until it expires, and not for a
 * single request, so it is weaker than a signature; but no long-lived secret is stored on a disk.
 */
import type { Broker } from '../broker.ts';
import { AGENT_ID_PATTERN } from '../crypto/ids.ts';
import type { NotedUses } from '../runtime/noted-uses.ts';
import { LONG_WAIT_MS } from '../runtime/waits.ts';
import type { FactsReader } from '../store/facts-reader.ts';
import type { Db } from '../store/store.ts';
import { findWorkload } from '../store/workloads.ts';
import { isIssuedElsewhere } from './claimed.ts';
import { audienceBelow, type VerifyIssued } from './issued-token.ts';
import type { AgentPrincipal, AuthenticateAgent, AuthRefusal } from './principal.ts';

/** The `aud` of the tokens of an agent's workload; the only allowed value. */
export const audienceOfAgent = (baseUrl: string, agentId: string): string => `${baseUrl}/agents/${agentId}`;

/** Returns the agent (`agt_…`) whose workload a token claims to be, by its audience. Unverified. */
export function claimedWorkload(baseUrl: string, token: string): string | undefined {
  const agentId = audienceBelow(audienceOfAgent(baseUrl, ''), token);
  return agentId !== undefined && AGENT_ID_PATTERN.test(agentId) ? agentId : undefined;
}

/**
 * Returns the refusal of a token that another party issued with another audience than that of a workload, often its default one; undefined for other
 * tokens. What such a token lacks as one that an agent signed would mislead.
 */
export const refuseOtherAudience = (baseUrl: string, token: string): AuthRefusal | undefined =>
  isIssuedElsewhere(baseUrl, token)
    ? refused(
        `The token has no claim agent_id, as tokens that agents sign do, and its audience (aud) is not that of an agent's workload: it has to be ${audienceOfAgent(baseUrl, 'agt_…')} with the id of the agent, and nothing else.`,
      )
    : undefined;

/** Whether an agent that authenticated by a token of its workload still trusts that workload; true for other agents. */
export async function trustsWorkload(db: Db, who: AgentPrincipal): Promise<boolean> {
  return who.workload === undefined || (await findWorkload(db, who.agent.agent_id))?.id === who.workload.id;
}

/**
 * Returns the authenticator. The agent's trusted workload is read for each request, so that its removal takes effect at the next request, on every
 * replica. Whether the agent is halted is decided afterwards, as for its signed tokens. `uses`: records that the workload was used.
 */
export function workloadAuthenticator(
  broker: Pick<Broker, 'baseUrl' | 'store'>,
  verify: VerifyIssued,
  facts: FactsReader,
  uses: NotedUses,
): AuthenticateAgent {
  const authenticate: AuthenticateAgent = async (token, platform, source) => {
    const agentId = claimedWorkload(broker.baseUrl, token) ?? '';
    const workload = agentId === '' ? undefined : await findWorkload(broker.store.db, agentId);
    const verified = await verify(token, workload, 'agent');
    if (verified.kind === 'unavailable')
      return refused('The keys of the issuer cannot be fetched at the moment. Try again shortly.');
    if (verified.kind === 'refused') return verified;
    const began = performance.now();
    const platformId = typeof platform === 'string' ? platform : await platform();
    // Reading a body may take long, and the trusted workload may have changed meanwhile.
    if (performance.now() - began > LONG_WAIT_MS) return await authenticate(token, platformId, source);
    const rows = await facts(agentId, platformId, source);
    const [agent] = rows;
    if (!workload || !agent || agent.status === 'deleted') return refused('This agent no longer exists.');
    uses.note(workload.id);
    return { kind: 'agent', rows, agent, source, sessionId: null, workload: { id: workload.id } };
  };
  return authenticate;
}

const refused = (detail: string): AuthRefusal => ({ kind: 'refused', code: 'invalid_token', detail });
