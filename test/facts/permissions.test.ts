/** Reading permissions lets other requests be served between the platforms of an agent. */
import { expect, test } from 'vitest';
import type { AgentPrincipal } from '../../broker/auth/principal.ts';
import { compiledGovernance } from '../../broker/facts/compiled.ts';
import { factsLoader } from '../../broker/facts/facts.ts';
import { permissionsReader } from '../../broker/facts/permissions.ts';
import { ALL_PLATFORMS } from '../../broker/policy/facts.ts';
import { ANY_ADDRESS } from '../../broker/store/facts-breakers.ts';
import { factsReaders } from '../../broker/store/facts-reader.ts';
import { countTurns } from '../world/turns.ts';
import { startWorld } from '../world/world.ts';

test('no two platforms of an agent are loaded in one turn of the event loop, if each takes long', async () => {
  const world = await startWorld('sqlite');
  const organisation = await world.organisation();
  const grants = Object.fromEntries(['one', 'two', 'three'].map((id) => [id, { scopeList: ['demo:read'] }]));
  for (const id of Object.keys(grants)) await organisation.platform({ id });
  const agent = await organisation.agent({ grants });
  const { broker } = world.running;
  const rows = await factsReaders(broker.store).own(agent.agentId, ALL_PLATFORMS, ANY_ADDRESS);
  const load = factsLoader(compiledGovernance(broker));
  const loaded: number[] = [];
  using turns = countTurns();
  const read = permissionsReader(broker, async (rows, now) => {
    loaded.push(turns.turn);
    const until = performance.now() + 6;
    while (performance.now() < until);
    return await load(rows, now);
  });
  const { platforms } = await read({ agent: rows[0]!, rows } as unknown as AgentPrincipal);
  expect(platforms.map(({ platformId }) => platformId)).toEqual(['one', 'three', 'two']);
  expect(new Set(loaded).size).toBe(3);
});
