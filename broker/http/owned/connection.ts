/** The owners' view of connections, and the form of a credential that owners give. */

import { z } from 'zod';
import type { ConnectionUse } from '../../admin/connections/connection-use.ts';
import type { ReadConnection } from '../../admin/connections/find-connection.ts';
import type { Broker } from '../../broker.ts';
import { lacksConsent } from '../../calls/connect.ts';
import { IdleSeconds, WaitSeconds } from '../../config-file/schema.ts';
import { Secret } from '../../crypto/secret.ts';
import { readFacts } from '../../oauth-client/facts.ts';
import { redirectUriOf } from '../../oauth-client/redirect-uri.ts';
import type { Manifest } from '../../platforms/manifest.ts';
import { SecretOfParts } from '../../platforms/secret-parts.ts';
import type { Instant } from '../../policy/facts.ts';
import { clientUrlOf } from '../../proxy/raw-target.ts';
import { readStored, Texts } from '../../store/stored-json.ts';
import type { ConnectionTable } from '../../store/tables/connections.ts';
import { isLasting, readFailing } from '../../token-source/failing-tokens.ts';
import { text } from '../../wire/action.ts';
import { instant } from '../reply.ts';

export const Connection = z
  .object({
    id: z.guid(),
    platform: z.string(),
    label: z.string(),
    default: z.boolean().describe('whether grants that name no connection use it'),
    status: z
      .enum(['active', 'reauth_needed'])
      .describe('reauth_needed: the platform refused the secret the last time, or it could not be sent'),
    state: z
      .enum(['connected', 'reauth_needed', 'needs_attention', 'not_connected'])
      .describe(
        "not_connected: it has no credential; reauth_needed: an owner has to connect it again; needs_attention: the authorization server rejects the broker's client, or issues no new token",
      ),
    has_secret: z.boolean(),
    per_person: z
      .boolean()
      .describe(
        'whether people give tokens of their own for it: then it needs no credential, and `not_connected` keeps no call back',
      ),
    connects_by: z
      .enum(['secret', 'oauth', 'app'])
      .describe('how the platform takes its credential; app: the broker gets tokens of the installation of an App'),
    oauth: z
      .object({
        account: z.string().nullable().describe('whose account it is, as the platform says it'),
        connected_at: z.iso.datetime(),
        connected_by: z.guid().describe('the owner who connected'),
        refreshed_at: z.iso.datetime().nullable(),
        expires_at: z.iso
          .datetime()
          .nullable()
          .describe('when the current access token expires, if the server reports it'),
        refreshes: z.boolean().describe('whether the broker gets the next one by itself'),
        rejected: z
          .object({ error: z.string(), since: z.iso.datetime() })
          .nullable()
          .describe("the error with which the server rejects the broker's client at refreshes (RFC 6749 section 5.2)"),
      })
      .nullable()
      .describe('of a connection that an owner made at the authorization server'),
    failing: z
      .object({ detail: z.string(), since: z.iso.datetime() })
      .nullable()
      .describe(
        'why calls get no new token, if that was refused, or has failed for a minute or longer; calls that need one try again',
      ),
    redirect_uri: z
      .url()
      .nullable()
      .describe('where the authorization server sends people back to; null: the platform does not use OAuth'),
    secret_from: z.string().nullable().describe('what governance.yaml calls the secret, such as "env:CRM_TOKEN"'),
    upstream_scopes: z.array(z.string()).nullable().describe('what the platform granted, if it reports it'),
    lacks_consent_for: z
      .array(z.string())
      .describe('scopes of the platform that need more than it granted: calls with them are answered needs_consent'),
    idle_seconds: IdleSeconds.nullable().describe(
      'how long an answer may be silent; null: as long as the platform says, or any answer may be',
    ),
    wait_seconds: WaitSeconds.nullable().describe(
      'how long a request on /proxy waits for a person if it does not say; null: 25 seconds',
    ),
    url: z
      .url()
      .nullable()
      .describe(
        "base URL for clients of the platform, instead of the platform's own; null: an MCP server, which is at /mcp",
      ),
    revision: z.int().describe('increases with each new secret'),
    last_test: z
      .object({
        at: z.iso.datetime(),
        ok: z.boolean(),
        upstream_status: z.int().nullable(),
        detail: z.string().describe('the result, as a sentence'),
      })
      .nullable()
      .describe('the last test of this credential; null: it was not tested'),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'Connection' });

export const ListedConnection = Connection.extend({
  last_use: z
    .object({
      at: z.iso.datetime(),
      ok: z.boolean().describe('false: the platform refused the credential'),
      upstream_status: z.int().nullable(),
    })
    .nullable()
    .describe(
      "the last call that shows whether the credential works, among the organisation's newest 1,000 rows on record; null: there is none",
    ),
}).meta({ id: 'ListedConnection' });

/** Builds the view of a connection in the list, including the results of its latest calls. */
export const listedConnection = (
  read: ReadConnection,
  use: ConnectionUse | undefined,
  broker: Shower,
): z.output<typeof ListedConnection> => ({
  ...connectionShown(read.connection, read.manifest, broker),
  last_use: use ? { at: new Date(use.at).toISOString(), ok: use.ok, upstream_status: use.upstreamStatus } : null,
});

const CONNECTS_BY: Partial<Record<Manifest['auth']['type'], 'oauth' | 'app'>> = { oauth2: 'oauth', app: 'app' };

/** Capabilities needed to build the view. */
export type Shower = Pick<Broker, 'baseUrl' | 'clock' | 'proxyUrl'>;

/** Builds the view of a connection: all members except the credential. */
export const connectionShown = (
  one: ConnectionTable,
  manifest: Pick<Manifest, 'auth' | 'needs' | 'kind' | 'oauth' | 'per_person'>,
  { baseUrl, clock, proxyUrl }: Shower,
): z.output<typeof Connection> => ({
  id: one.id,
  platform: one.platform_id,
  label: one.label,
  default: one.is_default === 1,
  status: one.status,
  ...stateOf(one, clock()),
  has_secret: one.credential !== null,
  per_person: manifest.per_person?.enabled === true,
  connects_by: CONNECTS_BY[manifest.auth.type] ?? 'secret',
  oauth: oauthShown(one),
  redirect_uri: redirectUriShown(one, manifest, baseUrl),
  secret_from: one.secret_reference,
  upstream_scopes: grantedTo(one),
  lacks_consent_for: Object.keys(manifest.needs ?? {}).filter((scope) => lacksConsent(manifest, grantedTo(one), scope)),
  idle_seconds: one.idle_ms === null ? null : one.idle_ms / 1000,
  wait_seconds: one.wait_ms === null ? null : one.wait_ms / 1000,
  url: manifest.kind === 'mcp' ? null : clientUrlOf(proxyUrl, one.label),
  revision: one.revision,
  last_test: testShown(one),
  created_at: new Date(one.created_at).toISOString(),
});

const grantedTo = ({ id, upstream_scopes: stored }: ConnectionTable): string[] | null =>
  stored === null ? null : readStored(Texts, stored, `upstream scopes of connection ${id}`);

function redirectUriShown(
  { id, organisation_id: organisationId }: ConnectionTable,
  { kind, auth, oauth }: Pick<Manifest, 'auth' | 'kind' | 'oauth'>,
  baseUrl: string,
): string | null {
  if (auth.type !== 'oauth2') return null;
  return redirectUriOf({ kind, auth, oauth }, { baseUrl, organisationId, connectionId: id }).uri;
}

/** An expired token without a refresh token needs a person, as a refused one does. */
function stateOf(one: ConnectionTable, now: Instant): Pick<z.output<typeof Connection>, 'state' | 'failing'> {
  if (one.credential === null) return { state: 'not_connected', failing: null };
  const facts = readFacts(one.oauth);
  const failing = facts ? facts.failing : readFailing(one.failing);
  const end = facts?.expires_at ?? null;
  const isOver = one.refresh_token === null && end !== null && end <= now;
  const needsOwner = one.status !== 'active' || isOver;
  const shown = failing && (needsOwner || isLasting(failing)) ? failing : undefined;
  const connected = facts?.rejected || shown ? 'needs_attention' : 'connected';
  return {
    state: needsOwner ? 'reauth_needed' : connected,
    failing: shown ? { detail: shown.detail, since: new Date(shown.since).toISOString() } : null,
  };
}

/** The last test applies only if the credential was not changed since. */
function testShown(one: ConnectionTable): z.output<typeof Connection>['last_test'] {
  const { tested_at: at, tested_revision, tested_ok, tested_status, tested_detail } = one;
  if (at === null || tested_revision !== one.revision) return null;
  return {
    at: new Date(at).toISOString(),
    ok: tested_ok === 1,
    upstream_status: tested_status,
    detail: tested_detail ?? '',
  };
}

function oauthShown(one: ConnectionTable): z.output<typeof Connection>['oauth'] {
  const facts = readFacts(one.oauth);
  if (!facts) return null;
  return {
    account: facts.account,
    connected_at: new Date(facts.connected_at).toISOString(),
    connected_by: facts.connected_by,
    refreshed_at: instant(facts.refreshed_at),
    expires_at: instant(facts.expires_at),
    refreshes: one.refresh_token !== null,
    rejected: facts.rejected
      ? { error: facts.rejected.error, since: new Date(facts.rejected.since).toISOString() }
      : null,
  };
}

const MAX_SECRET_LENGTH = 16 * 1024;

/** Which forms are accepted depends on the platform: see `checkCredential`. A secret of several parts may be given by their names. */
export const Credential = z
  .union([text(MAX_SECRET_LENGTH), z.record(text(64), text(MAX_SECRET_LENGTH))])
  .transform((value) => (typeof value === 'string' ? new Secret(value) : new SecretOfParts(value)));
