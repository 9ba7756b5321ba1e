import { expect, test, vi } from 'vitest';
import { ALLOW_ALL, givenWorld, READ } from '../world/world.ts';

const world = givenWorld('sqlite');

test('the time of each decision is counted for its organisation, which pauses when its conditions are costly (test/runtime/pace.test.ts)', async () => {
  const [one, other] = [await world.demoOrganisation(), await world.demoOrganisation()];
  const agents = [await one.agent({ rules: ALLOW_ALL }), await other.agent({ rules: ALLOW_ALL })];
  const run = vi.spyOn(world.running.services.decisions, 'run');
  for (const agent of agents) expect((await agent.act(READ)).status).toBe(200);
  expect(run.mock.calls.map(([organisation]) => organisation)).toEqual([one.id, other.id]);
});
