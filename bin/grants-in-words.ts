/** What an agent is granted, for a person. */

/** As `POST /owner/invites` takes it. */
export type Grant = {
  platformId: string;
  scopes: string[];
  repos?: string[];
  recipients?: string[];
  expires_in_seconds?: number;
  require_approval?: true;
};

/** A grant with what a person should see of it. `presets`: those that were named. */
export type ShownGrant = Grant & { platform: string; presets: string[]; hasRepositories: boolean };

/** Without what stands before the colon. */
export const shortOf = (scope: string): string => scope.slice(scope.indexOf(':') + 1);

/** For a person: what an agent gets, with its limits, and what is not limited. */
export function grantsInWords(grants: readonly ShownGrant[]): string[] {
  return grants.flatMap((grant) => {
    const { platformId, platform, scopes, presets, repos, recipients, expires_in_seconds: seconds } = grant;
    const name = platform === platformId ? platformId : `${platformId} (${platform})`;
    const limits = [
      repos
        ? `repositories: ${repos.join(', ') || 'none'}`
        : grant.hasRepositories && 'every repository that the credential reaches (--repos limits it)',
      recipients && `recipients: ${recipients.join(', ') || 'nobody'}`,
      seconds !== undefined && `until ${new Date(Date.now() + seconds * 1000).toISOString()}`,
      grant.require_approval && 'every call waits for an approval',
    ].filter((one) => typeof one === 'string');
    return [
      `On ${name}${presets.length > 0 ? `, ${presets.join(' and ')}` : ''}: ${scopes.map(shortOf).join(', ')}`,
      ...(limits.length > 0 ? [`  ${limits.join('; ')}`] : []),
    ];
  });
}
