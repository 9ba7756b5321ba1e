/** Attenuates a parent's grants for a child (specification, Child identity; Repository constraint): at most what the parent holds. */
import type { Checked } from '../../config-file/check-document.ts';
import { checkLimits } from '../../config-file/check-references.ts';
import { NOT_ON_PLAN } from '../../entitlement.ts';
import type { Manifest } from '../../platforms/manifest.ts';
import { attenuate, connectionChoices, selectGrant } from '../../policy/attenuation.ts';
import type { Constraints, Grant, Instant } from '../../policy/facts.ts';
import { intersectRecipients } from '../../policy/recipients.ts';
import { intersectRefs } from '../../policy/refs/patterns.ts';
import { intersectRepositories } from '../../policy/repos.ts';
import { limitsRepos } from '../grants/grant-terms.ts';
import { ChangeRefused } from '../refused.ts';

/** One grant as the parent requests it. Without a connection: the one that the parent's own calls would use. */
export type ChildGrantRequest = {
  platform: string;
  scopes: readonly string[];
  connectionId?: string;
  constraints: Constraints;
};

/** The parent's current grants. */
export type Holdings = {
  grants: readonly Grant[];
  /** Whether the organisation may add a repository limit to a grant that has none. */
  mayLimitRepos: boolean;
  /** Default connections by platform id. */
  defaultConnections: ReadonlyMap<string, string | null>;
  /** Of the platforms that are requested, by their ids. */
  manifests: ReadonlyMap<string, Manifest>;
};

/** A child's grant on a platform, before it has an id. */
export type ChildGrant = Omit<Grant, 'id'>;

/**
 * Returns the child's grants: the requested scopes that the parent holds, under the tighter of both constraints, and no longer than the parent's
 * grant. Scopes that the parent does not hold are dropped silently, and an unknown connection is treated like one without a grant, so that the result
 * does not reveal which exist. Throws ChangeRefused, whose text begins with the position in the request.
 */
export function attenuateGrants(wanted: readonly ChildGrantRequest[], holdings: Holdings, now: Instant): ChildGrant[] {
  const passed = wanted.map((one, at) => attenuateGrant(one, `grants[${at}]`, holdings, now));
  const ways = passed.map((one) => `${one.platformId} ${connectionOf(one, holdings) ?? ''}`);
  const twice = ways.findIndex((way, at) => ways.indexOf(way) < at);
  if (twice >= 0)
    throw new ChangeRefused(
      'invalid_grants',
      `grants[${twice}]: a grant on ${passed[twice]?.platformId} and the same connection is already in the list.`,
    );
  return passed;
}

function attenuateGrant(wanted: ChildGrantRequest, where: string, holdings: Holdings, now: Instant): ChildGrant {
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
  refuseUnknown(wanted, held.constraints, holdings, where);
  // A limit that the parent already has may be narrowed.
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

/** @throws ChangeRefused for a limit that the parent does not have, and of something that the platform does not know */
function refuseUnknown(
  { platform, constraints }: ChildGrantRequest,
  parent: Constraints,
  { manifests }: Holdings,
  where: string,
): void {
  const manifest = manifests.get(platform);
  if (!manifest) return;
  const { recipients, refs, ref_changes: changes } = constraints;
  const found: Checked = { problems: [], warnings: [] };
  const added = {
    ...(recipients && !parent.recipients && { recipients: [...recipients] }),
    ...(refs && !parent.refs && { refs: [...refs] }),
    ...(changes && !parent.ref_changes && { ref_changes: [...changes] }),
  };
  checkLimits(added, platform, manifest, [], found);
  const [first] = [...found.problems, ...found.warnings];
  if (first)
    throw new ChangeRefused('invalid_constraints', `${where}.constraints.${first.path.join('.')}: ${first.message}`);
}

/** @throws ChangeRefused when the child's constraints allow something that its parent's do not */
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

const connectionOf = (grant: ChildGrant, { defaultConnections }: Holdings): string | null =>
  grant.connectionId ?? defaultConnections.get(grant.platformId) ?? null;
