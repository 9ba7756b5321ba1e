/** Authorises whoever holds the token to send one secret: for one agent and one platform only. */

import { type Changing, type ChangingOwner, recordChange, recordInTurn } from '../../audit/record-change.ts';
import type { Broker } from '../../broker.ts';
import { uuidv4 } from '../../crypto/ids.ts';
import { mintToken } from '../../crypto/one-time-token.ts';
import type { Secret } from '../../crypto/secret.ts';
import type { Compiled } from '../../facts/compiled.ts';
import { PlatformId } from '../../platforms/manifest-fields.ts';
import type { Instant } from '../../policy/facts.ts';
import { present } from '../../runtime/present.ts';
import { findAgent, lockAgent } from '../../store/agents.ts';
import {
  listSecretAuthorizations as listStored,
  putSecretAuthorization,
  removeSecretAuthorization as removeStored,
} from '../../store/secret-authorizations.ts';
import { readStored, Texts } from '../../store/stored-json.ts';
import type { SecretAuthorizationTable } from '../../store/tables/registrations.ts';
import { checkTerms, findGrant, findGrantContext, refuseRevoked } from '../grants/grant-terms.ts';
import { ChangeRefused } from '../refused.ts';

/** How long an authorisation can be used. */
const SECRET_AUTHORIZATION_MS = 24 * 3_600_000;

export type Authorizing = {
  /** The agent's uuid or agent id. */
  agentId: string;
  platformId: string;
  /** The label of the new connection; undefined: `<platform>-<agent id>`. */
  label: string | undefined;
  /** Scopes of the new grant, when the agent has none on the platform. */
  scopes: readonly string[] | undefined;
};

/** Creates an authorisation. `token` is to be shown once. Throws ChangeRefused, or AuditUnavailable: then nothing is created. */
export async function authorizeSecret(
  services: Changing & { compiled: Compiled },
  by: ChangingOwner,
  { agentId, platformId, label: chosen, scopes: given }: Authorizing,
): Promise<{ authorization: ReadSecretAuthorization; agentId: string; token: Secret }> {
  const isName = PlatformId.safeParse(platformId).success;
  const context = isName
    ? await findGrantContext(services, by.owner.organisation_id, agentId, platformId)
    : 'no_platform';
  if (context === 'no_agent') throw new ChangeRefused('not_found', 'The organisation has no such agent.');
  if (context === 'no_platform')
    throw new ChangeRefused('invalid_request', 'platform: the organisation has none of this id.');
  const { agent, connections } = context;
  const label = chosen ?? `${platformId.slice(0, 39)}-${agent.agent_id}`;
  const scopes = given && [...new Set(given)];
  const now = services.broker.clock();
  checkTerms(context, { ...(scopes && { scopes }) });
  if (agent.agent_type === 'child')
    throw new ChangeRefused(
      'conflict',
      'A child identity uses the grants of its parent: authorise a secret for the parent.',
    );
  if (connections.some((one) => one.label === label))
    throw new ChangeRefused('conflict', `There is a connection "${label}" already: choose another label.`);
  const { token, hash } = mintToken('secret');
  const change = { reason: 'secret_authorized', agent, platform: platformId };
  const authorization = await recordInTurn(services, by, change, async (db, note) => {
    // A revocation ends the authorisations that it sees: it waits for this one, or this one for it.
    await lockAgent(db, agent);
    refuseRevoked(present(await findAgent(db, agent.organisation_id, agent.id), 'agent'));
    const grant = await findGrant(db, context, undefined);
    if (grant && scopes)
      throw new ChangeRefused(
        'conflict',
        'scopes: the agent already has a grant on this platform, which will use the secret. Leave scopes out, and change the grant instead.',
      );
    if (!grant && !scopes)
      throw new ChangeRefused(
        'invalid_request',
        'scopes: the agent has no grant on this platform; say what it may do.',
      );
    const made: SecretAuthorizationTable = {
      organisation_id: agent.organisation_id,
      id: uuidv4(),
      token_hash: hash,
      agent_id: agent.id,
      platform_id: platformId,
      label,
      scopes: scopes ? JSON.stringify(scopes) : null,
      owner_id: by.owner.id,
      created_at: now,
      expires_at: now + SECRET_AUTHORIZATION_MS,
      used_at: null,
      connection_id: null,
    };
    await putSecretAuthorization(db, made);
    note({
      authorization: made.id,
      label,
      scopes: scopes ?? null,
      expires_at: new Date(made.expires_at).toISOString(),
    });
    return made;
  });
  return { authorization: readRow(authorization, now), agentId: agent.agent_id, token };
}

export const secretAuthorizationStatusAt = (
  { used_at, expires_at }: Pick<SecretAuthorizationTable, 'used_at' | 'expires_at'>,
  now: Instant,
): 'open' | 'used' | 'expired' => (used_at !== null ? 'used' : expires_at <= now ? 'expired' : 'open');

/** An authorisation without its token, with its status and its scopes as values. */
export type ReadSecretAuthorization = ReturnType<typeof readRow>;

const readRow = ({ token_hash: _token, scopes, ...one }: SecretAuthorizationTable, now: Instant) => ({
  ...one,
  status: secretAuthorizationStatusAt(one, now),
  scopes: scopes === null ? null : authorizedScopes(one.id, scopes),
});

/** Parses the scopes of an authorisation (JSON text) that has some. */
export const authorizedScopes = (id: string, scopes: string): string[] =>
  readStored(Texts, scopes, `scopes of secret authorisation ${id}`);

/** Lists all authorisations of an organisation, newest first; used and expired ones for 30 days. */
export async function listSecretAuthorizations(
  { store, clock }: Pick<Broker, 'store' | 'clock'>,
  organisationId: string,
): Promise<ReadSecretAuthorization[]> {
  const now = clock();
  return (await listStored(store.db, organisationId)).map((one) => readRow(one, now));
}

/** Removes an authorisation: secrets sealed with it are refused from then on. Throws ChangeRefused, also when the secret was received. */
export async function removeSecretAuthorization(services: Changing, by: ChangingOwner, id: string): Promise<void> {
  const { organisation_id: organisationId } = by.owner;
  const known = (await listStored(services.broker.store.db, organisationId)).find((one) => one.id === id);
  if (!known) throw new ChangeRefused('not_found', 'The organisation has no such authorisation.');
  const change = { reason: 'secret_authorization_removed', platform: known.platform_id };
  await recordChange(services, by, change, async (tx, note) => {
    if (!(await removeStored(tx, organisationId, id)))
      throw new ChangeRefused(
        'conflict',
        'The secret was already received, and there is a connection now. Remove the connection instead.',
      );
    note({ authorization: id, label: known.label });
  });
}
