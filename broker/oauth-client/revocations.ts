/**
 * Revokes tokens that are deleted here at the server that issued them (RFC 7009). What a server did not accept is stored, with all that the request needs,
 * and repeated: the connection, its platform and the broker's client there may not exist any more.
 */
import { z } from 'zod';
import type { Broker } from '../broker.ts';
import { uuidv4 } from '../crypto/ids.ts';
import { SealError } from '../crypto/seal.ts';
import { Secret } from '../crypto/secret.ts';
import type { Instant } from '../policy/facts.ts';
import { inTurns } from '../runtime/in-turns.ts';
import { readStored } from '../store/stored-json.ts';
import type { TokenRevocationTable } from '../store/tables/connections.ts';
import {
  claimTokenRevocations,
  delayTokenRevocation,
  deleteTokenRevocation,
  factsOfSuccessors,
  putTokenRevocations,
} from '../store/token-revocations.ts';
import { isOtherAccount, type OAuthConnectionFacts, readFacts } from './facts.ts';
import type { OAuthProblem } from './problem.ts';
import type { Registered } from './registered.ts';
import type { RevokingClient, Steps } from './steps.ts';

/** `retriedUntil`: the broker repeats the request until then, or until the server accepts it. */
export type NotRevoked = OAuthProblem & { retriedUntil?: Instant };

/** Tokens that are deleted here, the client that they were issued to, and what was stored about them. `personId` null: of a connection. */
export type TokensToRevoke = {
  client: Registered;
  tokens: readonly Secret[];
  facts: OAuthConnectionFacts;
  personId: string | null;
};

export type Revocations = {
  /**
   * Revokes tokens at the servers that issued them; they are sent to no other. All requests are stored before the first is sent. Returns the results in
   * the same order; never rejects because of a server. False: it has no revocation endpoint.
   */
  revoke(all: readonly TokensToRevoke[]): Promise<(boolean | NotRevoked)[]>;
  /** Repeats the requests that are due. Never rejects because of a server. */
  retry(now: Instant): Promise<void>;
};

/** As long as a platform may be down over a weekend. */
const RETRIED_FOR_MS = 3 * 24 * 3600 * 1000;
const MIN_PAUSE_MS = 60_000;
const MAX_PAUSE_MS = 3600 * 1000;
/** Longer than an attempt: two requests, after the discovery of the server, each with a timeout. */
const CLAIM_MS = 5 * 60_000;
const CLAIMED_ROWS = 50;
/** Limits the wait: an unreachable server must not delay an owner once per person. What was not begun is sent with the retries. */
const TIMEOUT = { concurrency: 8, timeoutMs: 20_000 };
const NOT_ASKED = { problem: 'unreachable', detail: 'The authorization server was not asked yet.' } as const;

const StoredRequest = z.object({
  platformId: z.string(),
  issuer: z.string().optional(),
  endpoints: z.object({
    authorization_endpoint: z.string().optional(),
    token_endpoint: z.string().optional(),
    revocation_endpoint: z.string().optional(),
  }),
  isMcp: z.boolean(),
  clientId: z.string(),
  clientSecret: z.string().optional(),
  authMethod: z.enum(['client_secret_basic', 'client_secret_post']).optional(),
  tokens: z.array(z.string()),
  server: z.string(),
  account: z.string().nullable(),
});

/** Errors of a server that end by themselves (RFC 6749 section 4.1.2.1). Others are the same at each attempt. */
const PASSING = new Set(['server_error', 'temporarily_unavailable']);

const isWorthRetrying = ({ problem, error }: OAuthProblem): boolean =>
  problem === 'unreachable' || (problem === 'failed' && (error === undefined || PASSING.has(error)));

export function makeRevocations(
  broker: Pick<Broker, 'clock' | 'log' | 'store' | 'vault'>,
  steps: Pick<Steps, 'revoke'>,
): Revocations {
  const { clock, log, vault } = broker;
  const { db } = broker.store;
  const placeOf = ({
    organisation_id: organisationId,
    id: rowId,
  }: Pick<TokenRevocationTable, 'organisation_id' | 'id'>) =>
    ({ table: 'token_revocations', organisationId, rowId }) as const;

  const attempt = async (row: TokenRevocationTable): Promise<void> => {
    const { client, tokens, server, account } = readRequest(vault.open(placeOf(row), row.request).toString('utf8'));
    const where = { connection: row.connection_id, platform: client.platformId };
    // At some servers, revoking a token of an account ends its other tokens, too.
    const isConnectedAgain = (await factsOfSuccessors(db, row)).some((text) => {
      const now = readFacts(text);
      return now?.server === server && now.client_id === client.clientId && !isOtherAccount(account, now.account);
    });
    if (isConnectedAgain) {
      await deleteTokenRevocation(db, row);
      log.info(where, 'earlier tokens of the same account are not revoked: that could end its new tokens');
      return;
    }
    const done = await steps.revoke(client, tokens, server);
    const now = clock();
    const end = row.created_at + RETRIED_FOR_MS;
    if (typeof done === 'object' && isWorthRetrying(done) && now < end) {
      const pause = Math.min(Math.max(now - row.created_at, MIN_PAUSE_MS), MAX_PAUSE_MS);
      return await delayTokenRevocation(db, row, Math.min(now + pause, end));
    }
    await deleteTokenRevocation(db, row);
    if (done === true) log.info(where, 'tokens were revoked at their server after all');
    else
      log.warn(
        { ...where, security: true, detail: done ? done.detail : 'The server has no revocation endpoint.' },
        'tokens were not revoked at their server, and the broker does not try again: end the access at the platform',
      );
  };

  return {
    revoke: async (all) => {
      const now = clock();
      const requests = all.map((given) => {
        const row = { organisation_id: given.client.organisationId, id: uuidv4() };
        return { given, row, result: { ...NOT_ASKED, retriedUntil: now + RETRIED_FOR_MS } as boolean | NotRevoked };
      });
      // Before the first request is sent, so that all are repeated also when this process is killed while a server does not answer.
      await putTokenRevocations(
        db,
        requests.map(({ given, row }) => ({
          ...row,
          connection_id: given.client.connectionId,
          person_id: given.personId,
          request: vault.seal(placeOf(row), writeRequest(given)),
          created_at: now,
          next_at: now + CLAIM_MS,
        })),
      );
      await inTurns(requests, TIMEOUT, async (request) => {
        const { client, tokens, facts } = request.given;
        const done = await steps.revoke(client, tokens, facts.server);
        const isRetried = typeof done === 'object' && isWorthRetrying(done);
        request.result = isRetried ? { ...done, retriedUntil: now + RETRIED_FOR_MS } : done;
        if (isRetried) await delayTokenRevocation(db, request.row, clock() + MIN_PAUSE_MS);
        else await deleteTokenRevocation(db, request.row);
      });
      return requests.map(({ result }) => result);
    },

    retry: async (now) => {
      const rows = await claimTokenRevocations(db, { now, until: now + CLAIM_MS, limit: CLAIMED_ROWS });
      await inTurns(rows, TIMEOUT, async (row) => {
        try {
          await attempt(row);
        } catch (error) {
          if (!(error instanceof SealError)) throw error;
          log.error({ err: error, security: true, connection: row.connection_id }, 'tokens to revoke cannot be opened');
          await deleteTokenRevocation(db, row);
        }
      });
    },
  };
}

function writeRequest({ client, tokens, facts }: TokensToRevoke): string {
  const { platformId, issuer, endpoints, isMcp, clientId, clientSecret, serverOptions } = client;
  const request: z.input<typeof StoredRequest> = {
    platformId,
    issuer,
    endpoints,
    isMcp,
    clientId,
    clientSecret: clientSecret?.reveal(),
    authMethod: serverOptions.token_endpoint_auth_method,
    tokens: tokens.map((token) => token.reveal()),
    server: facts.server,
    account: facts.account,
  };
  return JSON.stringify(request);
}

function readRequest(text: string): {
  client: RevokingClient;
  tokens: Secret[];
  server: string;
  account: string | null;
} {
  const { clientSecret, authMethod, tokens, server, account, issuer, ...client } = readStored(
    StoredRequest,
    text,
    'request to revoke tokens',
  );
  return {
    client: {
      ...client,
      issuer,
      clientSecret: clientSecret === undefined ? undefined : new Secret(clientSecret),
      serverOptions: authMethod === undefined ? {} : { token_endpoint_auth_method: authMethod },
    },
    tokens: tokens.map((token) => new Secret(token)),
    server,
    account,
  };
}
