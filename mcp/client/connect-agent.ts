/**
 * `agent-broker/client`: a typed client of the broker for agents.
 *
 *     const broker = connectAgent({ url: 'https://broker.example', agentId, ownerId, privateKey });
 *     const outcome = await broker.call({ platform: 'crm', endpoint: '/contacts', method: 'GET', scope: 'crm:contacts.read' });
 */
import { type AgentClient, agentClient } from './agent-client.ts';
import { signedSend } from './signed-send.ts';
import { type AgentKey, agentSigner } from './signer.ts';

export type * from './action.ts';
export type * from './agent-client.ts';
export type * from './agent-records.ts';
export type { Approval, ApprovedResult, Corrected } from './approval.ts';
export { isSettled } from './approval.ts';
export { BrokerError } from './broker-error.ts';
export type * from './permissions.ts';
export type { AccessRequest, AccessStatus, Answer, ConsentStatus, StartedConsent } from './read-answers.ts';
export { type AgentKey, AgentKeyError } from './signer.ts';

/** `url`: address of the broker. Either an agent with a key of its own, or a child with its issued token and session. */
export type Connection = { url: string } & (AgentKey | { bearer: string; session?: string | undefined });

/** Throws AgentKeyError when the key cannot sign, TypeError when `url` is invalid. Sends nothing yet. */
export function connectAgent(connection: Connection): AgentClient {
  const url = connection.url.replace(/\/+$/, '');
  if (!('bearer' in connection)) return agentClient(signedSend({ url, token: agentSigner(connection) }));
  const { bearer, session } = connection;
  const headers = session === undefined ? {} : { 'x-svc-session': session };
  return agentClient(signedSend({ url, token: () => bearer, headers }));
}
