/** Computes what an agent can act on (specification, Effective permissions), with one `decide` per scope. */
import { earliest, effectiveGrant } from './attenuation.ts';
import { decide } from './decide.ts';
import type { Ask, Constraints, Facts, Grant, GrantedConnection, Instant, PlatformFacts, Verdict } from './facts.ts';

/** The instant in place of `expiresInSeconds`: the ETag is computed from these values, and must not change as time passes. */
type Expiring = { expiresAt: Instant | null };

/** What a grant permits on a connection. */
type Granted = {
  scopes: string[];
  requireApproval: boolean;
  approvalScopes?: string[];
  conditionalScopes?: string[];
  unenforcedScopes?: string[];
  constraints?: Constraints;
} & Expiring;

/** One item of `connections`. `default`: calls without `connection_id` use this connection. */
export type ConnectionPermissions = {
  connection_id: string;
  label: string | null;
  /** `per_person`: people connect their own tokens. */
  status: GrantedConnection['status'] | 'per_person';
  default: boolean;
} & Granted;

/** One item of `platforms`. `changesAt`: when the first of the grants behind these permissions expires. */
export type PlatformPermissions = {
  platformId: string;
  platformName: string;
  connections: ConnectionPermissions[];
  callStyle?: 'graphql';
  changesAt: Instant | null;
} & Granted;

/**
 * Returns the permissions of an agent on its platforms, sorted by platform id. `scopes`, `requireApproval`, `constraints` and the expiry of a platform
 * describe a call without `connection_id`; where one has to be named there are no such scopes. The lists of scopes that are held, conditional or unenforced
 * are those of all connections. A scope is omitted when the constraints of the grant refuse every call under it. A platform on which no scope can be used now
 * is omitted.
 */
export function effectivePermissions(platforms: readonly Facts[], now: Instant): PlatformPermissions[] {
  return platforms
    .flatMap((facts) => platformPermissions(facts, now) ?? [])
    .sort((a, b) => (a.platformId < b.platformId ? -1 : 1));
}

/** Returns the wire form of one platform, at the time of the answer. */
export function toWirePermissions({ connections, changesAt: _, ...permissions }: PlatformPermissions, now: Instant) {
  return { ...inSeconds(permissions, now), connections: connections.map((one) => inSeconds(one, now)) };
}

function inSeconds<T extends Expiring>({ expiresAt, ...rest }: T, now: Instant) {
  return expiresAt === null ? rest : { ...rest, expiresInSeconds: Math.max(0, Math.floor((expiresAt - now) / 1000)) };
}

/** Returns the first time after `now` at which these permissions change by themselves; null when they do not. */
export function nextChange(permissions: readonly PlatformPermissions[]): Instant | null {
  return permissions.reduce<Instant | null>((first, { changesAt }) => earliest(first, changesAt), null);
}

function platformPermissions(facts: Facts, now: Instant): PlatformPermissions | undefined {
  const { platform } = facts;
  if (platform === undefined) return undefined;
  const own = grantedTo(facts, platform, undefined, now);
  const usual = own === undefined ? undefined : (own.grant.connectionId ?? platform.defaultConnectionId);
  const here = facts.grants.filter(({ platformId }) => platformId === platform.platformId);
  const named = here.map((grant) => grant.connectionId ?? platform.defaultConnectionId);
  const connections = [...new Set(named)]
    .flatMap((id) => (id === null ? [] : connectionPermissions(facts, platform, id, id === usual, now)))
    .sort(byDefaultAndLabel);
  const granted = own?.granted ?? {
    scopes: [],
    requireApproval: connections.every((one) => one.requireApproval),
    expiresAt: null,
  };
  if (granted.scopes.length === 0 && connections.length === 0) return undefined;
  const everywhere = [granted, ...connections];
  return {
    platformId: platform.platformId,
    platformName: platform.name,
    ...granted,
    ...listed(
      everywhere.flatMap((one) => one.approvalScopes ?? []),
      everywhere.flatMap((one) => one.conditionalScopes ?? []),
      everywhere.flatMap((one) => one.unenforcedScopes ?? []),
    ),
    connections,
    ...(platform.rules.kind === 'graphql' && { callStyle: 'graphql' as const }),
    changesAt: [...here, ...(facts.agent.parent?.grants ?? [])]
      .map((each) => expiryOf(facts, each))
      .reduce<Instant | null>((first, end) => (end !== null && end > now ? earliest(first, end) : first), null),
  };
}

/** Returns the grant that an ask with this connection uses, and what it permits now; undefined when there is none. */
function grantedTo(
  facts: Facts,
  platform: PlatformFacts,
  connectionId: string | undefined,
  now: Instant,
): { grant: Grant; granted: Granted } | undefined {
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
  const usable = found.filter(
    ([scope, verdict]) => verdict.kind !== 'deny' && platform.rules.isReachable(scope, grant.constraints),
  );
  const held = (verdict: Verdict) => verdict.kind === 'hold' && verdict.holds.some(({ source }) => source !== 'grant');
  const names = (those: typeof found) => those.map(([scope]) => scope);
  const granted = {
    scopes: names(usable),
    requireApproval: grant.requireApproval,
    ...listed(
      names(usable.filter(([, verdict]) => held(verdict))),
      names(usable.filter(([, verdict]) => verdict.conditional)),
      names(usable).filter((scope) => (platform.rules.scopes.get(scope)?.length ?? 0) === 0),
    ),
    ...(Object.keys(grant.constraints).length > 0 && { constraints: grant.constraints }),
    expiresAt: expiryOf(facts, grant),
  };
  return { grant, granted };
}

/** Returns the lists of scopes with a special condition: sorted, and absent when empty. */
function listed(approval: readonly string[], conditional: readonly string[], unenforced: readonly string[]) {
  const sorted = (scopes: readonly string[]) => [...new Set(scopes)].sort();
  return {
    ...(approval.length > 0 && { approvalScopes: sorted(approval) }),
    ...(conditional.length > 0 && { conditionalScopes: sorted(conditional) }),
    ...(unenforced.length > 0 && { unenforcedScopes: sorted(unenforced) }),
  };
}

function connectionPermissions(
  facts: Facts,
  platform: PlatformFacts,
  id: string,
  isDefault: boolean,
  now: Instant,
): ConnectionPermissions[] {
  const found = grantedTo(facts, platform, id, now);
  if (found === undefined || found.granted.scopes.length === 0) return [];
  const { label = null, status = 'not_connected' } = found.grant.connection ?? {};
  const shown = platform.perPerson ? 'per_person' : status;
  return [{ connection_id: id, label, status: shown, default: isDefault, ...found.granted }];
}

function byDefaultAndLabel(a: ConnectionPermissions, b: ConnectionPermissions): number {
  if (a.default !== b.default) return a.default ? -1 : 1;
  const named = ({ label, connection_id }: ConnectionPermissions) => `${label ?? ''} ${connection_id}`;
  return named(a) < named(b) ? -1 : 1;
}

function expiryOf({ agent }: Facts, grant: Grant): Instant | null {
  return earliest(earliest(grant.expiresAt, agent.expiresAt), agent.parent?.expiresAt ?? null);
}
