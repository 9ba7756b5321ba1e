/** Creates an agent from a registration, from an invite or for an admin: its row and its grants. */

import type { Uses } from '../../broker.ts';
import { newAgentId, uuidv4 } from '../../crypto/ids.ts';
import type { AgentPublicKey } from '../../crypto/public-key.ts';
import { isEntitled, NOT_ON_PLAN } from '../../entitlement.ts';
import { loadManifests } from '../../facts/stored-manifests.ts';
import { DEFAULT_POLICY } from '../../policy/default-policy.ts';
import type { Instant } from '../../policy/facts.ts';
import { findLiveAgentNamed, putAgent, putGrant } from '../../store/agents.ts';
import { findPolicy } from '../../store/policies.ts';
import type { Db } from '../../store/store.ts';
import type { AgentTable } from '../../store/tables/agents.ts';
import type { ScopesOn } from '../../store/tables/registrations.ts';
import type { PolicyTable } from '../../store/tables/rules.ts';
import { checkRecipients, type GrantedOn, limitsAnyRepos, termsOf } from '../grants/granted-terms.ts';
import { ChangeRefused } from '../refused.ts';

/** Merges scopes, so that each platform and each scope occurs once. */
export function mergeScopes(wanted: readonly ScopesOn[]): ScopesOn[] {
  const byPlatform = new Map<string, Set<string>>();
  for (const { platformId, scopes } of wanted) {
    const known = byPlatform.get(platformId) ?? new Set();
    byPlatform.set(platformId, known);
    for (const scope of scopes) known.add(scope);
  }
  return [...byPlatform].map(([platformId, scopes]) => ({ platformId, scopes: [...scopes] }));
}

/** Partitions scopes by a predicate; platforms without a scope are left out. */
export function splitScopes<Wanted extends ScopesOn>(
  wanted: readonly Wanted[],
  stands: (platformId: string, scope: string) => boolean,
): { in: Wanted[]; out: Wanted[] } {
  const part = (which: boolean) =>
    wanted
      .map((one) => ({ ...one, scopes: one.scopes.filter((scope) => stands(one.platformId, scope) === which) }))
      .filter(({ scopes }) => scopes.length > 0);
  return { in: part(true), out: part(false) };
}

/** Partitions scopes by whether the organisation's platforms have them; scopes of MCP servers are not checked. */
export async function knownScopes<Wanted extends ScopesOn>(db: Db, organisationId: string, wanted: readonly Wanted[]) {
  const platforms = await loadManifests(db, organisationId);
  return splitScopes(wanted, (platformId, scope) => {
    const manifest = platforms.get(platformId);
    return manifest !== undefined && (manifest.kind === 'mcp' || Object.hasOwn(manifest.scopes, scope));
  });
}

/** `out`: scopes that no platform has. Throws ChangeRefused with the first of them. */
export function refuseUnknownScopes([unknown]: readonly ScopesOn[]): void {
  if (unknown)
    throw new ChangeRefused(
      'invalid_request',
      `grants: no platform ${unknown.platformId} of the organisation has the scope ${unknown.scopes[0]}.`,
    );
}

/** Returns the policy with this id or name; without one, the organisation's default. Throws ChangeRefused when there is none with this id or name. */
export async function choosePolicy(db: Db, organisationId: string, idOrName: string | undefined) {
  const policy = await findPolicy(db, organisationId, idOrName ?? DEFAULT_POLICY);
  if (!policy && idOrName !== undefined)
    throw new ChangeRefused('invalid_request', 'policy: the organisation has none of this id or name.');
  return policy;
}

/** Refuses a name that another agent has, because people and governance files would confuse them. Throws ChangeRefused. */
export async function refuseDuplicateName(
  db: Db,
  organisationId: string,
  name: string,
  whatToDo: string,
  code: 'conflict' | 'token_used' = 'conflict',
): Promise<void> {
  const namesake = await findLiveAgentNamed(db, organisationId, name);
  if (namesake)
    throw new ChangeRefused(
      code,
      `There is an agent ${JSON.stringify(name)} (${namesake.agent_id}) already. ${whatToDo}`,
    );
}

/** Generates the ids of a new agent. */
export const newIds = () => ({ id: uuidv4(), agent_id: newAgentId() });

/** The values of an agent that are known before it is created. `status`: `pending` until its key is collected. */
type NewAgentValues = Pick<
  AgentTable,
  'organisation_id' | 'id' | 'agent_id' | 'name' | 'owner_id' | 'policy_id' | 'origin' | 'status'
>;

type OwnKey = Pick<AgentPublicKey, 'pem' | 'fingerprint'>;

/** Builds the row of a new agent that is not a child. `key`: undefined when it has none of its own, or not yet. */
export const agentRow = (
  birth: NewAgentValues,
  agent_type: AgentTable['agent_type'],
  key: OwnKey | undefined,
  now: Instant,
): AgentTable => ({
  ...birth,
  agent_type,
  status_since: now,
  status_cause: null,
  status_detail: null,
  parent_id: null,
  public_key_pem: key?.pem ?? null,
  key_fingerprint: key?.fingerprint ?? null,
  created_at: now,
  expires_at: null,
  former_owners: null,
  labels: null,
});

/** A new agent, as an admin describes it. */
export type NewAgent = { name: string; policy?: string; grants: readonly GrantedOn[] };

/** Returns the policy of the new agent. Throws ChangeRefused when the agent cannot be created. */
export async function checkNewAgent(
  { broker }: Uses<'config'>,
  db: Db,
  organisationId: string,
  { name, policy: policyName, grants }: NewAgent,
): Promise<PolicyTable | undefined> {
  const policy = await choosePolicy(db, organisationId, policyName);
  await refuseDuplicateName(db, organisationId, name, 'Choose another name.');
  const { out } = await knownScopes(db, organisationId, grants);
  refuseUnknownScopes(out);
  checkRecipients(grants, await loadManifests(db, organisationId));
  if (limitsAnyRepos(grants) && !isEntitled(broker, organisationId, 'repository_constraints'))
    throw new ChangeRefused('not_on_plan', NOT_ON_PLAN.repository_constraints);
  return policy;
}

/**
 * Creates an agent with its key and its grants. To be called in a transaction. In place of a key: `mcp_client` for an agent that the broker itself
 * authenticates, `workload` for one that is authenticated by its platform's tokens.
 */
export async function makeAgent(
  db: Db,
  birth: NewAgentValues,
  identity: OwnKey | 'mcp_client' | 'workload',
  grants: readonly GrantedOn[],
  now: Instant,
): Promise<void> {
  const key = typeof identity === 'string' ? undefined : identity;
  const type = identity === 'mcp_client' ? identity : identity === 'workload' ? null : 'key';
  await putAgent(db, agentRow(birth, type, key, now));
  for (const granted of grants)
    await putGrant(db, {
      organisation_id: birth.organisation_id,
      id: uuidv4(),
      agent_id: birth.id,
      platform_id: granted.platformId,
      connection_id: null,
      scopes: JSON.stringify(granted.scopes),
      ...termsOf(granted, now),
      expires_text: null,
      created_at: now,
    });
}
