/** Who asks, as of now: a body may be long on its way, and a request may wait for a person. What was known before it is not what decides. */
import { trustsWorkload } from '../auth/authenticate-workload.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import { reloadPrincipal } from '../calls/reload.ts';
import { Refusal } from './errors.ts';
import type { Context } from './route.ts';

type Asking = Pick<Context<'agent' | 'raw' | 'git' | 'mcp_client'>, 'services' | 'who' | 'stillMay'>;

/** The agent with the facts about a platform. Throws Refusal where it was deleted, or what it came with was replaced or taken away. */
export async function currentPrincipal(asking: Asking, platformId: string): Promise<AgentPrincipal> {
  const who = await reloadPrincipal(asking.services, asking.who, platformId);
  if (who.agent.status === 'deleted' || !(await isTaken(asking, who)))
    throw new Refusal(
      'invalid_token',
      'The key or access of this request ended while it was under way. Use the one that is valid now, or tell the person you work for.',
    );
  return who;
}

/** Whether what the agent came with is taken still. Of what it signed the key alone counts: a token may expire while its request is under way. */
async function isTaken({ services, who, stillMay }: Asking, { agent }: AgentPrincipal): Promise<boolean> {
  if (who.staticKey || who.access) return await stillMay();
  if (who.workload) return await trustsWorkload(services.broker, who);
  return who.signedWith === undefined || who.signedWith === agent.key_fingerprint;
}
