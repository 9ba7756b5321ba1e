/** An owner lets an MCP client in: the agent that it acts as, what that may do, and the authorisation, all or nothing. */

import { uuidv4 } from '../crypto/ids.ts';
import { loadManifests } from '../facts/stored-manifests.ts';
import { AUTHORISATION_SECONDS } from '../oauth-server/metadata.ts';
import type { Manifest } from '../platforms/manifest.ts';
import type { Instant, JsonObject } from '../policy/facts.ts';
import { findAgent } from '../store/agents.ts';
import { lockOrganisation } from '../store/governance.ts';
import { putMcpAuthorisation } from '../store/mcp-authorisations.ts';
import { keepOAuthRecord, useOAuthRecord } from '../store/oauth-records.ts';
import type { AgentTable, McpAuthorisationTable, OwnerTable, ScopesOn } from '../store/schema.ts';
import type { Db } from '../store/store.ts';
import { choosePolicy, makeAgent, refuseTakenName, refuseUnknownScopes, splitScopes } from './new-agent.ts';
import { ChangeRefused } from './refused.ts';

/** Of several decisions on one request the first counts. */
export const DECIDED = 'This was decided already. Go back to the application.';

/** What the client asked for, as the authorization server has it. */
export type AskedConsent = Pick<McpAuthorisationTable, 'client_id' | 'client_name' | 'redirect_host' | 'scope'> & {
  /** The stored interaction: of two decisions on it one counts. */
  interaction: { kind: string; id: string };
};

/** As which agent: a new one with these grants, or one that an MCP client was let in as before, with those that it has. */
export type ConsentChoice =
  | { as: 'new'; ids: Pick<AgentTable, 'id' | 'agent_id'>; name: string; policy?: string; grants: readonly ScopesOn[] }
  | { as: 'known'; ids: Pick<AgentTable, 'id' | 'agent_id'> };

/**
 * In a transaction. `given`: of the scopes that it asked for, those that it gets. Answers the id of the authorisation.
 * Throws ChangeRefused: `conflict` when the name is taken or somebody else has decided, `invalid_request` when a grant is of
 * nothing that there is or the agent is none of these.
 */
export async function consentToMcpClient(
  db: Db,
  owner: Pick<OwnerTable, 'id' | 'organisation_id'>,
  asked: AskedConsent,
  choice: ConsentChoice,
  given: readonly string[],
  now: Instant,
  note: (facts: JsonObject) => void,
): Promise<string> {
  const { organisation_id } = owner;
  await lockOrganisation(db, organisation_id);
  if (!(await useOAuthRecord(db, asked.interaction, { now }))) throw new ChangeRefused('conflict', DECIDED);
  if (choice.as === 'new') await bear(db, owner, choice, now);
  else await refuseOthers(db, organisation_id, choice.ids.id);
  const authorisationId = uuidv4();
  await putMcpAuthorisation(db, {
    organisation_id,
    id: authorisationId,
    agent_id: choice.ids.id,
    owner_id: owner.id,
    client_id: asked.client_id,
    client_name: asked.client_name,
    redirect_host: asked.redirect_host,
    scope: given.join(' '),
    created_at: now,
    expires_at: now + AUTHORISATION_SECONDS * 1000,
  });
  await keepOAuthRecord(db, 'Client', asked.client_id);
  note({
    authorisation: authorisationId,
    agent: choice.ids.agent_id,
    client: asked.client_id,
    redirect_host: asked.redirect_host,
    scope: given.join(' '),
    ...(choice.as === 'new' && { granted: [...choice.grants] }),
  });
  return authorisationId;
}

/** Another client may act as an agent that was made for one, and as no other: nobody gets in beside an agent's own key. */
async function refuseOthers(db: Db, organisationId: string, id: string): Promise<void> {
  const agent = await findAgent(db, organisationId, id);
  if (agent?.agent_type !== 'mcp_client' || agent.status === 'revoked' || agent.status === 'deleted')
    throw new ChangeRefused('invalid_request', 'agent: the organisation has no such agent that an MCP client acts as.');
}

async function bear(
  db: Db,
  owner: Pick<OwnerTable, 'id' | 'organisation_id'>,
  { ids, name, policy: wanted, grants }: Extract<ConsentChoice, { as: 'new' }>,
  now: Instant,
): Promise<void> {
  const { organisation_id } = owner;
  await refuseTakenName(db, organisation_id, name, 'Choose another name.');
  refuseUnknownScopes(splitScopes(grants, isOffered(await loadManifests(db, organisation_id))).out);
  const policy = await choosePolicy(db, organisation_id, wanted);
  const birth = { organisation_id, ...ids, name, owner_id: owner.id, policy_id: policy?.id ?? null };
  await makeAgent(db, { ...birth, origin: 'owner', status: 'active' }, null, grants, now);
}

/** `(platform id, scope)` → whether an owner may let a client have it: what the manifests name, and nothing else. */
export const isOffered =
  (manifests: ReadonlyMap<string, Pick<Manifest, 'scopes'>>) =>
  (platformId: string, scope: string): boolean =>
    Object.hasOwn(manifests.get(platformId)?.scopes ?? {}, scope);
