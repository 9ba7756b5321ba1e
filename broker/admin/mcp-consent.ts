/** Authorises an MCP client: creates or chooses the agent that it acts as, its grants, and the authorisation, in one transaction. */

import { type Changing, type ChangingOwner, recordInTurn } from '../audit/record-change.ts';
import type { Broker } from '../broker.ts';
import { uuidv4 } from '../crypto/ids.ts';
import { loadManifests } from '../facts/stored-manifests.ts';
import { AUTHORISATION_SECONDS } from '../oauth-server/metadata.ts';
import type { Manifest } from '../platforms/manifest.ts';
import type { Instant } from '../policy/facts.ts';
import { findAgent } from '../store/agents.ts';
import { putMcpAuthorisation } from '../store/mcp-authorisations.ts';
import { keepOAuthRecord, useOAuthRecord } from '../store/oauth-records.ts';
import type { Db } from '../store/store.ts';
import type { AgentTable, McpAuthorisationTable } from '../store/tables/agents.ts';
import type { OwnerTable } from '../store/tables/organisations.ts';
import type { ScopesOn } from '../store/tables/registrations.ts';
import {
  choosePolicy,
  makeAgent,
  newIds,
  refuseDuplicateName,
  refuseUnknownScopes,
  splitScopes,
} from './agents/new-agent.ts';
import { ChangeRefused } from './refused.ts';

/** The client's request, as the authorization server stores it. */
export type AskedConsent = Pick<McpAuthorisationTable, 'client_id' | 'client_name' | 'redirect_host' | 'scope'> & {
  /** The stored interaction: of two decisions on it only one succeeds. */
  interaction: { kind: string; id: string };
};

/** What an owner allows. */
export type AllowedConsent = {
  /** The uuid or agent id of an agent as which an MCP client was authorised before, with its grants; or else `name` is given. */
  agent: string | undefined;
  /** The name of a new agent. */
  name: string | undefined;
  /** For a new agent: id or name of its policy; undefined: the default policy. */
  policy: string | undefined;
  /** For a new agent; undefined: no grants. */
  grants: readonly ScopesOn[] | undefined;
  /** The requested scopes that are given; undefined: all of them. */
  scopes: readonly string[] | undefined;
};

/** A new authorisation; `given`: the scopes of its tokens. */
export type MadeAuthorisation = { id: string; given: readonly string[] };

type Choice =
  | { as: 'new'; ids: Pick<AgentTable, 'id' | 'agent_id'>; name: string; policy?: string; grants: readonly ScopesOn[] }
  | { as: 'known'; ids: Pick<AgentTable, 'id' | 'agent_id'> };

const decidedBefore = () => new ChangeRefused('conflict', 'This was decided already. Go back to the application.');

/**
 * Authorises the client. `tell` stores the authorisation in the authorization server, in the same transaction, and returns the address to which the
 * browser continues: an authorisation that is unknown to the server could not be used, but would be listed.
 *
 * @throws ChangeRefused, `conflict` when the name is taken or another owner has decided; AuditUnavailable, and then nothing is decided
 */
export async function consentToMcpClient(
  services: Changing,
  by: ChangingOwner,
  { asked, allowed }: { asked: AskedConsent; allowed: AllowedConsent },
  tell: (tx: Db, made: MadeAuthorisation) => Promise<string>,
): Promise<{ location: string; agentId: string }> {
  const { store, clock } = services.broker;
  const { organisation_id } = by.owner;
  const choice = await choiceOf(store.db, organisation_id, allowed);
  const given = givenOf(asked, allowed);
  const change = { reason: 'mcp_client_allowed', detail: asked.client_name, agent: choice.ids };
  const location = await recordInTurn(services, by, change, async (tx, note) => {
    const now = clock();
    if (!(await useOAuthRecord(tx, asked.interaction, { now }))) throw decidedBefore();
    if (choice.as === 'new') await bear(tx, by.owner, choice, now);
    else await refuseOthers(tx, organisation_id, choice.ids.id);
    const id = uuidv4();
    const { client_id, client_name, redirect_host } = asked;
    await putMcpAuthorisation(tx, {
      organisation_id,
      id,
      agent_id: choice.ids.id,
      owner_id: by.owner.id,
      client_id,
      client_name,
      redirect_host,
      scope: given.join(' '),
      created_at: now,
      expires_at: now + AUTHORISATION_SECONDS * 1000,
    });
    await keepOAuthRecord(tx, 'Client', client_id);
    note({
      authorisation: id,
      agent: choice.ids.agent_id,
      client: client_id,
      redirect_host,
      scope: given.join(' '),
      ...(choice.as === 'new' && { granted: [...choice.grants] }),
    });
    return await tell(tx, { id, given });
  });
  return { location, agentId: choice.ids.agent_id };
}

/** Refuses the client. `tell`: see `consentToMcpClient`. Throws ChangeRefused when another owner has decided. */
export async function refuseMcpClient(
  { store, clock }: Pick<Broker, 'store' | 'clock'>,
  { interaction }: AskedConsent,
  tell: (tx: Db) => Promise<string>,
): Promise<string> {
  return await store.db.transaction().execute(async (tx) => {
    if (!(await useOAuthRecord(tx, interaction, { now: clock() }))) throw decidedBefore();
    return await tell(tx);
  });
}

async function choiceOf(
  db: Db,
  organisationId: string,
  { agent: named, name, policy, grants }: AllowedConsent,
): Promise<Choice> {
  if (name !== undefined && named === undefined)
    return { as: 'new', ids: newIds(), name, grants: grants ?? [], ...(policy !== undefined && { policy }) };
  if (name !== undefined || named === undefined)
    throw new ChangeRefused('invalid_request', 'Say either the name of a new agent, or which agent it is.');
  const agent = await findAgent(db, organisationId, named);
  if (!agent) throw new ChangeRefused('invalid_request', 'agent: the organisation has no such agent.');
  return { as: 'known', ids: { id: agent.id, agent_id: agent.agent_id } };
}

/** Returns the given ones of the requested scopes, in that order. */
function givenOf({ scope }: AskedConsent, { scopes }: AllowedConsent): readonly string[] {
  const asked = scope.split(' ');
  const foreign = scopes?.find((one) => !asked.includes(one));
  if (foreign !== undefined)
    throw new ChangeRefused('invalid_request', `scopes: the client did not ask for ${foreign}.`);
  return scopes === undefined ? asked : asked.filter((one) => scopes.includes(one));
}

/** A client may only act as an agent that was created for an MCP client, so that it cannot share an agent that has its own key. */
async function refuseOthers(db: Db, organisationId: string, id: string): Promise<void> {
  const agent = await findAgent(db, organisationId, id);
  if (agent?.agent_type !== 'mcp_client' || agent.status === 'revoked' || agent.status === 'deleted')
    throw new ChangeRefused('invalid_request', 'agent: the organisation has no such agent that an MCP client acts as.');
}

async function bear(
  db: Db,
  owner: Pick<OwnerTable, 'id' | 'organisation_id'>,
  { ids, name, policy: wanted, grants }: Extract<Choice, { as: 'new' }>,
  now: Instant,
): Promise<void> {
  const { organisation_id } = owner;
  await refuseDuplicateName(db, organisation_id, name, 'Choose another name.');
  refuseUnknownScopes(splitScopes(grants, isOffered(await loadManifests(db, organisation_id))).out);
  const policy = await choosePolicy(db, organisation_id, wanted);
  const birth = { organisation_id, ...ids, name, owner_id: owner.id, policy_id: policy?.id ?? null };
  await makeAgent(db, { ...birth, origin: 'owner', status: 'active' }, 'mcp_client', grants, now);
}

/** Returns a predicate of platform id and scope: whether an owner may give it to a client. Only scopes that the manifests name. */
export const isOffered =
  (manifests: ReadonlyMap<string, Pick<Manifest, 'scopes'>>) =>
  (platformId: string, scope: string): boolean =>
    Object.hasOwn(manifests.get(platformId)?.scopes ?? {}, scope);
