/** Checks an author's role again within the change's transaction, which may have waited for others since authentication. */
import { findOwner } from '../store/organisations.ts';
import { findPipeline } from '../store/pipelines.ts';
import type { Db } from '../store/store.ts';
import type { OwnerTable } from '../store/tables/organisations.ts';
import type { OwnersChange } from './receipt.ts';

/** The author was removed, or has a lower role than when the request was authenticated; the change is rolled back. */
export class AuthorNotAllowed extends Error {
  constructor() {
    super(
      'You were removed, or your role was changed, while this request waited for other requests to finish. Nothing was changed.',
    );
  }
}

/** Ranks of roles: a higher role includes the permissions of all lower ones. */
export const ROLE_RANKS = { viewer: 0, approver: 1, admin: 2 };

/**
 * Throws unless the author still has at least the role of the request's authentication. Call it in a transaction that has locked the
 * organisation, as all removals of owners and role changes do. The operator, the broker itself and holders of tokens have no role.
 *
 * @throws AuthorNotAllowed
 */
export async function checkAuthorRole(
  tx: Db,
  { owner: { id, role }, how }: { owner: { id: string; role?: OwnerTable['role'] }; how: OwnersChange['how'] },
): Promise<void> {
  if (role === undefined) return;
  const now = how === 'pipeline' ? await findPipeline(tx, id) : await findOwner(tx, id);
  if (now === undefined || ROLE_RANKS[now.role] < ROLE_RANKS[role]) throw new AuthorNotAllowed();
}
