/** What stands between an agent and a scope today: the decision that calls get, and the connection that they would use. */
import { type Access, accessTo } from '../decision/access.ts';
import { effectiveGrant } from '../decision/attenuation.ts';
import { decide } from '../decision/decide.ts';
import type { Ask, DenyReason, Instant } from '../decision/facts.ts';
import { didYouMean } from '../governance/near.ts';
import type { FactsRow } from '../store/facts.ts';
import type { AccessRequestTable, AgentTable } from '../store/schema.ts';
import { connectionLack } from './connect.ts';
import { connectionOf, type LoadedFacts } from './facts.ts';
import type { Governor } from './governor.ts';

export type ReasonCode = AccessRequestTable['reason_code'];

/** `detail` is a sentence without its full stop. */
export type Standing =
  | { kind: 'unknown_platform' }
  | { kind: 'usable'; detail: string }
  | { kind: 'missing'; reason: ReasonCode; detail: string }
  | { kind: 'refused'; detail: string };

type Rows = readonly FactsRow[];

/**
 * Whether an agent lacks a scope, and whether its owners could give it. Without a scope: the platform as a whole, as the
 * best that can be said of any of its scopes.
 *
 * @param rows the facts about the agent and that platform
 */
export async function standingOf(
  governor: Pick<Governor, 'loadFacts'>,
  rows: Rows,
  asked: { platformId: string; scope: string | undefined },
  now: Instant,
): Promise<Standing> {
  const { platformId, scope } = asked;
  const loaded = await governor.loadFacts(rows, platformId, now);
  const { platform } = loaded.facts;
  if (!platform) return { kind: 'unknown_platform' };
  if (scope === undefined) return standingOnPlatform(loaded, rows, platformId, now);
  const access = accessTo(loaded.facts, { platformId, scope }, now);
  const lack = lackOf(loaded, rows, { platformId, scope });
  if (access.kind === 'refused') {
    const known = platform.rules.scopes;
    const detail = known.has(scope) ? access.detail : `${access.detail}.${didYouMean(scope, known.keys())}`;
    return { kind: 'refused', detail: detail.replace(/\.$/, '') };
  }
  if (access.kind === 'missing' && lack === 'platform_not_connected')
    return {
      kind: 'refused',
      detail: `${platformId} is not connected, so there is nothing to grant. Ask for the platform itself first, without a scope`,
    };
  return withLack(access, lack, platformId);
}

/** The same access, if its connection is there for it. */
function withLack(access: Access, lack: ReturnType<typeof connectionLack>, platformId: string): Standing {
  if (access.kind !== 'usable' || lack === undefined) return access;
  return lack === 'needs_consent'
    ? {
        kind: 'missing',
        reason: 'needs_consent',
        detail: `the connection of ${platformId} was granted less than it needs`,
      }
    : { kind: 'missing', reason: 'not_connected', detail: `no connection of ${platformId} can be used` };
}

/** What says most of a platform when no scope was named, the best first. */
const TELLING: readonly (ReasonCode | 'usable')[] = [
  'usable',
  'needs_consent',
  'grant_expired',
  'not_granted',
  'scope_denied',
];

function standingOnPlatform(loaded: LoadedFacts, rows: Rows, platformId: string, now: Instant): Standing {
  const { facts } = loaded;
  const scopes = new Set([...facts.platform!.rules.scopes.keys(), ...facts.grants.flatMap((grant) => grant.scopes)]);
  const all = [...scopes].map((scope): Standing & { scope: string } => {
    const lack = lackOf(loaded, rows, { platformId, scope });
    return { scope, ...withLack(accessTo(facts, { platformId, scope }, now), lack, platformId) };
  });
  const open = all.filter((one) => one.kind === 'usable' || one.kind === 'missing');
  if (open.length === 0)
    return all[0] ?? { kind: 'refused', detail: `${platformId} has no scope that could be granted` };
  if (lackOf(loaded, rows, { platformId, scope: '' }) === 'platform_not_connected')
    return { kind: 'missing', reason: 'not_connected', detail: `no connection of ${platformId} can be used` };
  const rank = (one: Standing) => TELLING.indexOf(one.kind === 'missing' ? one.reason : 'usable');
  const best = open.toSorted((a, b) => rank(a) - rank(b))[0]!;
  if (best.kind !== 'usable') return best;
  const usable = open.filter(({ kind }) => kind === 'usable').map((one) => one.scope);
  return { kind: 'usable', detail: `the agent can use ${usable.join(', ')} there. Name the scope that it lacks` };
}

/** Of a platform with tokens per person the shared connection says nothing. */
function lackOf({ facts, platform, connections }: LoadedFacts, rows: Rows, ask: Ask) {
  const { manifest } = platform!;
  if (manifest.per_person?.enabled) return undefined;
  const grant = effectiveGrant(facts, ask);
  const connection = grant === undefined ? connectionOf(rows[0]!) : connections.get(grant.id);
  return connectionLack(manifest, connection, ask.scope);
}

/** What keeps a granted scope from being used still, as far as it is an owner's to change. */
export type Remaining = {
  reason: DenyReason | 'platform_not_connected' | 'needs_consent' | 'governance_file';
  detail: string;
};

/** What else has to be done before an agent can use what it was granted; empty when it can. */
export async function whatRemains(
  governor: Pick<Governor, 'facts' | 'loadFacts'>,
  agent: Pick<AgentTable, 'agent_id' | 'origin'>,
  granted: { platformId: string; scopes: readonly string[]; connectionId: string | null },
  now: Instant,
): Promise<Remaining[]> {
  const { platformId, connectionId } = granted;
  const rows = await governor.facts(agent.agent_id, platformId, '');
  const loaded = rows.length === 0 ? undefined : await governor.loadFacts(rows, platformId, now);
  if (!loaded?.platform) return [];
  const found: Remaining[] = granted.scopes.flatMap((scope): Remaining[] => {
    const ask = { platformId, scope, ...(connectionId !== null && { connectionId }) };
    const verdict = decide({ ...loaded.facts, breakers: [] }, ask, now);
    if (verdict.kind === 'deny') return [{ reason: verdict.reason, detail: `${scope}: ${verdict.detail}.` }];
    const reason = lackOf(loaded, rows, ask);
    if (reason === undefined) return [];
    const detail =
      reason === 'needs_consent'
        ? `Connect ${platformId} again and consent to more: ${scope} needs it.`
        : `Connect ${platformId}: calls have no connection of it that they could use.`;
    return [{ reason, detail }];
  });
  if (agent.origin === 'governance')
    found.push({
      reason: 'governance_file',
      detail: 'A governance file decides about this agent: write the grant there too, or the next apply takes it back.',
    });
  return [...new Map(found.map((one) => [one.detail, one])).values()];
}
