/** What tells an older copy of the store from one that another process has just started on. */
import type { KyselyPlugin } from 'kysely';
import { expect, onTestFinished, test } from 'vitest';
import { makeLog } from '../../broker/log/log.ts';
import { nextGeneration, refuseOlderStore } from '../../broker/process/generation.ts';
import { migrate } from '../../broker/store/migrate.ts';
import { openSqlite } from '../../broker/store/sqlite.ts';
import { newFolder } from '../world/stores.ts';

test('a start while others start and remember their generations is not refused', async () => {
  const dataFolder = newFolder();
  const store = openSqlite(dataFolder);
  onTestFinished(() => store.close());
  await migrate(store);
  const places = { dataFolder, keyFile: `${dataFolder}/none`, masterKey: Buffer.alloc(32) } as never;
  const log = makeLog('silent');
  await nextGeneration(store, places, log);
  // After each of its statements another process has started.
  const others: KyselyPlugin = {
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      await nextGeneration(store, places, log);
      return result;
    },
  };
  await refuseOlderStore({ ...store, db: store.db.withPlugin(others) }, places);
  // The twin: what is remembered of a store that was put back is beyond it.
  await store.db.updateTable('meta').set({ value: '1' }).where('name', '=', 'generation').execute();
  await expect(refuseOlderStore(store, places)).rejects.toThrow('older than it was');
});
