/** What the tools need of a broker. */
import type { AgentClient } from '../client/agent-client.ts';

/** `agentClient` makes one over any way to send. */
export type ToolClient = Pick<AgentClient, 'call' | 'approval' | 'permissions' | 'requestAccess' | 'accessRequest'>;
