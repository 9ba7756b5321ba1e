/** Explains why an agent cannot use a scope now, by the decision for calls and by the connection that they would use. */

import type { Uses } from '../../broker.ts';
import { connectionLack } from '../../calls/connect.ts';
import { connectionOf, type Usability, usabilityOf } from '../../facts/connection-facts.ts';
import type { FactsLoader, LoadedFacts } from '../../facts/facts.ts';
import { accessTo } from '../../policy/access.ts';
import { connectionChoices, effectiveGrant } from '../../policy/attenuation.ts';
import { decide } from '../../policy/decide.ts';
import type { Ask, DenyReason, Instant } from '../../policy/facts.ts';
import { didYouMean } from '../../runtime/did-you-mean.ts';
import { present } from '../../runtime/present.ts';
import { listConnections } from '../../store/connections.ts';
import type { FactsRow } from '../../store/facts-columns.ts';
import type { FactsReader } from '../../store/facts-reader.ts';
import type { AgentTable } from '../../store/tables/agents.ts';
import type { AccessRequestTable } from '../../store/tables/rules.ts';
import { inGovernanceFile } from '../governance-file.ts';

export type ReasonCode = AccessRequestTable['reason_code'];

/** `detail` is a sentence without its full stop. */
export type Standing =
  | { kind: 'unknown_platform' }
  | { kind: 'usable'; detail: string }
  | { kind: 'missing'; reason: ReasonCode; detail: string }
  | { kind: 'refused'; detail: string };

type Rows = readonly FactsRow[];

/** Facts, and the connections that a first grant could use. */
type Known = LoadedFacts & { grantable: readonly Usability[] };

/**
 * Returns whether an agent lacks a scope, and whether its owners could grant it. Without a scope: the best result of any scope of the platform.
 *
 * @param rows the facts about the agent and that platform
 */
export async function standingOf(
  services: Uses<'store'> & { loadFacts: FactsLoader },
  rows: Rows,
  asked: { platformId: string; scope: string | undefined },
  now: Instant,
): Promise<Standing> {
  const { platformId, scope } = asked;
  const loaded = await services.loadFacts(rows, now);
  const { platform } = loaded.facts;
  if (!platform) return { kind: 'unknown_platform' };
  const known = { ...loaded, grantable: await grantableConnections(services, rows, platformId) };
  if (scope === undefined) return standingOnPlatform(known, platformId, now);
  const standing = standingOfScope(known, { platformId, scope }, now);
  if (standing.kind !== 'refused' || platform.rules.scopes.has(scope)) return standing;
  const detail = `${standing.detail}.${didYouMean(scope, platform.rules.scopes.keys())}`;
  return { kind: 'refused', detail: detail.replace(/\.$/, '') };
}

/**
 * Returns the platform's default connection, else all its connections: without a default, the owner chooses one for the grant. For an agent without a
 * grant, the rows contain the default connection.
 */
async function grantableConnections(
  { broker }: Uses<'store'>,
  rows: Rows,
  platformId: string,
): Promise<readonly Usability[]> {
  const row = present(rows[0], 'agent');
  const connection = connectionOf(row);
  if (connection !== undefined) return [connection];
  const all = await listConnections(broker.store.db, row.organisation_id);
  return all.filter((one) => one.platform_id === platformId).map(usabilityOf);
}

/** When a call has to name a connection: the best result of any connection. */
function standingOfScope(known: Known, ask: Ask, now: Instant): Standing {
  const { platform, grants } = known.facts;
  const choices = connectionChoices(grants, ask, present(platform, 'platform').defaultConnectionId);
  if (choices.length === 0) return standingThrough(known, ask, now);
  const standings = choices.map(({ connectionId, connection }): Standing => {
    const standing = standingThrough(known, { ...ask, connectionId: present(connectionId, 'connection') }, now);
    if (standing.kind !== 'usable') return standing;
    const name = connection ? `${connectionId} (${connection.label})` : connectionId;
    return { kind: 'usable', detail: `${standing.detail}, with connection_id ${name}` };
  });
  return bestOf(standings);
}

/** Combines the result of the decision with the state of its connection. An owner can change either. */
function standingThrough(known: Known, ask: Ask, now: Instant): Standing {
  const { platformId } = ask;
  const access = accessTo(known.facts, ask, now);
  if (access.kind === 'refused') return access;
  const lack = lackOf(known, ask);
  if (lack === 'platform_not_connected')
    return { kind: 'missing', reason: 'not_connected', detail: `no connection of ${platformId} can be used` };
  if (access.kind === 'missing' || lack === undefined) return access;
  return lack === 'needs_consent'
    ? {
        kind: 'missing',
        reason: 'needs_consent',
        detail: `the connection of ${platformId} was granted less than it needs`,
      }
    : {
        kind: 'missing',
        reason: 'not_connected',
        detail: `${platformId} refused the credential of its connection, which has to be connected again`,
      };
}

/** Order of precedence when no scope or connection was named, the best first. */
const TELLING: readonly (ReasonCode | 'usable')[] = [
  'usable',
  'needs_consent',
  'not_connected',
  'grant_expired',
  'not_granted',
  'scope_denied',
];

/** Returns the best result. `standings`: at least one. */
function bestOf<T extends Standing>(standings: readonly T[]): T {
  const rank = (one: Standing) =>
    one.kind === 'missing'
      ? TELLING.indexOf(one.reason)
      : one.kind === 'usable'
        ? TELLING.indexOf('usable')
        : TELLING.length;
  return present(standings.toSorted((a, b) => rank(a) - rank(b))[0], 'standing');
}

function standingOnPlatform(known: Known, platformId: string, now: Instant): Standing {
  const { facts } = known;
  const scopes = new Set([
    ...present(facts.platform, 'platform').rules.scopes.keys(),
    ...facts.grants.flatMap((grant) => grant.scopes),
  ]);
  const all = [...scopes].map((scope) => ({
    scope,
    ...standingOfScope(known, { platformId, scope }, now),
  }));
  if (all.length === 0) return { kind: 'refused', detail: `${platformId} has no scope that could be granted` };
  const best = bestOf(all);
  if (best.kind !== 'usable') return best;
  const usable = all.filter(({ kind }) => kind === 'usable').map((one) => one.scope);
  return {
    kind: 'usable',
    detail: `the agent can already use ${usable.join(', ')} on this platform. Name the scope that it needs`,
  };
}

/** On a platform with tokens per person, the shared connection is not relevant. */
function lackOf({ facts, platform, connections, grantable }: Known, ask: Ask) {
  const { manifest } = present(platform, 'platform');
  if (manifest.per_person?.enabled) return undefined;
  const grant = effectiveGrant(facts, ask);
  if (grant !== undefined) return connectionLack(manifest, connections.get(grant.id), ask.scope);
  const lacks = grantable.map((connection) => connectionLack(manifest, connection, ask.scope));
  if (lacks.includes(undefined)) return undefined;
  return LACKS.find((lack) => lacks.includes(lack)) ?? 'platform_not_connected';
}

/** In order of precedence: the easiest to fix comes first. */
const LACKS = ['needs_consent', 'platform_reauth_needed'] as const;

/** A reason, which an owner can remove, why a granted scope cannot be used yet. */
export type Remaining = {
  reason: DenyReason | 'platform_not_connected' | 'platform_reauth_needed' | 'needs_consent' | 'governance_file';
  detail: string;
};

/** Returns the steps that remain before an agent can use what it was granted; empty when there are none. */
export async function remainingSteps(
  services: { facts: FactsReader; loadFacts: FactsLoader } & Uses<'store'>,
  agent: Pick<AgentTable, 'organisation_id' | 'agent_id' | 'origin'>,
  granted: { platformId: string; scopes: readonly string[]; connectionId: string | null },
  now: Instant,
): Promise<Remaining[]> {
  const { platformId, connectionId } = granted;
  const rows = await services.facts(agent.agent_id, platformId, '');
  const loaded = rows.length === 0 ? undefined : await services.loadFacts(rows, now);
  if (!loaded?.platform) return [];
  const denied = new Map<string, { reason: DenyReason; detail: string; scopes: string[] }>();
  const found: Remaining[] = [];
  for (const scope of granted.scopes) {
    const ask = { platformId, scope, ...(connectionId !== null && { connectionId }) };
    const verdict = decide({ ...loaded.facts, breakers: [] }, ask, now);
    if (verdict.kind === 'deny') {
      const { reason, detail } = verdict;
      const same = denied.get(`${reason} ${detail}`)?.scopes ?? [];
      denied.set(`${reason} ${detail}`, { reason, detail, scopes: [...same, scope] });
      continue;
    }
    const lack = lackOf({ ...loaded, grantable: [] }, ask);
    if (lack !== undefined) found.push({ reason: lack, detail: toConnect(lack, platformId, scope) });
  }
  // One step for all scopes that are denied for the same reason: a grant may have a hundred.
  for (const { reason, detail, scopes } of denied.values())
    found.push({ reason, detail: `${scopes.join(', ')}: ${detail}.` });
  if ((await inGovernanceFile(services.broker.store.db, agent.organisation_id, [agent])).length > 0)
    found.push({
      reason: 'governance_file',
      detail:
        'A governance file decides about this agent: write the grant there, too; otherwise the next apply removes it.',
    });
  return [...new Map(found.map((one) => [one.detail, one])).values()];
}

/** Returns what an owner does about a connection that cannot be used, in a sentence. */
export function toConnect(
  lack: NonNullable<ReturnType<typeof connectionLack>>,
  platformId: string,
  scope: string,
): string {
  switch (lack) {
    case 'needs_consent':
      return `Connect ${platformId} again and consent to more: ${scope} needs it.`;
    case 'platform_reauth_needed':
      return `Connect ${platformId} again: it refused the credential of this connection.`;
    case 'platform_not_connected':
      return `Connect ${platformId}: calls have no connection of it that they could use.`;
  }
}
