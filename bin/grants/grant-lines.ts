/** Formats a grant for a person. */
import type { OwnedGrant } from '../../broker/console/answers.ts';
import { type Line, line } from '../terminal/line.ts';
import { localTime } from '../terminal/local-time.ts';

/** Returns the scopes and where they apply, followed by every limit. */
export function grantLines(grant: OwnedGrant): Line[] {
  const { platform, connection, scopes, repos, recipients, refs, ref_changes, expires_at, expired } = grant;
  const listed = (what: string, all: readonly string[] | null): string[] =>
    all === null ? [] : [`${what}: ${all.join(', ') || 'none'}`];
  const limits = [
    ...listed('repositories', repos),
    ...(grant.allow_repo_creation ? ['may make repositories there'] : []),
    ...listed('recipients', recipients),
    ...listed('branches and tags', refs),
    ...listed('changes of them', ref_changes),
    ...(expires_at === null ? [] : [`${expired ? 'ENDED' : 'until'} ${localTime(expires_at)}`]),
    ...(grant.require_approval ? ['every call needs an approval'] : []),
  ];
  return [
    line`${platform}${connection ? ` (connection ${connection.label ?? connection.connection_id})` : ''}: ${scopes.join(', ')}`,
    ...(limits.length === 0 ? [] : [line`  ${limits.join('; ')}`]),
  ];
}
