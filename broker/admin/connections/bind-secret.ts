/** Creates a connection from a sealed secret, by an owner's authorisation, and makes the agent's grant use it. */
import { parseStrictJson } from '../../../json/strict.ts';
import { type Changing, recordInTurn } from '../../audit/record-change.ts';
import type { Broker, Uses } from '../../broker.ts';
import { uuidv4 } from '../../crypto/ids.ts';
import { hashToken } from '../../crypto/one-time-token.ts';
import { openSealed } from '../../crypto/sealed-secret.ts';
import { Secret } from '../../crypto/secret.ts';
import type { Compiled } from '../../facts/compiled.ts';
import { secretKeyOf } from '../../secret-keys.ts';
import { findAgent, lockAgent, putGrant } from '../../store/agents.ts';
import { addConnection } from '../../store/connections.ts';
import { findSecretAuthorization, useSecretAuthorization } from '../../store/secret-authorizations.ts';
import type { Db } from '../../store/store.ts';
import type { NewConnection } from '../../store/tables/connections.ts';
import type { SecretAuthorizationTable } from '../../store/tables/registrations.ts';
import type { GrantTable } from '../../store/tables/rules.ts';
import {
  changedGrant,
  describeGrant,
  findGrant,
  findGrantContext,
  type GrantContext,
  isRevoked,
} from '../grants/grant-terms.ts';
import { ChangeRefused } from '../refused.ts';
import { authorizedScopes, secretAuthorizationStatusAt } from './secret-authorization.ts';

/** The secret is refused: rolls back the transaction. The reason is not revealed to the sender. */
export class SecretRefused extends Error {}

/** The sent message: claimed agent and platform, and the encrypted content. */
export type SentSecret = { agentId: string; platformId: string; sealed: string };

/** A secret with an open authorisation. */
export type Acceptable = { authorization: SecretAuthorizationTable; context: GrantContext; secret: Secret };

/**
 * Decrypts the message, and finds its authorisation. Throws SecretRefused for everything but an open authorisation of exactly this agent and
 * platform: for another key, a used or invented token, an agent of another organisation.
 */
export async function openSentSecret(
  services: Uses<'clock' | 'store' | 'vault'> & { compiled: Compiled },
  { agentId, platformId, sealed }: SentSecret,
): Promise<Acceptable> {
  const { broker } = services;
  const now = broker.clock();
  const text = await openSealed(sealed, (kid) => secretKeyOf(broker, kid, now));
  const content = text === undefined ? undefined : readContent(text);
  const hash = content && hashToken(content.authorization, 'secret');
  const authorization = hash === undefined ? undefined : await findSecretAuthorization(broker.store.db, hash);
  if (!content || !authorization || secretAuthorizationStatusAt(authorization, now) !== 'open')
    throw new SecretRefused();
  const { organisation_id, agent_id, platform_id } = authorization;
  const context = await findGrantContext(services, organisation_id, agent_id, platform_id);
  if (typeof context === 'string' || isRevoked(context.agent)) throw new SecretRefused();
  const named = agentId.toLowerCase();
  if (platformId !== platform_id || (named !== context.agent.id && named !== context.agent.agent_id))
    throw new SecretRefused();
  return { authorization, context, secret: new Secret(content.secret) };
}

/** Parses `{"authorization": "sat_…", "secret": "…"}`; no other members are allowed. */
function readContent(text: string): { authorization: string; secret: string } | undefined {
  const parsed = parseStrictJson(text);
  if (!parsed.ok || typeof parsed.value !== 'object' || parsed.value === null) return undefined;
  const { authorization, secret, ...more } = parsed.value as Record<string, unknown>;
  if (typeof authorization !== 'string' || typeof secret !== 'string' || Object.keys(more).length > 0) return undefined;
  return { authorization, secret };
}

/**
 * Stores a secret: as a connection of its own, which never becomes the platform's default, and in the grant that the agent's calls without a
 * connection use, which from now on uses this connection. Of concurrent requests one succeeds. Recorded as a change of the owner who authorised it.
 * Throws SecretRefused, or AuditUnavailable: then nothing was changed.
 */
export async function storeSecret(
  services: Changing & Uses<'vault'>,
  { authorization, context, secret }: Acceptable,
  correlationId: string,
): Promise<void> {
  const { broker } = services;
  const { organisation_id: organisationId, owner_id, platform_id: platform, id } = authorization;
  const connectionId = uuidv4();
  const by = { owner: { id: owner_id, organisation_id: organisationId }, how: 'token' as const, correlationId };
  const change = { reason: 'secret_bound', agent: context.agent, platform, connection: connectionId };
  await recordInTurn(services, by, change, async (db, note) => {
    // Before the authorisation: a revocation locks the agent first, and then ends its authorisations.
    await lockAgent(db, context.agent);
    const agent = await findAgent(db, organisationId, context.agent.id);
    if (agent === undefined || isRevoked(agent)) throw new SecretRefused();
    const now = broker.clock();
    if (!(await useSecretAuthorization(db, authorization, connectionId, now))) throw new SecretRefused();
    const label = await putConnectionFor(db, broker, { authorization, connectionId, secret });
    const { before, after } = await grantOnIt(db, context, authorization, connectionId, now);
    await putGrant(db, after);
    note({
      authorization: id,
      label,
      revision: 1,
      before: before ? describeGrant(before) : null,
      after: describeGrant(after),
    });
  });
}

const MAX_NAME_ATTEMPTS = 100;

/** Uses the label that the owner chose or, if it was taken meanwhile, a similar one. Returns the label. */
async function putConnectionFor(
  db: Db,
  { vault, clock }: Pick<Broker, 'clock' | 'vault'>,
  {
    authorization: { organisation_id, platform_id, label },
    connectionId,
    secret,
  }: { authorization: SecretAuthorizationTable; connectionId: string; secret: Secret },
): Promise<string> {
  const place = { table: 'connections' as const, organisationId: organisation_id, rowId: connectionId };
  const connection: NewConnection = {
    organisation_id,
    id: connectionId,
    platform_id,
    label,
    is_default: 0,
    status: 'active',
    credential: vault.seal(place, secret.reveal()),
    secret_reference: null,
    upstream_scopes: null,
    revision: 1,
    created_at: clock(),
  };
  for (let n = 2; n < MAX_NAME_ATTEMPTS; n++) {
    if (await addConnection(db, connection)) return connection.label;
    connection.label = `${label.slice(0, 60)}-${n}`;
  }
  throw new SecretRefused();
}

/** The authorised scopes apply only if there is still no grant: later changes by an owner take precedence. */
async function grantOnIt(
  db: Db,
  context: GrantContext,
  { id, scopes }: SecretAuthorizationTable,
  connectionId: string,
  now: number,
): Promise<{ before: GrantTable | undefined; after: GrantTable }> {
  const before = await findGrant(db, context, undefined).catch((error) => {
    throw error instanceof ChangeRefused ? new SecretRefused() : error;
  });
  if (before) return { before, after: { ...before, connection_id: connectionId } };
  if (scopes === null) throw new SecretRefused();
  const patch = { connectionId, scopes: { all: authorizedScopes(id, scopes) } };
  return { before: undefined, after: changedGrant(context, undefined, patch, now) };
}
