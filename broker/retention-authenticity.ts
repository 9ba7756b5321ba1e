/**
 * Distinguishes a retention setting of an admin from one that somebody wrote into the database. Audit rows are deleted by it, with a genuine proof,
 * and an attacker with write access to the database alone must not obtain such a proof for rows that they want deleted.
 */
import { SealError } from './crypto/seal.ts';
import type { Log } from './log/log.ts';
import { listUnsealedRetentions, putRetentionSeal } from './store/audit-purges.ts';
import { findMeta, putMeta } from './store/meta.ts';
import type { Store } from './store/store.ts';
import type { OrganisationTable } from './store/tables/organisations.ts';
import type { Vault } from './vault.ts';

const placeOf = (id: string) => ({ table: 'organisations', organisationId: id, rowId: id }) as const;

/** Seals the stored text of a retention setting. Null: everything is kept; nothing needs a seal, since nothing can be deleted. */
export const sealRetention = (vault: Pick<Vault, 'seal'>, id: string, retention: string | null): Buffer | null =>
  retention === null ? null : vault.seal(placeOf(id), retention);

/** Whether the stored retention was set by an admin. */
export function isOwnRetention(
  vault: Pick<Vault, 'open'>,
  { id, retention, retention_seal: sealed }: Pick<OrganisationTable, 'id' | 'retention' | 'retention_seal'>,
): boolean {
  if (retention === null) return true;
  if (sealed === null) return false;
  try {
    return vault.open(placeOf(id), sealed).toString() === retention;
  } catch (error) {
    if (error instanceof SealError) return false;
    throw error;
  }
}

const ADOPTED = 'retention_sealed';

/**
 * Seals retention settings of a release before seals existed, whoever set them, since nothing shows who did. Called at each start; works once per
 * store.
 */
export async function adoptRetentions({ db }: Store, vault: Vault, log: Pick<Log, 'warn'>): Promise<void> {
  if ((await findMeta(db, ADOPTED)) !== undefined) return;
  const found = await listUnsealedRetentions(db);
  for (const { id, retention } of found)
    await putRetentionSeal(db, { id, retention, retention_seal: sealRetention(vault, id, retention) });
  await putMeta(db, ADOPTED, 'yes');
  if (found.length > 0)
    log.warn(
      { security: true, organisations: found.length },
      'from now on rows of the audit are deleted by this retention only, and by what admins set',
    );
}
