/** What a governed call takes of the process that makes it. */
import type { Changing } from '../audit/record-change.ts';
import type { Uses } from '../broker.ts';
import type { CallBudget } from '../egress/call-budget.ts';
import type { FactsLoader } from '../facts/facts.ts';
import type { OAuthConnections } from '../oauth-client/oauth-connections.ts';
import type { People } from '../people/people.ts';
import type { LongBodies } from '../runtime/long-bodies.ts';
import type { NotedUses } from '../runtime/noted-uses.ts';
import type { FactsReader } from '../store/facts-reader.ts';
import type { KeysToRelease } from '../store/keys-to-release.ts';
import type { IssuedTokens } from '../token-source/issued-tokens.ts';
import type { Credentials } from './credentials.ts';
import type { AgentDeeds } from './deeds.ts';
import type { EarlierCalls } from './earlier-calls.ts';
import type { McpSessions } from './mcp-sessions.ts';
import type { FreshRefusals } from './token-renewal.ts';
import type { ToolChecks } from './tool-checks.ts';

export type CallServices = Changing &
  Uses<'config' | 'did' | 'keysRestoredAt' | 'metrics' | 'tracing' | 'vault' | 'keys' | 'outbound'> & {
    /** Facts that no token asks for: of replays, and of questions about another; of any agent, children included. */
    facts: FactsReader;
    /** Calls at once, and bytes of their answers. */
    budget: CallBudget;
    loadFacts: FactsLoader;
    credentials: Credentials;
    /** What agents did before. */
    deeds: AgentDeeds;
    /** Calls that rules look back at. */
    earlierCalls: EarlierCalls;
    keysToRelease: KeysToRelease;
    longBodies: LongBodies;
    freshRefusals: FreshRefusals;
    /** Session and protocol version of each MCP server. */
    mcpSessions: McpSessions;
    toolChecks: ToolChecks;
    /** Connections that a person makes at the platform's authorization server. */
    oauth: OAuthConnections;
    /** For whom calls are made, where a platform holds one token per person. */
    people: People;
    /** When tokens of people were used last. */
    tokenUses: NotedUses;
    /** Tokens that are got without a person: of Apps, clients and service accounts. */
    issuedTokens: IssuedTokens;
  };
