/** Compiled policies: one that is used stays, however many others come. */
import { expect, test } from 'vitest';
import { compiledGovernance } from '../../broker/facts/compiled.ts';
import { recentlyUsed } from '../../broker/facts/recently-used.ts';
import { startWorld } from '../world/world.ts';

test('a policy in use is compiled once, though 5,000 others come after it; one that nobody uses is dropped', async () => {
  const world = await startWorld('sqlite');
  const organisation = await world.organisation();
  const id = await organisation.policy([{ effect: 'allow' }]);
  const compiled = compiledGovernance(world.running.broker);
  const policy = (name: string) => compiled.policy(organisation.id, id, name, 1);
  const [hot, cold] = [await policy('hot'), await policy('cold')];
  for (let other = 1; other <= 5_001; other++) {
    await policy(`other ${other}`);
    if (other % 1_000 === 0) expect(await policy('hot')).toBe(hot);
  }
  expect(await policy('hot')).toBe(hot);
  expect(await policy('cold')).not.toBe(cold);
});

test('a cache holds no more than it may, and nothing that was deleted', () => {
  const cache = recentlyUsed<number>(10);
  for (let key = 0; key < 100; key++) cache.set(`${key}`, key);
  const kept = Array.from({ length: 100 }, (_, key) => cache.get(`${key}`)).filter((value) => value !== undefined);
  expect(kept.length).toBeLessThanOrEqual(10);
  expect(kept).toContain(99);
  cache.set('x', 1);
  cache.delete('x');
  expect(cache.get('x')).toBeUndefined();
});
