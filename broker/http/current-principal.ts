/** Authenticates again during a request: receiving a body, or waiting for a person, may take long, and decisions use current facts only. */
import { trustsWorkload } from '../auth/authenticate-workload.ts';
import type { AgentPrincipal } from '../auth/principal.ts';
import { reloadPrincipal } from '../calls/reload.ts';
import { Refusal } from './errors.ts';
import type { Context } from './route.ts';

type Asking = Pick<Context<'agent' | 'raw' | 'git' | 'mcp_client'>, 'services' | 'who' | 'stillMay'>;

/** Returns the agent with the facts about a platform. Throws Refusal when the agent was deleted, or when its credential was replaced or revoked. */
export async function currentPrincipal(asking: Asking, platformId: string): Promise<AgentPrincipal> {
  const who = await reloadPrincipal(asking.services, asking.who, platformId);
  if (who.agent.status === 'deleted' || !(await isTaken(asking, who))) throw credentialEnded();
  return who;
}

export const credentialEnded = () =>
  new Refusal(
    'invalid_token',
    'The key or access of this request was ended while the request was in progress. Use the one that is valid now, or tell the person you work for.',
  );

/** Whether the agent's credential is still accepted. For a signed token only the key counts: the token itself may expire while its request runs. */
async function isTaken({ services, who, stillMay }: Asking, { agent }: AgentPrincipal): Promise<boolean> {
  if (who.staticKey || who.access) return await stillMay();
  if (who.workload) return await trustsWorkload(services.broker.store.db, who);
  return who.signedWith === undefined || who.signedWith === agent.key_fingerprint;
}
