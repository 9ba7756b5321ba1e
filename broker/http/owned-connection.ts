/** Connections as owners see them, and what an owner may make a credential. */

import { z } from 'zod';
import { Secret } from '../crypto/secret.ts';
import { readFacts } from '../oauth-client/facts.ts';
import type { Manifest } from '../platforms/manifest.ts';
import type { Instant } from '../policy/facts.ts';
import type { ConnectionTable } from '../store/schema.ts';
import { readStored, Texts } from '../store/stored-json.ts';
import { text } from '../wire/action.ts';
import { instant } from './instant.ts';

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
        "not_connected: it has no credential; reauth_needed: an owner has to connect it again; needs_attention: the authorization server rejects the broker's client",
      ),
    has_secret: z.boolean(),
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
          .describe('when the present access token ends, where the server says so'),
        refreshes: z.boolean().describe('whether the broker gets the next one by itself'),
        rejected: z
          .object({ error: z.string(), since: z.iso.datetime() })
          .nullable()
          .describe("the error with which the server rejects the broker's client at refreshes (RFC 6749 section 5.2)"),
      })
      .nullable()
      .describe('of a connection that an owner made at the authorization server'),
    secret_from: z.string().nullable().describe('what governance.yaml calls the secret, such as "env:CRM_TOKEN"'),
    upstream_scopes: z.array(z.string()).nullable().describe('what the platform granted, when it says so'),
    revision: z.int().describe('one more with each new secret'),
    created_at: z.iso.datetime(),
  })
  .meta({ id: 'Connection' });

const CONNECTS_BY: Partial<Record<Manifest['auth']['type'], 'oauth' | 'app'>> = { oauth2: 'oauth', app: 'app' };

/** A connection as its owners see it: all but the credential. */
export const connectionShown = (
  one: ConnectionTable,
  { auth }: Pick<Manifest, 'auth'>,
  now: Instant,
): z.output<typeof Connection> => ({
  id: one.id,
  platform: one.platform_id,
  label: one.label,
  default: one.is_default === 1,
  status: one.status,
  state: stateOf(one, now),
  has_secret: one.credential !== null,
  connects_by: CONNECTS_BY[auth.type] ?? 'secret',
  oauth: oauthShown(one),
  secret_from: one.secret_reference,
  upstream_scopes:
    one.upstream_scopes === null
      ? null
      : readStored(Texts, one.upstream_scopes, `upstream scopes of connection ${one.id}`),
  revision: one.revision,
  created_at: new Date(one.created_at).toISOString(),
});

/** A token that is over, and that nobody can refresh, needs a person as much as one that was refused. */
function stateOf(one: ConnectionTable, now: Instant): z.output<typeof Connection>['state'] {
  if (one.credential === null) return 'not_connected';
  const facts = readFacts(one.oauth);
  const end = facts?.expires_at ?? null;
  const isOver = one.refresh_token === null && end !== null && end <= now;
  if (one.status !== 'active' || isOver) return 'reauth_needed';
  return facts?.rejected ? 'needs_attention' : 'connected';
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

/** What is taken depends on the platform: see `checkCredential`. */
export const Credential = text(16 * 1024).transform((value) => new Secret(value));
