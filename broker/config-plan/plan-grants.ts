/** Plans grants of one agent: compared by platform and connection, so that changed terms are an update of the same grant. */

import { limitsReposFirst } from '../admin/grants/grant-terms.ts';
import { difference, listDifference } from '../config-file/differences.ts';
import { expiryOf } from '../config-file/expiry.ts';
import { entriesOf, termsOf } from '../config-file/governance.ts';
import { listNames, type Path } from '../config-file/problems.ts';
import type { AgentEntry } from '../config-file/schema.ts';
import type { GrantTerms } from '../config-file/terms.ts';
import { uuidv4 } from '../crypto/ids.ts';
import { NOT_ON_PLAN } from '../entitlement.ts';
import type { Constraints } from '../policy/facts.ts';
import { readConstraints, readScopes } from '../store/stored-terms.ts';
import type { AgentTable } from '../store/tables/agents.ts';
import type { GrantTable } from '../store/tables/rules.ts';
import { addNew, addTogether, type Planning } from './planning.ts';

type Wanted = { platformId: string; terms: GrantTerms; connectionId: string | null; path: Path };

export function planGrants(
  planning: Planning,
  agent: AgentTable,
  grants: AgentEntry['grants'],
  existed: boolean,
): void {
  const left = existed ? [...(planning.present.grants.get(agent.id) ?? [])] : [];
  const take = (wanted: Wanted, matches: (grant: GrantTable) => boolean): GrantTable | undefined => {
    const at = left.findIndex((grant) => grant.platform_id === wanted.platformId && matches(grant));
    return at < 0 ? undefined : left.splice(at, 1)[0];
  };
  const wanted = wantedGrants(planning, agent, grants);
  const exact = wanted.map((one) => ({ one, known: take(one, (grant) => grant.connection_id === one.connectionId) }));
  // Remaining grants of the platform get another connection, instead of being removed and created.
  const matched = exact.map(({ one, known }) => ({ one, known: known ?? take(one, () => true) }));
  for (const grant of left) planRemoval(planning, agent, grant);
  for (const { one, known } of matched) planGrant(planning, agent, one, known);
}

/** Keeps the grants of an agent that does not change. */
export function keepGrants(planning: Planning, agent: AgentTable, live: boolean): void {
  for (const grant of planning.present.grants.get(agent.id) ?? []) {
    const { platform_id: platformId, connection_id: connectionId } = grant;
    planning.futureGrants.push({ agent: agent.name, platformId, connectionId, live });
    if (live) warnOfLostScopes(planning, agent, grant);
  }
}

/** Removes all grants of an agent. */
export function removeGrants(planning: Planning, agent: AgentTable): void {
  for (const grant of planning.present.grants.get(agent.id) ?? []) planRemoval(planning, agent, grant);
}

function warnOfLostScopes(planning: Planning, agent: AgentTable, grant: GrantTable): void {
  const manifest = planning.governance.manifests.get(grant.platform_id);
  if (!manifest || manifest.kind === 'mcp') return;
  const lost = readScopes(grant.scopes, grant.id).filter((scope) => !Object.hasOwn(manifest.scopes, scope));
  if (lost.length === 0) return;
  planning.warnings.push({
    path: ['platforms', grant.platform_id, 'scopes'],
    message: `"${agent.name}" is granted ${listNames(lost)}, which this platform does not have: these scopes allow nothing.`,
  });
}

function wantedGrants(planning: Planning, agent: AgentTable, grants: AgentEntry['grants']): Wanted[] {
  const wanted: Wanted[] = [];
  for (const [platformId, some] of entriesOf(grants)) {
    for (const { terms, path } of termsOf(some)) {
      const connectionId = terms.connection === undefined ? null : planning.connectionIds.get(terms.connection);
      // A problem was already added for a connection that does not exist.
      if (connectionId === undefined) continue;
      wanted.push({ platformId, terms, connectionId, path: ['agents', agent.name, 'grants', platformId, ...path] });
    }
  }
  return wanted;
}

function planGrant(planning: Planning, agent: AgentTable, wanted: Wanted, known: GrantTable | undefined): void {
  const { organisationId, now } = planning;
  const { platformId, terms, connectionId, path } = wanted;
  planning.futureGrants.push({ agent: agent.name, platformId, connectionId, live: true });
  const grant: GrantTable = {
    organisation_id: organisationId,
    id: known?.id ?? uuidv4(),
    agent_id: agent.id,
    platform_id: platformId,
    connection_id: connectionId,
    scopes: JSON.stringify(terms.scopes),
    constraints: JSON.stringify(constraintsOf(terms)),
    require_approval: terms.require_approval ? 1 : 0,
    ...expiryOf(terms.expires, known, now),
    created_at: known?.created_at ?? now,
  };
  if (grant.expires_at !== null && grant.expires_at <= now)
    planning.warnings.push({
      path: [...path, 'expires'],
      message: `ended on ${new Date(grant.expires_at).toISOString()}; write another span or moment to renew it.`,
    });
  if (!planning.mayLimitRepos && limitsReposFirst(known, grant))
    planning.problems.push({ path: [...path, 'repos'], message: NOT_ON_PLAN.repository_constraints });
  const details = grantDifference(planning, known, grant);
  if (details.length === 0) return;
  const name = nameOf(planning, agent, grant);
  if (known) {
    const change = { action: 'update' as const, kind: 'grant' as const, name, details };
    addTogether(planning, change, ({ changedGrants }) => changedGrants.push(grant));
  } else addNew(planning, { action: 'create', kind: 'grant', name, details }, 'grants', grant);
}

function planRemoval(planning: Planning, agent: AgentTable, grant: GrantTable): void {
  const details = [`scopes: ${readScopes(grant.scopes, grant.id).join(', ')}`];
  const name = nameOf(planning, agent, grant);
  addTogether(planning, { action: 'delete', kind: 'grant', name, details }, ({ removedGrants }) =>
    removedGrants.push(grant.id),
  );
}

function constraintsOf({ recipients, repos, allow_repo_creation, refs, ref_changes }: GrantTerms): Constraints {
  return {
    ...(recipients && { recipients }),
    ...(repos && { repos }),
    ...(allow_repo_creation && { allow_repo_creation }),
    ...(refs && { refs }),
    ...(ref_changes && { ref_changes }),
  };
}

/** What a limit is called that is absent, and one that is empty. */
const LIMIT_WORDS = {
  recipients: ['anybody', 'nobody'],
  repos: ['all', 'no repository'],
  refs: ['all', 'no ref'],
  ref_changes: ['all', 'no change'],
} as const;

/** Lists are compared as sets: their order has no meaning. */
function grantDifference(planning: Planning, known: GrantTable | undefined, grant: GrantTable): string[] {
  const [before, after] = [
    known && readConstraints(known.constraints, known.id),
    readConstraints(grant.constraints, grant.id),
  ];
  const connection = (id: string | null) =>
    [...planning.connectionIds].find(([, known]) => known === id)?.[0] ?? (id === null ? 'the default' : id);
  const limit = (field: 'recipients' | 'repos' | 'refs' | 'ref_changes') => {
    const [old, now] = [before?.[field], after[field]];
    if (old?.length && now?.length) return listDifference(field, old, now);
    // An absent limit allows everything and an empty one nothing, so neither is shown as "none".
    const [absent, empty] = LIMIT_WORDS[field];
    const words = (list: readonly string[] | undefined) =>
      list === undefined ? absent : list.length === 0 ? empty : list;
    return difference(field, known && words(old), known || now ? words(now) : undefined);
  };
  return [
    ...listDifference('scopes', known ? readScopes(known.scopes, known.id) : [], readScopes(grant.scopes, grant.id)),
    ...(known ? difference('connection', connection(known.connection_id), connection(grant.connection_id)) : []),
    ...difference('require_approval', (known?.require_approval ?? 0) === 1, grant.require_approval === 1),
    ...limit('recipients'),
    ...limit('repos'),
    ...difference('allow_repo_creation', before?.allow_repo_creation ?? false, after.allow_repo_creation ?? false),
    ...limit('refs'),
    ...limit('ref_changes'),
    ...(known?.expires_at === grant.expires_at && known.expires_text === grant.expires_text
      ? []
      : difference('expires', expiryWords(known), expiryWords(grant))),
  ];
}

function expiryWords(grant: GrantTable | undefined): string | undefined {
  if (!grant || grant.expires_at === null) return undefined;
  const moment = new Date(grant.expires_at).toISOString();
  return grant.expires_text === null || /T/i.test(grant.expires_text) ? moment : `${grant.expires_text} (${moment})`;
}

function nameOf(planning: Planning, agent: AgentTable, grant: GrantTable): string {
  const connection = [...planning.connectionIds].find(([, id]) => id === grant.connection_id)?.[0];
  return `${agent.name} on ${grant.platform_id}${connection === undefined ? '' : ` (${connection})`}`;
}
