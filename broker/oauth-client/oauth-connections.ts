/**
 * OAuth connections of all kinds of platforms: start, callback, refresh, revocation. The libraries are loaded lazily, so that a
 * broker without such platforms does not pay for them.
 */
import type { Broker } from '../broker.ts';
import { sha256Hex } from '../crypto/canonical.ts';
import { uuidv4 } from '../crypto/ids.ts';
import { mintToken } from '../crypto/one-time-token.ts';
import type { Manifest } from '../platforms/manifest.ts';
import type { Instant } from '../policy/facts.ts';
import { present } from '../runtime/present.ts';
import { findOAuthFlow, putOAuthFlow } from '../store/oauth-flows.ts';
import type { NewTokens, TokenRowPlace } from '../store/oauth-tokens.ts';
import { isOnlyOrganisation } from '../store/organisations.ts';
import type { ConnectionTable, OAuthFlowTable } from '../store/tables/connections.ts';
import { hasDueTokenRevocations } from '../store/token-revocations.ts';
import { lifeOf, writeCredential } from '../token-source/access-token.ts';
import { writeFacts } from './facts.ts';
import { isProblem, type OAuthProblem } from './problem.ts';
import { organisationRedirectUri } from './redirect-uri.ts';
import { type Refreshed, type Refresher, refresher } from './refresh.ts';
import { describedFor, type Registered } from './registered.ts';
import type { Issued, Resolver } from './resolve.ts';
import { makeRevocations, type NotRevoked, type Revocations, type TokensToRevoke } from './revocations.ts';
import { credentialPlace, refreshPlace } from './sealed-tokens.ts';
import type { Steps } from './steps.ts';
import { type Kept, openFlow } from './stored-flow.ts';
import { type HeldTokens, readTokensToRevoke } from './tokens-to-revoke.ts';

const FLOW_MS = 10 * 60_000;

export type ConnectionId = Pick<ConnectionTable, 'organisation_id' | 'id' | 'platform_id'>;

/** The result of a finished flow. */
export type Connected = { tokens: NewTokens; account: string | null; scopes: readonly string[] };

/** A request for authorization: the URL for the browser, the hash of its state, and what to store until the callback. */
export type Authorization = { url: string; stateHash: string; kept: Kept };

export type OAuthConnections = {
  /** Builds an authorization request for a connection. `more`: scopes to request in addition to the manifest's. Stores nothing. */
  authorize(
    connection: ConnectionId,
    manifest: Manifest,
    more: readonly string[],
  ): Promise<Authorization | OAuthProblem>;
  /** Exchanges the code of a callback for tokens, sealed for the row that is to hold them. `by`: who connected, for the audit. */
  obtain(
    connection: ConnectionId,
    manifest: Manifest,
    callback: { kept: Kept; query: URLSearchParams },
    holder: { place: TokenRowPlace; by: string },
  ): Promise<Connected | OAuthProblem>;
  /**
   * Starts an authorization code flow. `sessionId`: the only browser session that may finish the flow; null: any session of this
   * owner. `more`: scopes to request in addition to the manifest's.
   */
  begin(
    connection: ConnectionId,
    manifest: Manifest,
    by: { ownerId: string; sessionId: string | null; more: readonly string[] },
  ): Promise<{ url: string; expiresAt: Instant } | OAuthProblem>;
  /** Returns the flow that a callback belongs to; undefined when no flow is pending at this redirect path. */
  flowOf(path: string, query: URLSearchParams): Promise<OAuthFlowTable | undefined>;
  /** Finishes a flow that the caller has claimed, with its callback. */
  finish(
    flow: OAuthFlowTable,
    connection: ConnectionId,
    manifest: Manifest,
    query: URLSearchParams,
  ): Promise<Connected | OAuthProblem>;
  /** Refreshes the tokens in this row, which an owner or a person gave for the connection. */
  refresh(
    connection: ConnectionId,
    manifest: Manifest,
    holder: TokenRowPlace,
    tokens: Pick<Parameters<Refresher>[0], 'seen' | 'refused'>,
  ): Promise<Refreshed>;
  /**
   * Revokes the tokens in rows of one connection at the servers that issued them; the caller has deleted them here. A server that does not answer is asked
   * again later. Returns the results in the order of the rows, false where the server has no revocation endpoint, or there are no tokens. Rejects only with
   * errors of the store.
   */
  revoke(connection: ConnectionId, manifest: Manifest, rows: readonly HeldTokens[]): Promise<(boolean | NotRevoked)[]>;
  /** Repeats the revocations that are due; loads the libraries only then. */
  retryRevocations(now: Instant): Promise<void>;
};

/** Returns the operations. Sends no request yet. */
export function makeOAuthConnections(
  broker: Pick<Broker, 'baseUrl' | 'clock' | 'instanceId' | 'log' | 'store' | 'vault' | 'outbound'>,
): OAuthConnections {
  type Loaded = { steps: Steps; refresh: Refresher; resolve: Resolver; revocations: Revocations };
  let loaded: Promise<Loaded> | undefined;
  const loadNow = async (): Promise<Loaded> => {
    const [{ serverFinder }, { oauthSteps }, { resolver }] = await Promise.all([
      import('./server.ts'),
      import('./steps.ts'),
      import('./resolve.ts'),
    ]);
    const find = serverFinder(broker);
    const steps = oauthSteps(broker, find);
    const revocations = makeRevocations(broker, steps);
    return { steps, refresh: refresher(broker, steps), resolve: resolver(broker, find), revocations };
  };
  const load = () => {
    loaded ??= loadNow();
    return loaded;
  };
  const registered = async (
    { organisation_id: organisationId, platform_id: platformId, id: connectionId }: ConnectionId,
    manifest: Manifest,
    issued: Issued | undefined,
    options: { isRevoking?: true } = {},
  ): Promise<Registered | OAuthProblem> => {
    const described = await describedFor(broker, { organisationId, platformId, connectionId }, manifest);
    if (isProblem(described)) return described;
    const { resolve } = await load();
    // Revoking does not depend on whether the platform still answers, or names this server: its tokens go back to it.
    const isFound = options.isRevoking && issued && described.discoverAt !== undefined;
    return await resolve(isFound ? { ...described, discoverAt: undefined, issuer: issued.server } : described, issued);
  };
  const authorize: OAuthConnections['authorize'] = async (connection, manifest, more) => {
    const client = await registered(connection, manifest, undefined);
    if (isProblem(client)) return client;
    if (client.redirectUri.isForOneOrganisation && !(await isOnlyOrganisation(broker.store.db)))
      return {
        problem: 'unsuitable',
        detail: `There are several organisations here, so the shared redirect URI is for built-in platforms alone. Register ${organisationRedirectUri(broker.baseUrl, client.organisationId)} at the authorization server of ${client.platformId}, and write redirect_uri: organisation.`,
      };
    const state = mintToken('state');
    const { steps } = await load();
    const scopes = [...new Set([...client.scopes, ...more])];
    const begun = await steps.begin({ ...client, scopes }, { state: state.token.reveal() });
    return isProblem(begun) ? begun : { ...begun, stateHash: state.hash };
  };

  const obtain: OAuthConnections['obtain'] = async (connection, manifest, { kept, query }, { place, by }) => {
    const client = await registered(connection, manifest, { client: kept.clientId, server: kept.server });
    if (isProblem(client)) return client;
    const { steps } = await load();
    const state = query.get('state') ?? '';
    const done = await steps.exchange(client, query, { state, kept });
    if (isProblem(done)) return done;
    const { tokens, account, server } = done;
    const now = broker.clock();
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
        credential: broker.vault.seal(credentialPlace(place), writeCredential(credential)),
        refreshToken: tokens.refreshToken ? broker.vault.seal(refreshPlace(place), tokens.refreshToken.reveal()) : null,
        tokenId: credential.id,
        oauth: writeFacts({
          server,
          client_id: client.clientId,
          account,
          connected_at: now,
          connected_by: by,
          requested: [...kept.scopes],
          refreshed_at: null,
          expires_at: life.expiresAt,
        }),
        // Without requested scopes and without `scope` in the response, the granted scopes are unknown. `scope: ""` means that
        // none were granted.
        upstreamScopes: tokens.scopes === undefined && scopes.length === 0 ? null : JSON.stringify(scopes),
      },
    };
  };

  return {
    authorize,
    obtain,

    begin: async (connection, manifest, { ownerId, sessionId, more }) => {
      const begun = await authorize(connection, manifest, more);
      if (isProblem(begun)) return begun;
      const now = broker.clock();
      const id = uuidv4();
      const organisationId = connection.organisation_id;
      await putOAuthFlow(broker.store.db, {
        state_hash: begun.stateHash,
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
      return found && openFlow(broker, found).redirectUri === broker.baseUrl + path ? found : undefined;
    },

    finish: (flow, connection, manifest, query) => {
      const { organisation_id: organisationId, id } = connection;
      const place = { table: 'connections', organisationId, id } as const;
      return obtain(connection, manifest, { kept: openFlow(broker, flow), query }, { place, by: flow.owner_id });
    },

    refresh: async (connection, manifest, holder, { seen, refused }) => {
      const { refresh } = await load();
      return await refresh({
        place: holder,
        seen,
        refused,
        registered: (issued) => registered(connection, manifest, issued),
      });
    },

    revoke: async (connection, manifest, rows) => {
      const read = await readTokensToRevoke(broker, rows, (issued) =>
        registered(connection, manifest, issued, { isRevoking: true }),
      );
      const toRevoke = read.filter((one): one is TokensToRevoke => one !== false && !isProblem(one));
      const results = toRevoke.length > 0 ? await (await load()).revocations.revoke(toRevoke) : [];
      return read.map((one) => (one === false || isProblem(one) ? one : present(results.shift(), 'result')));
    },

    retryRevocations: async (now) => {
      if (await hasDueTokenRevocations(broker.store.db, now)) await (await load()).revocations.retry(now);
    },
  };
}
