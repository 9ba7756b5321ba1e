/** Requests a token from a token endpoint without a person (RFC 6749 §4.4, §5); errors say who can fix them. */
import { z } from 'zod';
import type { Broker } from '../broker.ts';
import { Secret } from '../crypto/secret.ts';
import type { Answer } from '../egress/buffered-exchange.ts';
import { SHORTEST_CREDENTIAL } from '../egress/credential-search/patterns.ts';
import { isHeaderValue } from '../egress/outbound-request.ts';
import type { Instant } from '../policy/facts.ts';
import { lifeOf } from './access-token.ts';
import { jsonOf } from './app-request.ts';
import { type Exchanged, type TokenLife, unavailable } from './exchanged.ts';

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 256 * 1024;
const MAX_TOKEN_LENGTH = 16 * 1024;
/** Upper bound whatever the server says, and the default: a token that is never requested again is never revoked. */
const MAX_LIFETIME_S = 3600;

/** RFC 6749 §5.1. Some servers send the seconds as a string. */
const Issued = z.looseObject({
  access_token: z.string().min(SHORTEST_CREDENTIAL).max(MAX_TOKEN_LENGTH).refine(isHeaderValue),
  token_type: z.string().regex(/^bearer$/i),
  expires_in: z
    .union([
      z.number(),
      z
        .string()
        .regex(/^\d{1,10}$/)
        .transform(Number),
    ])
    .optional(),
});
/** RFC 6749 §5.2. */
const Failed = z.looseObject({ error: z.string() });

/** What an owner can do about the errors of RFC 6749 §5.2 and RFC 7523 §3.1; no other text of the server is repeated. */
const REMEDIES: Readonly<Record<string, string>> = {
  invalid_client: 'The secret of the connection is wrong, or was revoked there. An owner replaces it.',
  invalid_grant:
    'The key of the account was deleted there, the account may not act for the subject, or the clock of the broker is wrong. An owner has to check the account, and to replace the secret of the connection.',
  unauthorized_client:
    'The client is not allowed this grant there, or may not have the scopes. An owner allows it at the platform.',
  invalid_scope: 'It does not issue the scopes that the manifest asks for. An owner corrects auth.scopes.',
  unsupported_grant_type: 'It has no such grant. An owner corrects the auth of the platform.',
  invalid_request:
    'It misses something in the request, or takes the client in another way. An owner corrects auth.parameters, or auth.token_endpoint_auth_method.',
  invalid_target: 'It issues nothing for that resource (RFC 8707). An owner corrects auth.parameters.',
  access_denied: 'It denies the client a token. An owner allows it at the platform.',
};

type Asked = {
  platformId: string;
  connectionId: string;
  tokenEndpoint: string;
  /** Names in lower case. */
  headers?: Readonly<Record<string, string>>;
  form: Readonly<Record<string, string>>;
};

/** Sends one request. The result contains no text of the server but the token, and nothing that was sent. */
export async function askTokenEndpoint(
  { outbound, clock }: Pick<Broker, 'outbound' | 'clock'>,
  { platformId, connectionId, tokenEndpoint, headers = {}, form }: Asked,
): Promise<Exchanged> {
  const answer = await outbound.send({
    url: new URL(tokenEndpoint),
    method: 'POST',
    headers: {
      accept: 'application/json',
      'content-type': 'application/x-www-form-urlencoded',
      'user-agent': 'agent-broker',
      ...headers,
    },
    body: new URLSearchParams(form).toString(),
    // A separate socket that no call shares.
    connectionKey: `${connectionId}/token`,
    totalTimeoutMs: TIMEOUT_MS,
    idleTimeoutMs: TIMEOUT_MS,
    maxResponseBytes: MAX_BYTES,
  });
  const server = `The token endpoint of ${platformId}`;
  if (answer.kind === 'unreachable') return unavailable(`${server} issued no token. ${answer.detail}`);
  const { status, body } = answer;
  const said = jsonOf(body);
  const failed = Failed.safeParse(said);
  // Some servers send errors with status 200.
  if (status !== 200 || failed.success) return refusalOf(server, answer, failed.data?.error);
  const read = Issued.safeParse(said);
  if (!read.success)
    return unavailable(`${server} issued no token: its answer is not what RFC 6749 section 5.1 says of bearer tokens.`);
  return {
    kind: 'token',
    token: new Secret(read.data.access_token),
    life: lifeWithin(read.data.expires_in, clock()),
  };
}

function refusalOf(server: string, { status }: Extract<Answer, { kind: 'answer' }>, error?: string): Exchanged {
  const refuse = (detail: string): Exchanged => ({ kind: 'refused', of: 'connection', detail });
  const remedy = error !== undefined && Object.hasOwn(REMEDIES, error) ? REMEDIES[error] : undefined;
  if (remedy !== undefined) return refuse(`${server} refused: ${error}. ${remedy}`);
  if (status === 401) return refuse(`${server} answered 401. ${REMEDIES.invalid_client}`);
  if (status === 408 || status === 429 || status >= 500 || status === 200)
    return unavailable(
      `${server} issued no token: it answered ${status === 200 ? 'an error' : status}. Try again shortly.`,
    );
  return refuse(`${server} answered ${status}. Is auth.token_endpoint right? An owner corrects it.`);
}

function lifeWithin(seconds: number | undefined, now: Instant): TokenLife {
  const { refreshAt, expiresAt } = lifeOf(Math.min(seconds ?? MAX_LIFETIME_S, MAX_LIFETIME_S), now);
  return refreshAt === null || expiresAt === null ? lifeWithin(undefined, now) : { refreshAt, expiresAt };
}
