/**
 * Composition root: creates everything that a process keeps and that routes pass to use cases. Only entry points (HTTP, MCP) take the whole of it.
 */

import { join } from 'node:path';
import { type StatsReader, statsReader } from './admin/activity/stats-reader.ts';
import { endLifetime } from './admin/agents/end-lifetime.ts';
import { type Demo, makeDemo } from './admin/organisations/demo.ts';
import { type InboxFeed, makeInboxFeed } from './approvals/inbox.ts';
import { makeReplays, type Replays } from './approvals/replay.ts';
import { makeApprovalChanges } from './audit/changes.ts';
import { type Heartbeat, makeHeartbeat } from './audit/heartbeat.ts';
import { makeReadiness, type Readiness } from './audit/readiness.ts';
import { makeRecorder } from './audit/record.ts';
import { agentAuthenticator, type Noticed } from './auth/authenticate-agent.ts';
import { type AuthenticateMcpClient, mcpClientAuthenticator } from './auth/authenticate-mcp-client.ts';
import { type AuthenticateOwner, ownerAuthenticator } from './auth/authenticate-owner.ts';
import { type AuthenticatePipeline, pipelineAuthenticator } from './auth/authenticate-pipeline.ts';
import { type AuthenticateStaticKey, staticKeyAuthenticator } from './auth/authenticate-static-key.ts';
import { workloadAuthenticator } from './auth/authenticate-workload.ts';
import { type IdentityProvider, makeIdentityProvider } from './auth/identity-provider.ts';
import { issuedTokenVerifier } from './auth/issued-token.ts';
import { type LocalCredential, makeLocalCredential } from './auth/owner-session.ts';
import type { AuthenticateAgent } from './auth/principal.ts';
import type { Broker } from './broker.ts';
import { act } from './calls/act.ts';
import { noteBreaker } from './calls/breakers.ts';
import { holderOf } from './calls/call.ts';
import type { CallServices } from './calls/call-services.ts';
import { credentialOpener } from './calls/credentials.ts';
import { earlierCalls } from './calls/earlier-calls.ts';
import { mcpSessions } from './calls/mcp/sessions.ts';
import { toolChecks } from './calls/mcp/tool-checks.ts';
import { heldRaw } from './calls/raw-request.ts';
import { agentSeenValues } from './calls/seen-values.ts';
import { freshRefusals } from './calls/token-renewal.ts';
import { budgetOf } from './egress/budget-limits.ts';
import { CallBudget } from './egress/call-budget.ts';
import { type Compiled, compiledGovernance } from './facts/compiled.ts';
import { factsLoader } from './facts/facts.ts';
import { type PermissionsReader, permissionsReader } from './facts/permissions.ts';
import { type KeptBodies, keptLimits, makeKeptBodies } from './git/kept-bodies.ts';
import { type Lab, makeLab } from './lab.ts';
import { makeOAuthConnections } from './oauth-client/oauth-connections.ts';
import { mcpResource } from './oauth-server/metadata.ts';
import { type AuthorizationServer, makeAuthorizationServer } from './oauth-server/server.ts';
import { makePeople } from './people/people.ts';
import { personSignIns, type SignIns } from './people/sign-in.ts';
import { type LogHeads, makeLogHeads } from './receipt-log/heads.ts';
import { makeLongBodies } from './runtime/long-bodies.ts';
import { type NotedUses, notedUses } from './runtime/noted-uses.ts';
import { FairSlices, MeasuredWork } from './runtime/pace.ts';
import { factsReaders } from './store/facts-reader.ts';
import { makeKeysToRelease } from './store/keys-to-release.ts';
import { setLastUsed } from './store/person-sessions.ts';
import { type PublishedReader, publishedReader } from './store/published-agents.ts';
import { setStaticKeysUsed } from './store/static-keys.ts';
import { setWorkloadsUsed } from './store/workloads.ts';
import { issuedTokens } from './token-source/issued-tokens.ts';

export type Services = CallServices & {
  broker: Broker;
  /** Sign-ins of people at the issuer of their assertions. */
  signIns: SignIns;
  compiled: Compiled;
  /** Requests of owners are handled one in a turn of the event loop: they have no rate limit, and SQLite reads synchronously. */
  ownersTurns: FairSlices;
  /** Newest checkpoints of receipt logs. */
  logHeads: LogHeads;
  permissions: PermissionsReader;
  heartbeat: Heartbeat;
  readiness: Readiness;
  /** Statistics of an organisation's calls, for charts. */
  activityStats: StatsReader;
  /** Counts of items that wait for the owners of an organisation. */
  inbox: InboxFeed;
  /** Buffered request bodies of git. */
  gitBodies: KeptBodies;
  replays: Replays;
  authenticateAgent: AuthenticateAgent;
  authenticateOwner: AuthenticateOwner;
  authenticatePipeline: AuthenticatePipeline;
  authenticateStaticKey: AuthenticateStaticKey;
  /** When static keys were last used. */
  staticKeyUses: NotedUses;
  /** When workloads of agents were last used. */
  workloadUses: NotedUses;
  authenticateMcpClient: AuthenticateMcpClient;
  /** The identity provider of the owners; undefined: owners sign in here, by links. */
  provider: IdentityProvider | undefined;
  /** Whether an agent's documents are public. */
  published: PublishedReader;
  local: LocalCredential;
  /** Issues tokens for MCP clients. */
  authorization: AuthorizationServer;
  /** The lab's MCP server, for trying things out. */
  lab: Lab;
  /** Calls of the sandbox's agent, which owners can start for a demonstration. */
  demo: Demo;
};

/** `beatMs`: the heartbeat interval; default 5 seconds. */
export function makeServices(broker: Broker, beatMs?: number): Services {
  const compiled = compiledGovernance(broker);
  const loadFacts = factsLoader(compiled);
  const provider = makeIdentityProvider(broker);
  const changes = makeApprovalChanges(broker);
  const readers = factsReaders(broker.store);
  const heartbeat = makeHeartbeat(broker, beatMs);
  const recorder = makeRecorder(broker, heartbeat);
  const changing = { broker, recorder, changes };
  const workloadUses = notedUses(broker.clock, (ids, at) => setWorkloadsUsed(broker.store.db, ids, at));
  const staticKeyUses = notedUses(broker.clock, (ids, at) => setStaticKeysUsed(broker.store.db, ids, at));
  const calls = {
    ...changing,
    facts: readers.family,
    budget: new CallBudget(budgetOf(broker.config.limitFactor)),
    loadFacts,
    credentials: credentialOpener(broker),
    seenValues: agentSeenValues(broker),
    earlierCalls: earlierCalls(broker),
    keysToRelease: makeKeysToRelease(broker.store),
    longBodies: makeLongBodies(),
    decisions: new MeasuredWork(),
    freshRefusals: freshRefusals(),
    mcpSessions: mcpSessions(),
    toolChecks: toolChecks(),
    oauth: makeOAuthConnections(broker),
    people: makePeople(broker),
    tokenUses: notedUses(broker.clock, (ids, at) => setLastUsed(broker.store.db, ids, at)),
    issuedTokens: issuedTokens(broker),
  } satisfies CallServices;
  const verifyIssued = issuedTokenVerifier(broker);
  const noticed = {
    breakerOpened: (agent, key) =>
      noteBreaker(changing, 'breaker_opened', agent, { cause: 'breaker_auth_failure', key }),
    endLifetime: (child) => endLifetime(changing, child),
  } satisfies Noticed;
  const authenticateWorkload = workloadAuthenticator(broker, verifyIssued, readers.own, workloadUses);
  const authenticateAgent = agentAuthenticator(broker, readers, noticed, authenticateWorkload);
  return {
    ...calls,
    signIns: personSignIns(broker),
    compiled,
    logHeads: makeLogHeads(broker),
    permissions: permissionsReader(broker, loadFacts),
    heartbeat,
    readiness: makeReadiness(broker, heartbeat, recorder),
    activityStats: statsReader(broker),
    ownersTurns: new FairSlices(),
    inbox: makeInboxFeed(broker, changes),
    gitBodies: makeKeptBodies(join(broker.config.dataFolder, 'run'), keptLimits(broker.config.gitMaxRequestBytes)),
    replays: makeReplays(calls, async (who, action, { raw, ...options }) => {
      const parsing = calls.longBodies.parsing(holderOf(who));
      return await act(calls, who, action, { ...options, raw: raw && (await heldRaw(action, raw, parsing)) });
    }),
    authenticateAgent,
    authenticateOwner: ownerAuthenticator(broker, provider),
    authenticatePipeline: pipelineAuthenticator(broker, verifyIssued),
    authenticateStaticKey: staticKeyAuthenticator(broker, readers.own, staticKeyUses),
    staticKeyUses,
    workloadUses,
    authenticateMcpClient: mcpClientAuthenticator(broker, readers.family, mcpResource(broker)),
    provider,
    published: publishedReader(broker.store),
    local: makeLocalCredential(),
    authorization: makeAuthorizationServer(broker),
    lab: makeLab(broker.clock),
    demo: makeDemo(calls, authenticateAgent),
  };
}
