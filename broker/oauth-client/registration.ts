/** Dynamic client registration of the broker (RFC 7591) at authorization servers that support it. */
import type { ServerMetadata } from 'openid-client';
import { z } from 'zod';
import type { Broker } from '../broker.ts';
import { sha256Hex } from '../crypto/canonical.ts';
import { uuidv4 } from '../crypto/ids.ts';
import type { ProviderFetch } from '../egress/provider-fetch.ts';
import { deleteNamedPlatformSecret, listPlatformSecrets, putPlatformSecret } from '../store/platform-secrets.ts';
import type { Db } from '../store/store.ts';
import type { Vault } from '../vault.ts';
import { applicationTypeOf, CLIENT_NAME, GRANT_TYPES, RESPONSE_TYPES } from './client-document.ts';
import { errorCodeOf } from './fault.ts';
import type { OAuthProblem } from './problem.ts';
import { isSameIssuer } from './server.ts';

/**
 * The name of a connection's registrations among the secrets of its platform. Each registration has a secret of its own: when the broker or its redirect
 * URI moves, or a registration is about to expire, the new registration does not replace the one that tokens were issued to.
 */
const nameOf = (connectionId: string): string => `registration:${connectionId}`;
const nameAt = (connectionId: string, { redirect_uri, client_id }: Registration): string =>
  `${nameOf(connectionId)}:${sha256Hex(`${redirect_uri} ${client_id}`).slice(0, 16)}`;
/** One registration for all connections of a platform, as older releases made it: still used for the tokens issued to it. */
const FORMER_NAME = 'registration';

const Registration = z.object({
  issuer: z.string(),
  redirect_uri: z.string(),
  client_id: z.string(),
  client_secret: z.string().optional(),
  auth_method: z.enum(['client_secret_basic', 'client_secret_post', 'none']),
  /** Milliseconds since the epoch; null: does not expire. */
  expires_at: z.number().nullable(),
});
export type Registration = z.infer<typeof Registration>;

/** The members of RFC 7591 section 3.2.1 that the broker uses. */
const Answer = z.object({
  client_id: z.string().min(1).max(2048),
  client_secret: z.string().min(1).max(4096).nullish(),
  client_secret_expires_at: z.number().nullish(),
  token_endpoint_auth_method: z.string().nullish(),
});

type Base = Pick<Broker, 'store' | 'vault' | 'clock'>;
type Place = { organisationId: string; platformId: string; connectionId: string };

/**
 * In order of preference; the first that the server supports is used. Form before header: servers made with the MCP SDK for TypeScript read only the
 * form, and those with the one for Python require the client id in the form in any case.
 */
const METHODS = ['client_secret_post', 'client_secret_basic', 'none'] as const;

const isRegistration = (name: string): boolean => name === FORMER_NAME || name.startsWith(nameOf(''));

function read(vault: Vault, organisationId: string, { id, value }: { id: string; value: Uint8Array }): Registration {
  const place = { table: 'platform_secrets' as const, organisationId, rowId: id };
  return Registration.parse(JSON.parse(vault.open(place, value).toString('utf8')));
}

/**
 * Returns the broker's registration at this issuer for a connection, or undefined. `client`: the registration with this client id, to which
 * a code or tokens were issued; undefined: one for a new authorization request, with the redirect URI of the connection.
 */
export async function findRegistration(
  { store, vault, clock }: Base,
  { organisationId, platformId, connectionId }: Place,
  { issuer, redirectUri, client }: { issuer: string; redirectUri: string; client: string | undefined },
): Promise<Registration | undefined> {
  const stored = await listPlatformSecrets(store.db, organisationId, platformId);
  const now = clock();
  for (const { id, name, value, created_at: madeAt } of stored) {
    if (name !== FORMER_NAME && !name.startsWith(nameOf(connectionId))) continue;
    const found = read(vault, organisationId, { id, value });
    if (!isSameIssuer(found.issuer, issuer) || isOver(found, now)) continue;
    if (
      client === undefined
        ? found.redirect_uri === redirectUri && isYoung(found, madeAt, now)
        : found.client_id === client
    )
      return found;
  }
  return undefined;
}

const isOver = ({ expires_at: end }: Registration, now: number): boolean => end !== null && end <= now;

/** Whether at least half of the registration's lifetime is left: once it expires, tokens cannot be refreshed, and the person has to consent again. */
const isYoung = ({ expires_at: end }: Registration, madeAt: number, now: number): boolean =>
  end === null || end - now >= now - madeAt;

/** Deletes the registration with this client id, which its server has deleted. The next authorization request registers again. */
export async function forgetClient(
  { store, vault }: Pick<Broker, 'store' | 'vault'>,
  { organisationId, platformId }: Pick<Place, 'organisationId' | 'platformId'>,
  clientId: string,
): Promise<void> {
  for (const { id, name, value } of await listPlatformSecrets(store.db, organisationId, platformId))
    if (isRegistration(name) && read(vault, organisationId, { id, value }).client_id === clientId)
      await deleteNamedPlatformSecret(store.db, { organisationId, platformId, name });
}

/** Deletes the registrations of a removed connection. */
export async function forgetRegistration(db: Db, { organisationId, platformId, connectionId }: Place): Promise<void> {
  for (const { name } of await listPlatformSecrets(db, organisationId, platformId))
    if (name.startsWith(nameOf(connectionId)))
      await deleteNamedPlatformSecret(db, { organisationId, platformId, name });
}

/** Registers the broker and stores the response. Deletes the connection's expired registrations. */
export async function register(
  broker: Base,
  fetch: ProviderFetch,
  { organisationId, platformId, connectionId }: Place,
  { metadata, redirectUri, baseUrl }: { metadata: ServerMetadata; redirectUri: string; baseUrl: string },
): Promise<Registration | OAuthProblem> {
  const { issuer, registration_endpoint: endpoint, token_endpoint_auth_methods_supported: methods } = metadata;
  if (endpoint === undefined)
    return {
      problem: 'failed',
      detail: `The authorization server of ${platformId} does not support dynamic client registration${
        metadata.client_id_metadata_document_supported === true
          ? ', and the client ID metadata documents that it supports take a BASE_URL of https'
          : ''
      }. ${BY_HAND}`,
    };
  const method = METHODS.find((one) => (methods ?? ['client_secret_basic']).includes(one)) ?? 'none';
  const response = await fetch(endpoint, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json' },
    body: JSON.stringify({
      client_name: CLIENT_NAME,
      redirect_uris: [redirectUri],
      grant_types: GRANT_TYPES,
      response_types: RESPONSE_TYPES,
      token_endpoint_auth_method: method,
      application_type: applicationTypeOf(baseUrl),
    }),
  });
  const answer: unknown = await response.json().catch(() => undefined);
  if (response.status !== 201 && response.status !== 200)
    return notRegistered(platformId, { status: response.status, answer, redirectUri });
  const { success, data } = Answer.safeParse(answer);
  if (!success)
    return {
      problem: 'failed',
      detail: `The authorization server of ${platformId} answered the registration of the broker with something that cannot be used. ${BY_HAND}`,
    };
  const secret = data.client_secret ?? undefined;
  const end = data.client_secret_expires_at ?? 0;
  const told = METHODS.find((one) => one === data.token_endpoint_auth_method) ?? method;
  const registration: Registration = {
    issuer,
    redirect_uri: redirectUri,
    client_id: data.client_id,
    ...(secret !== undefined && { client_secret: secret }),
    auth_method: secret === undefined ? 'none' : told === 'none' ? 'client_secret_basic' : told,
    expires_at: secret === undefined || end === 0 ? null : end * 1000,
  };
  const { store, vault, clock } = broker;
  const id = uuidv4();
  await putPlatformSecret(store.db, {
    organisation_id: organisationId,
    id,
    platform_id: platformId,
    name: nameAt(connectionId, registration),
    value: vault.seal({ table: 'platform_secrets', organisationId, rowId: id }, JSON.stringify(registration)),
    created_at: clock(),
  });
  for (const { name, ...stored } of await listPlatformSecrets(store.db, organisationId, platformId))
    if (name.startsWith(nameOf(connectionId)) && isOver(read(vault, organisationId, stored), clock()))
      await deleteNamedPlatformSecret(store.db, { organisationId, platformId, name });
  return registration;
}

const BY_HAND = 'Register the broker there, and put its client_id into the manifest.';

const Failed = z.object({ error: z.string() });

/** Describes why a server refused to register the broker (RFC 7591 section 3.2.2), and what to do about it. */
function notRegistered(
  platformId: string,
  { status, answer, redirectUri }: { status: number; answer: unknown; redirectUri: string },
): OAuthProblem {
  const server = `The authorization server of ${platformId}`;
  if (status === 408 || status === 429 || status >= 500)
    return {
      problem: 'unreachable',
      detail: `${server} did not register the broker: it answered ${status}. Try again shortly.`,
    };
  const { data } = Failed.safeParse(answer);
  const why = data ? `${errorCodeOf(data.error)}, ${status}` : `${status}`;
  const isForRedirect = data?.error === 'invalid_redirect_uri' && redirectUri.startsWith('http:');
  const hint = isForRedirect ? ` It may take redirect URIs of https alone, and ${redirectUri} is not.` : '';
  return { problem: 'failed', detail: `${server} refused to register the broker (${why}).${hint} ${BY_HAND}` };
}
