/**
 * OAuth connections of all kinds of platforms: start, callback, refresh, revocation. The libraries are loaded lazily, so that a
 * broker without such platforms does not pay for them.
 */
import type { Broker } from '../broker.ts';
import { sha256Hex } from '../crypto/canonical.ts';
import { uuidv4 } from '../crypto/ids.ts';
import { mintToken } from '../crypto/one-time-token.ts';
import { SealError } from '../crypto/seal.ts';
import { Secret } from '../crypto/secret.ts';
import type { Manifest } from '../platforms/manifest.ts';
import type { Instant } from '../policy/facts.ts';
import { findOAuthFlow, putOAuthFlow } from '../store/oauth-flows.ts';
import type { NewTokens } from '../store/oauth-tokens.ts';
import type { ConnectionTable, OAuthFlowTable } from '../store/schema.ts';
import { lifeOf, readCredential, writeCredential } from '../token-source/access-token.ts';
import { readFacts, writeFacts } from './facts.ts';
import { isProblem, type OAuthProblem } from './problem.ts';
import { type Refreshed, type Refresher, refresher, refreshPlace } from './refresh.ts';
import { describedFor, type Registered } from './registered.ts';
import type { Resolver } from './resolve.ts';
import type { Kept, Steps } from './steps.ts';

const FLOW_MS = 10 * 60_000;

export type ConnectionId = Pick<ConnectionTable, 'organisation_id' | 'id' | 'platform_id'>;

/** The result of a finished flow. */
export type Connected = { tokens: NewTokens; account: string | null; scopes: readonly string[] };

export type OAuthConnections = {
  /**
   * Starts an authorization code flow. `sessionId`: the browser session that alone may finish it; null: any session of this
   * owner. `more`: scopes to request in addition to the manifest's.
   */
  begin(
    connection: ConnectionId,
    manifest: Manifest,
    by: { ownerId: string; sessionId: string | null; more: readonly string[] },
  ): Promise<{ url: string; expiresAt: Instant } | OAuthProblem>;
  /** The flow that a callback belongs to; undefined: no pending flow with this redirect path. */
  flowOf(path: string, query: URLSearchParams): Promise<OAuthFlowTable | undefined>;
  /** Finishes a flow that was just claimed, with its callback. */
  finish(
    flow: OAuthFlowTable,
    connection: ConnectionId,
    manifest: Manifest,
    query: URLSearchParams,
  ): Promise<Connected | OAuthProblem>;
  refresh(
    connection: ConnectionId,
    manifest: Manifest,
    seen: Parameters<Refresher>[0]['seen'],
    refused: boolean,
  ): Promise<Refreshed>;
  /** Revokes the stored tokens at the server. False: it has no revocation endpoint. */
  revoke(connection: ConnectionTable, manifest: Manifest): Promise<boolean | OAuthProblem>;
};

/** Makes it, without any request. */
export function makeOAuthConnections(broker: Broker): OAuthConnections {
  type Loaded = { steps: Steps; refresh: Refresher; resolve: Resolver };
  let loaded: Promise<Loaded> | undefined;
  const loadNow = async (): Promise<Loaded> => {
    const [{ serverFinder }, { oauthSteps }, { resolver }] = await Promise.all([
      import('./server.ts'),
      import('./steps.ts'),
      import('./resolve.ts'),
    ]);
    const find = serverFinder(broker);
    const steps = oauthSteps(broker, find);
    return { steps, refresh: refresher(broker, steps), resolve: resolver(broker, find) };
  };
  const load = () => {
    loaded ??= loadNow();
    return loaded;
  };
  const registered = async (
    { organisation_id: organisationId, platform_id: platformId, id: connectionId }: ConnectionId,
    manifest: Manifest,
    clientId: string | undefined,
  ): Promise<Registered | OAuthProblem> => {
    const described = await describedFor(broker, { organisationId, platformId, connectionId }, manifest);
    if (isProblem(described)) return described;
    return await (await load()).resolve(described, clientId);
  };
  const keptOf = ({ organisation_id: organisationId, id: rowId, flow }: OAuthFlowTable): Kept =>
    JSON.parse(broker.vault.open({ table: 'oauth_flows', organisationId, rowId }, flow).toString('utf8'));

  return {
    begin: async (connection, manifest, { ownerId, sessionId, more }) => {
      const client = await registered(connection, manifest, undefined);
      if (isProblem(client)) return client;
      const state = mintToken('state');
      const { steps } = await load();
      const scopes = [...new Set([...client.scopes, ...more])];
      const begun = await steps.begin({ ...client, scopes }, { state: state.token.reveal() });
      if (isProblem(begun)) return begun;
      const now = broker.clock();
      const id = uuidv4();
      const organisationId = connection.organisation_id;
      await putOAuthFlow(broker.store.db, {
        state_hash: state.hash,
        organisation_id: organisationId,
        id,
        connection_id: connection.id,
        owner_id: ownerId,
        session_id: sessionId,
        flow: broker.vault.seal({ table: 'oauth_flows', organisationId, rowId: id }, JSON.stringify(begun.kept)),
        created_at: now,
        expires_at: now + FLOW_MS,
      });
      return { url: begun.url, expiresAt: now + FLOW_MS };
    },

    flowOf: async (path, query) => {
      const [state, ...more] = query.getAll('state');
      if (state === undefined || more.length > 0) return undefined;
      const found = await findOAuthFlow(broker.store.db, sha256Hex(state), broker.clock());
      return found && keptOf(found).redirectUri === broker.baseUrl + path ? found : undefined;
    },

    finish: async (flow, connection, manifest, query) => {
      const kept = keptOf(flow);
      const client = await registered(connection, manifest, kept.clientId);
      if (isProblem(client)) return client;
      const { steps } = await load();
      const state = query.get('state') ?? '';
      const done = await steps.exchange(client, query, { state, kept });
      if (isProblem(done)) return done;
      const { tokens, account, server } = done;
      const now = broker.clock();
      const { organisation_id: organisationId, id } = connection;
      const life = lifeOf(tokens.life, now);
      const credential = {
        token: tokens.accessToken,
        id: uuidv4(),
        ...life,
        refreshable: tokens.refreshToken !== undefined,
        lapsed: false,
      };
      const scopes = tokens.scopes ?? kept.scopes;
      return {
        account,
        scopes,
        tokens: {
          credential: broker.vault.seal(
            { table: 'connections', organisationId, rowId: id },
            writeCredential(credential),
          ),
          refreshToken: tokens.refreshToken
            ? broker.vault.seal(refreshPlace({ organisationId, id }), tokens.refreshToken.reveal())
            : null,
          tokenId: credential.id,
          oauth: writeFacts({
            server,
            client_id: client.clientId,
            account,
            connected_at: now,
            connected_by: flow.owner_id,
            refreshed_at: null,
            expires_at: life.expiresAt,
          }),
          // Without requested scopes and without `scope` in the response, the granted scopes are unknown. `scope: ""` means that
          // none were granted.
          upstreamScopes: tokens.scopes === undefined && scopes.length === 0 ? null : JSON.stringify(scopes),
        },
      };
    },

    refresh: async (connection, manifest, seen, refused) => {
      const { refresh } = await load();
      return await refresh({
        place: { organisationId: connection.organisation_id, id: connection.id },
        seen,
        refused,
        registered: (clientId) => registered(connection, manifest, clientId),
      });
    },

    revoke: async (connection, manifest) => {
      const facts = readFacts(connection.oauth);
      if (!facts || !connection.credential) return false;
      const client = await registered(connection, manifest, facts.client_id);
      if (isProblem(client)) return client;
      try {
        const { organisation_id: organisationId, id } = connection;
        const opened = (place: Parameters<typeof broker.vault.open>[0], sealed: Uint8Array) =>
          broker.vault.open(place, sealed).toString('utf8');
        const { credential: sealed, refresh_token: sealedRefresh } = connection;
        const access = readCredential(opened({ table: 'connections', organisationId, rowId: id }, sealed))?.token;
        const refresh = sealedRefresh && new Secret(opened(refreshPlace({ organisationId, id }), sealedRefresh));
        // Revoking the refresh token revokes the whole grant (RFC 7009 section 2.1), at servers that implement that.
        const tokens = [refresh, access].filter((token) => token instanceof Secret);
        if (tokens.length === 0) return false;
        const { steps } = await load();
        return await steps.revoke(client, tokens, facts.server);
      } catch (error) {
        if (!(error instanceof SealError)) throw error;
        return { problem: 'failed', detail: 'The stored tokens cannot be opened.' };
      }
    },
  };
}
