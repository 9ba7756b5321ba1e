/** The part of the client that the tools use. */
import type { AgentClient } from '../client/agent-client.ts';

/** `agentClient` makes such a client on top of any transport. */
export type ToolClient = Pick<
  AgentClient,
  'call' | 'approval' | 'startConsent' | 'consent' | 'permissions' | 'requestAccess' | 'accessRequest'
>;
