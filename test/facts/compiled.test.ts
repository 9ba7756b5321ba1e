/** Compiled policies: one that is used stays, however many others come. */
import { expect, test } from 'vitest';
import { compiledGovernance } from '../../broker/facts/compiled.ts';
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
