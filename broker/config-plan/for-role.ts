/**
 * Governance files and changes as owners below admin, and pipelines with such a role, see them: without the settings of channels and audit sinks, which
 * `GET /owner/channels` and `GET /owner/audit-sinks` show to admins only. Whoever knows the topic of an ntfy channel, for example, receives its notices.
 */
import type { Change } from './planning.ts';

/** Whose view it is. */
type Role = 'viewer' | 'approver' | 'admin';

const SECTION = /^(?:channels|audit_sinks):/;
const LEFT_OUT =
  '# channels and audit_sinks are left out: only admins see them. An apply of a file without these sections changes none.';

/** Returns an exported file as this role sees it. Entries of a section are indented, so the next line that is not begins something else. */
export function fileFor(role: Role, text: string): string {
  if (role === 'admin') return text;
  const kept: string[] = [];
  let isLeftOut = false;
  let isSaid = false;
  for (const line of text.split('\n')) {
    if (/^\S/.test(line)) isLeftOut = SECTION.test(line);
    if (!isLeftOut) kept.push(line);
    else if (!isSaid) {
      kept.push(LEFT_OUT);
      isSaid = true;
    }
  }
  return kept.join('\n');
}

const KINDS: ReadonlySet<Change['kind']> = new Set<Change['kind']>(['channel', 'audit_sink']);
const VALUES = /^(settings|rules): .*$/s;

/** Returns changes as this role sees them: that settings of a channel or sink differ, and not what they are. */
export function changesFor<Seen extends Pick<Change, 'kind' | 'details'>>(
  role: Role,
  changes: readonly Seen[],
): Seen[] {
  return changes.map((change) =>
    role === 'admin' || !KINDS.has(change.kind)
      ? change
      : { ...change, details: change.details.map((line) => line.replace(VALUES, '$1: changed; only admins see them')) },
  );
}
