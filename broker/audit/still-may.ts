/** Whoever asks for a change was authenticated before its transaction began, and may have waited in it for others. */
import { findOwner } from '../store/organisations.ts';
import { findPipeline } from '../store/pipelines.ts';
import type { Db } from '../store/store.ts';
import type { OwnerTable } from '../store/tables/organisations.ts';
import type { OwnersChange } from './receipt.ts';

/** Who asked was removed, or has a lesser role than when the request was authenticated: rolls the change back. */
export class NoLongerMay extends Error {
  constructor() {
    super('You were removed, or your role was changed, while this request waited for others. Nothing was changed.');
  }
}

/** Of a role each higher one may what it may. */
export const ROLE_RANKS = { viewer: 0, approver: 1, admin: 2 };

/**
 * In a transaction that has locked the organisation, as whatever removes owners or changes their roles does. The operator, the broker itself and holders of
 * tokens have no role.
 *
 * @throws NoLongerMay
 */
export async function refuseFormer(
  tx: Db,
  { owner: { id, role }, how }: { owner: { id: string; role?: OwnerTable['role'] }; how: OwnersChange['how'] },
): Promise<void> {
  if (role === undefined) return;
  const now = how === 'pipeline' ? await findPipeline(tx, id) : await findOwner(tx, id);
  if (now === undefined || ROLE_RANKS[now.role] < ROLE_RANKS[role]) throw new NoLongerMay();
}
