/** Detecting an older copy of the store, without mistaking a store that another process has just started on for one. */
import type { KyselyPlugin } from 'kysely';
import { expect, onTestFinished, test } from 'vitest';
import { makeLog } from '../../broker/log/log.ts';
import { generationJob, nextGeneration, refuseOlderStore } from '../../broker/process/generation.ts';
import { findGeneration } from '../../broker/store/generation.ts';
import { migrate } from '../../broker/store/migrate.ts';
import { openSqlite } from '../../broker/store/sqlite/sqlite.ts';
import { newFolder } from '../world/stores.ts';

test('a start is not refused while other processes start and store their generations', async () => {
  const dataFolder = newFolder();
  const store = openSqlite(dataFolder);
  onTestFinished(() => store.close());
  await migrate(store);
  const places = { dataFolder, keyFile: `${dataFolder}/none`, masterKey: Buffer.alloc(32) } as never;
  const log = makeLog('silent');
  await nextGeneration(store, places, log);
  // Another process starts after each statement.
  const others: KyselyPlugin = {
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      await nextGeneration(store, places, log);
      return result;
    },
  };
  await refuseOlderStore({ ...store, db: store.db.withPlugin(others) }, places);
  // The twin: the store was replaced by an older copy, so the remembered generation is higher.
  await store.db.updateTable('meta').set({ value: '1' }).where('name', '=', 'generation').execute();
  await expect(refuseOlderStore(store, places)).rejects.toThrow('older than the one that ran here before');
});

test('the generation advances each hour, also after a clock that was ahead was set back', async () => {
  const dataFolder = newFolder();
  const store = openSqlite(dataFolder);
  onTestFinished(() => store.close());
  await migrate(store);
  const config = { dataFolder, keyFile: `${dataFolder}/none`, masterKey: Buffer.alloc(32) } as never;
  const log = makeLog('silent');
  await nextGeneration(store, config, log);
  const { number: first } = (await findGeneration(store.db))!;
  const job = generationJob({ store, config, log });
  const advanced: number[] = [];
  for (const hours of [0, 0.5, 1, 100, 2, 2.5, 3]) {
    await job(hours * 3_600_000);
    advanced.push((await findGeneration(store.db))!.number - first);
  }
  expect(advanced).toEqual([0, 0, 1, 2, 3, 3, 4]);
});
