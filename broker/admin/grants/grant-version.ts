/** The version of a grant's terms, by which a change notices that somebody else changed them first. */
import { sha256Base64url } from '../../crypto/canonical.ts';
import type { GrantTable } from '../../store/tables/rules.ts';
import { ChangeRefused } from '../refused.ts';

/** Returns a text that differs whenever the terms differ. Derived from them, so that every kind of change counts, whoever makes it. */
export function grantVersion(grant: GrantTable): string {
  const { id, connection_id, scopes, constraints, require_approval, expires_at } = grant;
  return sha256Base64url(JSON.stringify([id, connection_id, scopes, constraints, require_approval, expires_at])).slice(
    0,
    22,
  );
}

/**
 * Throws ChangeRefused unless the grant is as the owner saw it. `seen`: the version then; null: there was no such grant; undefined: the owner does not
 * say.
 */
export function refuseUnseen(before: GrantTable | undefined, seen: string | null | undefined): void {
  if (seen === undefined || seen === (before === undefined ? null : grantVersion(before))) return;
  const what =
    before === undefined
      ? 'This grant was removed meanwhile'
      : seen === null
        ? 'The agent has a grant there already'
        : 'This grant was changed meanwhile';
  throw new ChangeRefused('conflict', `${what}. Nothing was changed: read it again, and change what it is now.`);
}
