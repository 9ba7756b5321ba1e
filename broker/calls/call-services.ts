/** The services that a governed call uses. */
import type { Changing } from '../audit/record-change.ts';
import type { Uses } from '../broker.ts';
import type { CallBudget } from '../egress/call-budget.ts';
import type { FactsLoader } from '../facts/facts.ts';
import type { OAuthConnections } from '../oauth-client/oauth-connections.ts';
import type { People } from '../people/people.ts';
import type { LongBodies } from '../runtime/long-bodies.ts';
import type { NotedUses } from '../runtime/noted-uses.ts';
import type { MeasuredWork } from '../runtime/pace.ts';
import type { FactsReader } from '../store/facts-reader.ts';
import type { KeysToRelease } from '../store/keys-to-release.ts';
import type { IssuedTokens } from '../token-source/issued-tokens.ts';
import type { Credentials } from './credentials.ts';
import type { EarlierCalls } from './earlier-calls.ts';
import type { McpSessions } from './mcp/sessions.ts';
import type { ToolChecks } from './mcp/tool-checks.ts';
import type { AgentSeenValues } from './seen-values.ts';
import type { FreshRefusals } from './token-renewal.ts';

export type CallServices = Changing &
  Uses<'config' | 'did' | 'keysRestoredAt' | 'metrics' | 'tracing' | 'vault' | 'keys' | 'outbound'> & {
    /** Reads facts by agent id instead of by token: for replays, and for questions about another agent, children included. */
    facts: FactsReader;
    /** Limits concurrent calls and the bytes of their answers. */
    budget: CallBudget;
    loadFacts: FactsLoader;
    credentials: Credentials;
    /** What agents did before, for `first_time` rules. */
    seenValues: AgentSeenValues;
    /** Calls that rules look back at. */
    earlierCalls: EarlierCalls;
    keysToRelease: KeysToRelease;
    longBodies: LongBodies;
    /** Runs decisions: a condition may take tens of milliseconds. */
    decisions: MeasuredWork;
    freshRefusals: FreshRefusals;
    /** Session and protocol version of each MCP server, per credential and agent. */
    mcpSessions: McpSessions;
    toolChecks: ToolChecks;
    /** Connections that a person makes at the platform's authorization server. */
    oauth: OAuthConnections;
    /** People for whom calls are made, on platforms with one token per person. */
    people: People;
    /** When each person's tokens were last used. */
    tokenUses: NotedUses;
    /** Tokens issued without a person: for Apps, OAuth clients and service accounts. */
    issuedTokens: IssuedTokens;
  };
