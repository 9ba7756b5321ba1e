/** What an agent can act on (specification, Effective permissions), asked of `decide` scope by scope. */
import { earliest, effectiveGrant } from './attenuation.ts';
import { decide } from './decide.ts';
import type { Ask, Constraints, Facts, Grant, Instant, PlatformFacts, Verdict } from './facts.ts';

/** One platform of an agent: the facts about it, and the names that its connections go by. */
export type PermissionFacts = { facts: Facts; connectionLabels?: ReadonlyMap<string, string> };

/** One item of `connections`. `connection_id` null: the platform's default connection, of which there is none now. */
export type ConnectionPermissions = {
  connection_id: string | null;
  label: string | null;
  scopes: string[];
  requireApproval: boolean;
  default: boolean;
};

/**
 * One item of `platforms`, with an instant in place of `expiresInSeconds`: the ETag is made over these values, and does not
 * change while time passes. `changesAt`: when the first of the grants ends that this is made of.
 */
export type PlatformPermissions = {
  platformId: string;
  platformName: string;
  scopes: string[];
  requireApproval: boolean;
  approvalScopes?: string[];
  conditionalScopes?: string[];
  unenforcedScopes?: string[];
  constraints?: Constraints;
  connections?: ConnectionPermissions[];
  callStyle?: 'graphql';
  expiresAt: Instant | null;
  changesAt: Instant | null;
};

/**
 * The permissions of an agent on its platforms, sorted by platform id. The fields beside `connections` describe a call
 * without `connection_id`. A platform on which no scope can be used now is left out.
 */
export function effectivePermissions(platforms: readonly PermissionFacts[], now: Instant): PlatformPermissions[] {
  return platforms
    .flatMap((platform) => platformPermissions(platform, now) ?? [])
    .sort((a, b) => (a.platformId < b.platformId ? -1 : 1));
}

/** The wire form of one platform, at the moment of the answer. */
export function toWirePermissions({ expiresAt, changesAt: _, ...permissions }: PlatformPermissions, now: Instant) {
  if (expiresAt === null) return permissions;
  return { ...permissions, expiresInSeconds: Math.max(0, Math.floor((expiresAt - now) / 1000)) };
}

/** The first moment after `now` at which these permissions become others by themselves; null when none is in sight. */
export function nextChange(permissions: readonly PlatformPermissions[]): Instant | null {
  return permissions.reduce<Instant | null>((first, { changesAt }) => earliest(first, changesAt), null);
}

function platformPermissions(
  { facts, connectionLabels }: PermissionFacts,
  now: Instant,
): PlatformPermissions | undefined {
  const { platform } = facts;
  if (platform === undefined) return undefined;
  const own = scopesOf(facts, platform, undefined, now);
  const grants = facts.grants.filter((grant) => grant.platformId === platform.platformId);
  const connections = grants.flatMap((grant) => connectionPermissions(facts, platform, grant, connectionLabels, now));
  if (own === undefined || (own.scopes.length === 0 && connections.length === 0)) return undefined;
  const { grant } = own;
  return {
    platformId: platform.platformId,
    platformName: platform.name,
    scopes: own.scopes,
    requireApproval: grant.requireApproval,
    ...(own.approval.length > 0 && { approvalScopes: own.approval }),
    ...(own.conditional.length > 0 && { conditionalScopes: own.conditional }),
    ...(own.unenforced.length > 0 && { unenforcedScopes: own.unenforced }),
    ...(Object.keys(grant.constraints).length > 0 && { constraints: grant.constraints }),
    ...(connections.length > 0 && { connections }),
    ...(platform.rules.kind === 'graphql' && { callStyle: 'graphql' as const }),
    expiresAt: expiryOf(facts, grant),
    changesAt: [...facts.grants, ...(facts.agent.parent?.grants ?? [])]
      .filter(({ platformId }) => platformId === platform.platformId)
      .map((each) => expiryOf(facts, each))
      .reduce<Instant | null>((first, end) => (end !== null && end > now ? earliest(first, end) : first), null),
  };
}

function scopesOf(facts: Facts, platform: PlatformFacts, connectionId: string | undefined, now: Instant) {
  const asked: Ask = {
    platformId: platform.platformId,
    scope: '',
    ...(connectionId !== undefined && { connectionId }),
  };
  const grant = effectiveGrant(facts, asked);
  if (grant === undefined) return undefined;
  const found: [string, Verdict][] = [...new Set(grant.scopes)]
    .sort()
    .map((scope) => [scope, decide(facts, { ...asked, scope }, now)]);
  const usable = found.filter(([, verdict]) => verdict.kind !== 'deny');
  const held = ({ reason }: Verdict) =>
    reason === 'approval_required_by_policy' || reason === 'approval_required_by_guardrail';
  const names = (those: typeof found) => those.map(([scope]) => scope);
  return {
    grant,
    scopes: names(usable),
    approval: names(usable.filter(([, verdict]) => held(verdict))),
    conditional: names(usable.filter(([, verdict]) => verdict.conditional)),
    unenforced: names(usable).filter((scope) => (platform.rules.scopes.get(scope)?.length ?? 0) === 0),
  };
}

function connectionPermissions(
  facts: Facts,
  platform: PlatformFacts,
  grant: Grant,
  labels: ReadonlyMap<string, string> | undefined,
  now: Instant,
): ConnectionPermissions[] {
  const id = grant.connectionId ?? platform.defaultConnectionId;
  const found = scopesOf(facts, platform, id ?? undefined, now);
  // Two grants on one connection: the one that an ask with this connection uses speaks for both.
  if (found === undefined || found.grant.id !== grant.id || found.scopes.length === 0) return [];
  return [
    {
      connection_id: id,
      label: id === null ? null : (labels?.get(id) ?? null),
      scopes: found.scopes,
      requireApproval: found.grant.requireApproval,
      default: id === platform.defaultConnectionId,
    },
  ];
}

function expiryOf({ agent }: Facts, grant: Grant): Instant | null {
  return earliest(earliest(grant.expiresAt, agent.expiresAt), agent.parent?.expiresAt ?? null);
}
