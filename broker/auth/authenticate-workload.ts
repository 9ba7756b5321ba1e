/**
 * Authenticates agents that keep no key: by a token that the platform on which they run issues for them, in place of one that they sign. It is good until
 * it expires, and not for one request, so it is weaker than a signature; and nothing of it lies on a disk for years.
 */
import type { Broker } from '../broker.ts';
import { AGENT_ID_PATTERN } from '../crypto/ids.ts';
import type { NotedUses } from '../runtime/noted-uses.ts';
import { LONG_WAIT_MS } from '../runtime/waits.ts';
import type { FactsReader } from '../store/facts-reader.ts';
import { findWorkload } from '../store/workloads.ts';
import { audienceBelow, type VerifyIssued } from './issued-token.ts';
import type { AgentPrincipal, AskedPlatform, AuthRefusal } from './principal.ts';

export type AuthenticateWorkload = (
  token: string,
  platform: AskedPlatform,
  source: string,
) => Promise<AgentPrincipal | AuthRefusal>;

/** What stands in `aud` of the tokens of an agent's workload, alone. */
export const audienceOfAgent = (baseUrl: string, agentId: string): string => `${baseUrl}/agents/${agentId}`;

/** The agent (`agt_…`) whose workload a token claims to be, by its audience. Unverified. */
export function claimedWorkload(baseUrl: string, token: string): string | undefined {
  const agentId = audienceBelow(audienceOfAgent(baseUrl, ''), token);
  return agentId !== undefined && AGENT_ID_PATTERN.test(agentId) ? agentId : undefined;
}

/** Whether an agent that came by a token of its workload still trusts that workload; of any other true. */
export async function trustsWorkload({ store }: Pick<Broker, 'store'>, who: AgentPrincipal): Promise<boolean> {
  return who.workload === undefined || (await findWorkload(store.db, who.agent.agent_id))?.id === who.workload.id;
}

/**
 * Makes it. What an agent trusts is read for each request, so that it is refused at the very next one when that was taken away, on every replica. What
 * halts the agent is decided afterwards, as for its signed tokens. `uses`: notes that it is used.
 */
export function workloadAuthenticator(
  broker: Pick<Broker, 'baseUrl' | 'store'>,
  verify: VerifyIssued,
  facts: FactsReader,
  uses: NotedUses,
): AuthenticateWorkload {
  const authenticate: AuthenticateWorkload = async (token, platform, source) => {
    const agentId = claimedWorkload(broker.baseUrl, token) ?? '';
    const workload = agentId === '' ? undefined : await findWorkload(broker.store.db, agentId);
    const verified = await verify(token, workload, 'agent');
    if (verified.kind === 'unavailable')
      return refused('The keys of the issuer cannot be fetched just now. Try again shortly.');
    if (verified.kind === 'refused') return verified;
    const began = performance.now();
    const platformId = typeof platform === 'string' ? platform : await platform();
    // A body may be long on its way, and what the agent trusted before it is not what decides.
    if (performance.now() - began > LONG_WAIT_MS) return await authenticate(token, platformId, source);
    const rows = await facts(agentId, platformId, source);
    const [agent] = rows;
    if (!workload || !agent || agent.status === 'deleted') return refused('There is no such agent any more.');
    uses.note(workload.id);
    return { kind: 'agent', rows, agent, source, sessionId: null, workload: { id: workload.id } };
  };
  return authenticate;
}

const refused = (detail: string): AuthRefusal => ({ kind: 'refused', code: 'invalid_token', detail });
