import { expect } from 'vitest';
import type { AuditRow } from '../../broker/store/audit.ts';
import type { GitWorld } from '../world/git-world.ts';
import { listAuditRows } from '../world/rows.ts';

/** Returns the newest audit rows of the world's organisation. */
export const rowsOf = ({ world, organisation }: GitWorld): Promise<AuditRow[]> =>
  listAuditRows(world.db, organisation.id, { limit: 50 });

/** Expects that no call holds memory or files any more, and that all rows are final. */
export async function expectNothingLeft(given: GitWorld): Promise<void> {
  const { services } = given.world.running;
  await expect.poll(() => services.budget.held, { timeout: 5_000 }).toEqual({ calls: 0, bytes: 0 });
  await expect.poll(() => services.gitBodies.held).toEqual({ memory: 0, files: 0 });
  await expect.poll(async () => (await rowsOf(given)).filter(({ state }) => state !== 'final')).toEqual([]);
}
