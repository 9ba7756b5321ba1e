/** Checks an author's role and session again within the change's transaction, which may have waited for others since authentication. */
import { findOwnerOfSession, type SessionMarks } from '../store/ended-sessions.ts';
import { findOwner } from '../store/organisations.ts';
import { findPipeline } from '../store/pipelines.ts';
import type { Db } from '../store/store.ts';
import type { OwnerTable } from '../store/tables/organisations.ts';
import type { OwnersChange } from './receipt.ts';

/** The author was removed, has a lower role than when the request was authenticated, or the session was ended; the change is rolled back. */
export class AuthorNotAllowed extends Error {
  constructor() {
    super(
      'You were removed or signed out, or your role was changed, while this request waited for other requests to finish. Nothing was changed.',
    );
  }
}

type Author = { id: string; organisation_id: string; role?: OwnerTable['role'] };

/** Ranks of roles: a higher role includes the permissions of all lower ones. */
export const ROLE_RANKS = { viewer: 0, approver: 1, admin: 2 };

/**
 * Throws unless the author still has at least the role of the request's authentication, and the session was not ended. Call it in a transaction that
 * has locked the organisation, as all removals of owners, role changes and unlinked accounts do. The operator, the broker itself and holders of
 * tokens have no role.
 *
 * @throws AuthorNotAllowed
 */
export async function checkAuthorRole(
  tx: Db,
  { owner, session, how }: { owner: Author; session?: SessionMarks | undefined; how: OwnersChange['how'] },
): Promise<void> {
  const { id, role } = owner;
  if (role === undefined) return;
  const now = how === 'pipeline' ? await findPipeline(tx, id) : await findAuthor(tx, owner, session);
  if (now === undefined || ROLE_RANKS[now.role] < ROLE_RANKS[role]) throw new AuthorNotAllowed();
}

/** Returns the owner who makes a change now, with the current role; undefined: the owner was removed, or the session was ended. */
export async function findAuthor(
  tx: Db,
  { id: ownerId, organisation_id: organisationId }: Pick<Author, 'id' | 'organisation_id'>,
  marks: SessionMarks | undefined,
): Promise<OwnerTable | undefined> {
  if (marks === undefined) return await findOwner(tx, ownerId);
  const found = await findOwnerOfSession(tx, { organisationId, ownerId, marks });
  return found?.ended ? undefined : found?.owner;
}
