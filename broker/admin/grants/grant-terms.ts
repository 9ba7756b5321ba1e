/** Applies an owner's patch to a grant, validated by the rules of governance files. */

import type { Uses } from '../../broker.ts';
import { checkReferences } from '../../config-file/check-references.ts';
import type { GrantTerms } from '../../config-file/terms.ts';
import { uuidv4 } from '../../crypto/ids.ts';
import type { Compiled } from '../../facts/compiled.ts';
import { grantOf } from '../../facts/facts.ts';
import type { Manifest } from '../../platforms/manifest.ts';
import { PlatformId } from '../../platforms/manifest-fields.ts';
import { connectionChoices, selectGrant } from '../../policy/attenuation.ts';
import type { Constraints, Instant, JsonObject } from '../../policy/facts.ts';
import { findAgent, listGrants } from '../../store/agents.ts';
import { listConnections } from '../../store/connections.ts';
import { findPlatform } from '../../store/governed-versions.ts';
import type { Db } from '../../store/store.ts';
import { readConstraints, readScopes } from '../../store/stored-terms.ts';
import type { AgentTable } from '../../store/tables/agents.ts';
import type { ConnectionTable } from '../../store/tables/connections.ts';
import type { GrantTable } from '../../store/tables/rules.ts';
import { ChangeRefused } from '../refused.ts';

/** Absent members stay unchanged. */
export type GrantPatch = {
  /** Absent: the grant that a call without a connection uses. */
  connectionId?: string;
  /** All scopes of the grant, or scopes to add. */
  scopes?: { all: readonly string[] } | { more: readonly string[] };
  /** Duration from now, in milliseconds; null: no expiry. */
  lastsMs?: number | null;
  requireApproval?: boolean;
  /** For these members null removes the limit. */
  recipients?: readonly string[] | null;
  repos?: readonly string[] | null;
  allowRepoCreation?: boolean;
  refs?: Constraints['refs'] | null;
  refChanges?: Constraints['ref_changes'] | null;
};

/** The context of a grant: the agent, the platform, and its connections. */
export type GrantContext = {
  agent: AgentTable;
  platformId: string;
  manifest: Manifest;
  connections: readonly ConnectionTable[];
};

/** Loads the context. `no_agent`, `no_platform`: the organisation has none with this id. */
export async function findGrantContext(
  { broker, compiled }: Uses<'store'> & { compiled: Compiled },
  organisationId: string,
  agentId: string,
  platformId: string,
): Promise<GrantContext | 'no_agent' | 'no_platform'> {
  const { db } = broker.store;
  const agent = await findAgent(db, organisationId, agentId);
  if (!agent || agent.status === 'deleted') return 'no_agent';
  const platform = await findPlatform(db, organisationId, platformId);
  if (!platform) return 'no_platform';
  const { manifest } = await compiled.platform(organisationId, platformId, platform.version);
  return { agent, platformId, manifest, connections: await listConnections(db, organisationId) };
}

/** Loads the context for an owner's command. Throws ChangeRefused. */
export async function loadGrantContext(
  services: Uses<'store'> & { compiled: Compiled },
  organisationId: string,
  agentId: string,
  platformId: string,
): Promise<GrantContext> {
  const isName = PlatformId.safeParse(platformId).success;
  const context = isName ? await findGrantContext(services, organisationId, agentId, platformId) : 'no_platform';
  if (context === 'no_agent') throw new ChangeRefused('not_found', 'The organisation has no such agent.');
  if (context === 'no_platform') throw new ChangeRefused('not_found', 'The organisation has no such platform.');
  return context;
}

/** Whether an agent is revoked, or was also deleted. */
export const isRevoked = ({ status }: Pick<AgentTable, 'status'>): boolean =>
  status === 'revoked' || status === 'deleted';

/** Throws ChangeRefused for a revoked agent: it can be granted nothing. */
export function refuseRevoked(agent: Pick<AgentTable, 'status'>): void {
  if (isRevoked(agent))
    throw new ChangeRefused('conflict', 'This agent is revoked permanently: it can no longer be granted anything.');
}

/** Validates the terms of a grant by the rules of governance files. Throws ChangeRefused; returns warnings, in sentences. */
export function checkTerms(context: GrantContext, terms: Partial<GrantTerms>): string[] {
  const { agent, platformId, manifest, connections } = context;
  refuseRevoked(agent);
  const grants = { [platformId]: { ...terms, scopes: terms.scopes ?? [] } };
  const { problems, warnings } = checkReferences(
    { agents: { agent: { grants } } },
    {
      platforms: new Map([[platformId, manifest]]),
      connections: new Map(
        connections.map((one) => [one.label, { platform: one.platform_id, isDefault: one.is_default === 1 }]),
      ),
      policies: undefined,
      owners: undefined,
    },
  );
  const said = ({ path, message }: (typeof problems)[number]) => {
    const where = path.slice(4).join('.');
    return where === '' ? message : `${where}: ${message}`;
  };
  const [first] = problems;
  if (first) throw new ChangeRefused('invalid_request', said(first));
  return warnings.map(said);
}

/**
 * Finds the grant on a connection of a platform, or the one that calls without a connection use. Throws ChangeRefused when there is no such
 * connection, or when the connection has to be named because several grants match.
 */
export async function findGrant(
  db: Db,
  { agent, platformId }: GrantContext,
  connectionId: string | undefined,
): Promise<GrantTable | undefined> {
  const grants = await listGrants(db, agent.organisation_id, agent.id);
  const connections = (await listConnections(db, agent.organisation_id)).filter(
    (one) => one.platform_id === platformId,
  );
  if (connectionId !== undefined && !connections.some(({ id }) => id === connectionId))
    throw new ChangeRefused('invalid_request', `connection_id: ${platformId} has no such connection.`);
  const ask = { platformId, scope: '', ...(connectionId !== undefined && { connectionId }) };
  const standard = connections.find((one) => one.is_default === 1);
  const held = grants.map(grantOf);
  const choices = connectionChoices(held, ask, standard?.id ?? null);
  if (choices.length > 0) {
    const labels = choices.map((one) => connections.find(({ id }) => id === one.connectionId)?.label ?? '');
    throw new ChangeRefused(
      'conflict',
      `The agent has grants on several connections of ${platformId} (${labels.sort().join(', ')}) and none on its default one: calls have to name a connection there. Say which grant is meant.`,
    );
  }
  const found = selectGrant(held, ask, standard?.id ?? null);
  return grants.find(({ id }) => id === found?.id);
}

/** Applies the patch to the grant. Throws ChangeRefused. */
export function changedGrant(
  { agent, platformId }: GrantContext,
  before: GrantTable | undefined,
  patch: GrantPatch,
  now: Instant,
): GrantTable {
  const { scopes, lastsMs } = patch;
  const held: readonly string[] = before ? readScopes(before.scopes, before.id) : [];
  if (!before && !scopes) throw new ChangeRefused('invalid_request', 'scopes: a new grant needs some.');
  const wanted = scopes === undefined ? held : 'all' in scopes ? scopes.all : [...held, ...scopes.more];
  const limits = before ? readConstraints(before.constraints, before.id) : {};
  return {
    organisation_id: agent.organisation_id,
    id: before?.id ?? uuidv4(),
    agent_id: agent.id,
    platform_id: platformId,
    connection_id: before ? before.connection_id : (patch.connectionId ?? null),
    scopes: JSON.stringify([...new Set(wanted)]),
    constraints: JSON.stringify(changedLimits(limits, patch)),
    require_approval: (patch.requireApproval ?? before?.require_approval === 1) ? 1 : 0,
    expires_at: lastsMs === undefined ? (before?.expires_at ?? null) : lastsMs === null ? null : now + lastsMs,
    // The text of a governance file is kept only while the expiry is the file's.
    expires_text: lastsMs === undefined ? (before?.expires_text ?? null) : null,
    created_at: before?.created_at ?? now,
  };
}

function changedLimits(before: Constraints, patch: GrantPatch): Constraints {
  const recipients = patch.recipients === undefined ? before.recipients : (patch.recipients ?? undefined);
  const repos = patch.repos === undefined ? before.repos : (patch.repos ?? undefined);
  const creation = patch.allowRepoCreation ?? before.allow_repo_creation;
  const refs = patch.refs === undefined ? before.refs : (patch.refs ?? undefined);
  const changes = patch.refChanges === undefined ? before.ref_changes : (patch.refChanges ?? undefined);
  return {
    ...(recipients && { recipients }),
    ...(repos && { repos }),
    ...(creation && { allow_repo_creation: true }),
    ...(refs && { refs }),
    ...(changes && { ref_changes: changes }),
  };
}

/** Whether a grant becomes limited to repositories that was not before. `before`: undefined when it is new. */
export function limitsReposFirst(before: GrantTable | undefined, after: GrantTable): boolean {
  const limits = (grant: GrantTable | undefined) =>
    grant !== undefined && limitsRepos(readConstraints(grant.constraints, grant.id));
  return limits(after) && !limits(before);
}

/** Whether these constraints limit repositories (specification, Repository constraint). */
export const limitsRepos = ({ repos, allow_repo_creation: creation }: Constraints): boolean =>
  repos !== undefined || creation === true;

/** Describes a grant for the event. Recipients are confidential, so only their number is included. */
export function describeGrant(grant: GrantTable): JsonObject {
  const { recipients, repos, allow_repo_creation, refs, ref_changes } = readConstraints(grant.constraints, grant.id);
  return {
    grant_id: grant.id,
    connection_id: grant.connection_id,
    scopes: readScopes(grant.scopes, grant.id),
    require_approval: grant.require_approval === 1,
    expires_at: grant.expires_at === null ? null : new Date(grant.expires_at).toISOString(),
    ...(recipients && { recipients: recipients.length }),
    ...(repos && { repos: [...repos] }),
    ...(allow_repo_creation && { allow_repo_creation }),
    ...(refs && { refs: [...refs] }),
    ...(ref_changes && { ref_changes: [...ref_changes] }),
  };
}
