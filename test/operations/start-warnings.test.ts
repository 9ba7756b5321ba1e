import { expect, onTestFinished, test } from 'vitest';
import { readConfig } from '../../broker/environment/config.ts';
import type { Log } from '../../broker/log/log.ts';
import { warnOfOtherAddress } from '../../broker/process/start-warnings.ts';
import { openSqlite } from '../../broker/store/sqlite/sqlite.ts';
import { copyMigratedStore, newFolder } from '../world/stores.ts';

test('a changed or lost BASE_URL, or one that differs between replicas, is a warning', async () => {
  const store = openSqlite(copyMigratedStore(newFolder()));
  onTestFinished(() => store.close());
  const served = async (BASE_URL?: string) => {
    const warned: string[] = [];
    const log = { warn: (text: string) => warned.push(text) } as unknown as Log;
    await warnOfOtherAddress(store, readConfig(BASE_URL === undefined ? {} : { BASE_URL }), log);
    return warned.map((text) => /^BASE_URL is (.+), and this store was last served with (.+?)\. /.exec(text)?.slice(1));
  };
  const [first, second] = ['https://broker.acme.example', 'https://broker.new.example'];
  expect(await served(), 'a trial without an address').toEqual([]);
  expect(await served(first)).toEqual([]);
  expect(await served(first)).toEqual([]);
  expect(await served()).toEqual([['not set', first]]);
  expect(await served(second)).toEqual([[second, first]]);
  expect(await served(second)).toEqual([]);
  expect(await served(first), 'the other replica').toEqual([[first, second]]);
});
