/** What every door to a decision needs: the broker, and what the rooms around calls keep for a process. */
import { type ApprovalChanges, makeApprovalChanges } from '../approvals/changes.ts';
import { type InboxFeed, makeInboxFeed } from '../approvals/inbox.ts';
import { type AuthenticateAgent, agentAuthenticator } from '../auth/authenticate-agent.ts';
import { type AuthenticateMcpClient, mcpClientAuthenticator } from '../auth/authenticate-mcp-client.ts';
import { type AuthenticateOwner, ownerAuthenticator } from '../auth/authenticate-owner.ts';
import { type IdentityProvider, makeIdentityProvider } from '../auth/identity-provider.ts';
import { type LocalCredential, makeLocalCredential } from '../auth/owner-session.ts';
import type { Broker } from '../broker.ts';
import { makeOAuthConnections, type OAuthConnections } from '../oauth-client/oauth-connections.ts';
import { mcpResource } from '../oauth-server/metadata.ts';
import { type AuthorizationServer, makeAuthorizationServer } from '../oauth-server/server.ts';
import { type FactsReader, factsReaders } from '../store/facts-reader.ts';
import { type PublishedReader, publishedReader } from '../store/published-agents.ts';
import { noteBreaker } from './breakers.ts';
import { endLifetime } from './child-end.ts';
import { type Compiled, compiledGovernance } from './compiled.ts';
import { type FactsLoader, factsLoader } from './facts.ts';
import { type Credentials, credentialOpener } from './forward.ts';
import { type FreshRefusals, freshRefusals } from './fresh-refusals.ts';
import { type Lab, makeLab } from './lab.ts';
import { type McpManners, mcpManners } from './mcp-manners.ts';
import { type PermissionsReader, permissionsReader } from './permissions.ts';
import { makeReadiness, type Readiness } from './readiness.ts';
import { makeRecorder, type Recorder } from './record.ts';
import { makeReplays, type Replays } from './replay.ts';
import { type ToolLooks, toolLooks } from './tool-looks.ts';

export type Governor = {
  broker: Broker;
  compiled: Compiled;
  loadFacts: FactsLoader;
  credentials: Credentials;
  freshRefusals: FreshRefusals;
  /** How MCP servers are spoken to. */
  manners: McpManners;
  toolLooks: ToolLooks;
  permissions: PermissionsReader;
  recorder: Recorder;
  readiness: Readiness;
  /** News of held calls. */
  changes: ApprovalChanges;
  /** How much waits for the owners of an organisation. */
  inbox: InboxFeed;
  replays: Replays;
  authenticateAgent: AuthenticateAgent;
  authenticateOwner: AuthenticateOwner;
  authenticateMcpClient: AuthenticateMcpClient;
  /** Where owners sign in; undefined: here, by links. */
  provider: IdentityProvider | undefined;
  /** Connections that a person makes at the platform's authorization server. */
  oauth: OAuthConnections;
  /** Facts that no token asks for: of replays, and of questions about another; of any agent, children included. */
  facts: FactsReader;
  /** Whether strangers may be told of an agent. */
  published: PublishedReader;
  local: LocalCredential;
  /** Tokens for MCP clients. */
  authorization: AuthorizationServer;
  /** The MCP server to try things out on. */
  lab: Lab;
};

export function makeGovernor(broker: Broker): Governor {
  const compiled = compiledGovernance(broker);
  const provider = makeIdentityProvider(broker);
  const changes = makeApprovalChanges(broker);
  const readers = factsReaders(broker.store);
  const recorder = makeRecorder(broker);
  const governor: Governor = {
    broker,
    compiled,
    loadFacts: factsLoader(compiled),
    credentials: credentialOpener(broker),
    freshRefusals: freshRefusals(),
    manners: mcpManners(),
    toolLooks: toolLooks(),
    permissions: permissionsReader(),
    recorder,
    readiness: makeReadiness(broker, recorder),
    changes,
    inbox: makeInboxFeed(broker, changes),
    replays: makeReplays(() => governor),
    authenticateAgent: agentAuthenticator(broker, readers, {
      breakerOpened: (agent, key) =>
        noteBreaker(governor, 'breaker_opened', agent, { cause: 'breaker_auth_failure', key }),
      endLifetime: (child) => endLifetime(governor, child),
    }),
    authenticateOwner: ownerAuthenticator(broker, provider),
    authenticateMcpClient: mcpClientAuthenticator(broker, readers.family, mcpResource(broker)),
    provider,
    facts: readers.family,
    oauth: makeOAuthConnections(broker),
    published: publishedReader(broker.store),
    local: makeLocalCredential(),
    authorization: makeAuthorizationServer(broker),
    lab: makeLab(broker.clock),
  };
  return governor;
}
