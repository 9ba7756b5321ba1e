/** Describes an agent's grants for a person. */

/** A grant as `POST /owner/invites` accepts it. */
export type Grant = {
  platformId: string;
  scopes: string[];
  repos?: string[];
  recipients?: string[];
  expires_in_seconds?: number;
  require_approval?: true;
};

/** A grant with details to show to a person. `presets`: the presets that were named. */
export type ShownGrant = Grant & { platform: string; presets: string[]; hasRepositories: boolean };

/** Returns the scope without the prefix before the colon. */
export const shortScope = (scope: string): string => scope.slice(scope.indexOf(':') + 1);

/** Describes an agent's grants, their limits, and what is not limited. */
export function describeGrants(grants: readonly ShownGrant[]): string[] {
  return grants.flatMap((grant) => {
    const { platformId, platform, scopes, presets, repos, recipients, expires_in_seconds: seconds } = grant;
    const name = platform === platformId ? platformId : `${platformId} (${platform})`;
    const limits = [
      repos
        ? `repositories: ${repos.join(', ') || 'none'}`
        : grant.hasRepositories && 'every repository that the credential reaches (--repos limits it)',
      recipients && `recipients: ${recipients.join(', ') || 'nobody'}`,
      seconds !== undefined && `until ${new Date(Date.now() + seconds * 1000).toISOString()}`,
      grant.require_approval && 'every call needs an approval',
    ].filter((one) => typeof one === 'string');
    return [
      `On ${name}${presets.length > 0 ? `, ${presets.join(' and ')}` : ''}: ${scopes.map(shortScope).join(', ')}`,
      ...(limits.length > 0 ? [`  ${limits.join('; ')}`] : []),
    ];
  });
}
