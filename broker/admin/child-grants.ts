/** What a parent may pass on (specification, Child identity; Repository constraint): at most what it holds itself. */
import { NOT_ON_PLAN } from '../entitlement.ts';
import { attenuate, connectionChoices, selectGrant } from '../policy/attenuation.ts';
import type { Constraints, Grant, Instant } from '../policy/facts.ts';
import { intersectRecipients } from '../policy/recipients.ts';
import { intersectRefs } from '../policy/ref-patterns.ts';
import { intersectRepositories } from '../policy/repos.ts';
import { limitsRepos } from './grant-terms.ts';
import { ChangeRefused } from './refused.ts';

/** One grant as the parent asks for it. Without a connection: the one that the parent's own calls would use. */
export type WantedGrant = {
  platform: string;
  scopes: readonly string[];
  connectionId?: string;
  constraints: Constraints;
};

/** What the parent holds now. */
export type Holdings = {
  grants: readonly Grant[];
  /** Whether the organisation may limit grants to repositories that were not limited before. */
  mayLimitRepos: boolean;
  /** By platform id. */
  defaultConnections: ReadonlyMap<string, string | null>;
};

/** What a child gets on a platform; its grant without an id. */
export type PassedOn = Omit<Grant, 'id'>;

/**
 * The child's grants: of the scopes those that the parent holds, under the tighter of both constraints, for no longer than the
 * parent's grant. What the parent does not hold is dropped silently, and a connection that it has no grant on is no other
 * case: nobody learns here which there are. Throws ChangeRefused, whose words begin with where in the request it is.
 */
export function passOn(wanted: readonly WantedGrant[], holdings: Holdings, now: Instant): PassedOn[] {
  const passed = wanted.map((one, at) => passOnOne(one, `grants[${at}]`, holdings, now));
  const ways = passed.map((one) => `${one.platformId} ${connectionOf(one, holdings) ?? ''}`);
  const twice = ways.findIndex((way, at) => ways.indexOf(way) < at);
  if (twice >= 0)
    throw new ChangeRefused(
      'invalid_grants',
      `grants[${twice}]: a grant on ${passed[twice]?.platformId} and the same connection stands before it already.`,
    );
  return passed;
}

function passOnOne(wanted: WantedGrant, where: string, holdings: Holdings, now: Instant): PassedOn {
  const { platform, connectionId } = wanted;
  const ask = { platformId: platform, scope: '', ...(connectionId !== undefined && { connectionId }) };
  const standard = holdings.defaultConnections.get(platform) ?? null;
  if (connectionChoices(holdings.grants, ask, standard).length > 0)
    throw new ChangeRefused(
      'no_scopes_after_attenuation',
      `${where}.connection_id: the parent has grants on several connections of ${platform} and none on its default one; say which is meant.`,
    );
  const found = selectGrant(holdings.grants, ask, standard);
  const held = found && (found.expiresAt === null || found.expiresAt > now) ? found : undefined;
  const scopes = [...new Set(wanted.scopes)].filter((scope) => held?.scopes.includes(scope));
  if (!held || scopes.length === 0)
    throw new ChangeRefused(
      'no_scopes_after_attenuation',
      `${where}: the parent holds none of these scopes on ${JSON.stringify(platform)}${connectionId === undefined ? '' : ' and this connection'}.`,
    );
  refuseLooser(wanted.constraints, held.constraints, where);
  // What its parent is limited to is in force already, and may be narrowed.
  if (!holdings.mayLimitRepos && limitsRepos(wanted.constraints) && !limitsRepos(held.constraints))
    throw new ChangeRefused('not_on_plan', `${where}.constraints: ${NOT_ON_PLAN.repository_constraints}`);
  const asked: Grant = {
    id: '',
    platformId: platform,
    connectionId: connectionId ?? held.connectionId,
    scopes,
    constraints: wanted.constraints,
    requireApproval: false,
    expiresAt: null,
  };
  const { id: _id, ...passed } = attenuate(asked, held);
  return passed;
}

/** @throws ChangeRefused when the child's constraints let something pass that its parent's do not */
function refuseLooser(child: Constraints, parent: Constraints, where: string): void {
  const refuse = (what: string) => {
    throw new ChangeRefused('child_constraints_looser_than_parent', `${where}.constraints.${what}`);
  };
  const beyond = (entries: readonly string[] = [], meet: (entry: string) => readonly string[]) =>
    entries.find((entry) => !meet(entry).includes(entry));
  const { recipients, repos, refs, ref_changes: changes } = parent;
  const recipient = recipients && beyond(child.recipients, (entry) => intersectRecipients([entry], recipients));
  if (recipient !== undefined) refuse(`recipients: the parent may not reach ${JSON.stringify(recipient)} itself.`);
  const repo = repos && beyond(child.repos, (entry) => intersectRepositories([entry], repos));
  if (repo !== undefined) refuse(`repos: the parent may not reach ${JSON.stringify(repo)} itself.`);
  const ref = refs && beyond(child.refs, (entry) => intersectRefs([entry], refs));
  if (ref !== undefined) refuse(`refs: the parent may not write ${JSON.stringify(ref)} itself.`);
  const change = changes && child.ref_changes?.find((one) => !changes.includes(one));
  if (change !== undefined) refuse(`ref_changes: the parent may not ${change} refs itself.`);
  if (child.allow_repo_creation === true && parent.allow_repo_creation !== true)
    refuse('allow_repo_creation: the parent may not create repositories itself.');
}

const connectionOf = (grant: PassedOn, { defaultConnections }: Holdings): string | null =>
  grant.connectionId ?? defaultConnections.get(grant.platformId) ?? null;
