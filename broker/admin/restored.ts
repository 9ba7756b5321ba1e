/** Reviews a restored store: lists what is in force as of the backup, and records that an admin has reviewed it. */
import {
  type Changing,
  type ChangingOwner,
  operatorAtStart,
  recordChange,
  recordInTurn,
} from '../audit/record-change.ts';
import type { StoreRestored } from '../policy/store-restored.ts';
import { listOrganisations } from '../store/organisations.ts';
import { findRestored, putRestored, readRestored } from '../store/restored.ts';
import { type Review, type ReviewedGrant, readReview } from '../store/restored-review.ts';
import type { Db } from '../store/store.ts';
import { readScopes } from '../store/stored-terms.ts';
import { rollback } from '../store/transaction.ts';
import { ChangeRefused } from './refused.ts';

/** All that may act, each agent with its grants. */
export type Reviewed = Omit<Review, 'agents' | 'grants'> & {
  agents: (Review['agents'][number] & { grants: (Omit<ReviewedGrant, 'scopes'> & { scopes: string[] })[] })[];
};

/** Records, once per organisation, that the store was restored. Throws AuditUnavailable. */
export async function noteRestored(services: Changing): Promise<void> {
  const { store, log } = services.broker;
  for (const { id, restored: text } of await listOrganisations(store.db)) {
    const before = readRestored(text);
    if (!before) continue;
    log.warn({ organisation: id }, 'the store was restored: no call is made before an admin has reviewed it');
    if (before.noted) continue;
    const detail = before.madeAt === null ? null : `From a backup of ${new Date(before.madeAt).toISOString()}.`;
    await recordChange(services, operatorAtStart(id), { reason: 'store_restored', detail }, async (tx, note) => {
      // Another replica that started at the same time recorded it first.
      if (!(await putRestored(tx, id, { before, after: { ...before, noted: true } }))) return rollback('noted');
      note({ restored_at: new Date(before.at).toISOString(), ended: before.ended });
      return 'done';
    });
  }
}

/** Lists all that may act, for a review, and whether a restored store needs one. */
export async function reviewRestored(
  db: Db,
  organisationId: string,
  now: number,
): Promise<{ restored: StoreRestored | undefined; review: Reviewed }> {
  const restored = await findRestored(db, organisationId);
  const { grants, agents, ...others } = await readReview(db, organisationId, now);
  const grantsOf = Map.groupBy(grants, ({ agent_id }) => agent_id);
  return {
    restored,
    review: {
      ...others,
      agents: agents.map((agent) => ({
        ...agent,
        grants: (grantsOf.get(agent.id) ?? []).map((grant) => ({
          ...grant,
          scopes: readScopes(grant.scopes, agent.id),
        })),
      })),
    },
  };
}

/**
 * Ends the review and allows calls again, from the next one on every replica. `restoredAt`: the restore that was reviewed, in milliseconds.
 *
 * @throws ChangeRefused when no review is pending; or AuditUnavailable: then nothing is changed
 */
export async function endReview(
  services: Changing,
  by: ChangingOwner,
  { restoredAt, detail }: { restoredAt: number; detail: string | null },
): Promise<StoreRestored> {
  const { organisation_id: organisationId } = by.owner;
  return await recordInTurn(services, by, { reason: 'restore_reviewed', detail }, async (tx, note) => {
    const before = await findRestored(tx, organisationId);
    if (before?.at !== restoredAt || !(await putRestored(tx, organisationId, { before, after: undefined })))
      throw new ChangeRefused(
        'conflict',
        'No store that was restored at that time is waiting for a review. See the current state: GET /owner/restored',
      );
    note({ restored_at: new Date(before.at).toISOString() });
    return before;
  });
}
