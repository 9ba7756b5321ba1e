import { expect, test, vi } from 'vitest';
import { countTurns } from '../world/turns.ts';
import { givenWorld } from '../world/world.ts';

const world = givenWorld('sqlite');

test('concurrent requests of owners are handled one in a turn of the event loop', async () => {
  const organisation = await world.organisation();
  const { ownersTurns } = world.running.services;
  const handled: number[] = [];
  const original = ownersTurns.pacer.bind(ownersTurns);
  const pacer = vi.spyOn(ownersTurns, 'pacer').mockImplementation((organisationId) => {
    const rest = original(organisationId);
    return async () => {
      await rest();
      handled.push(turns.turn);
    };
  });
  using turns = countTurns();
  const answers = await Promise.all(Array.from({ length: 20 }, () => organisation.ask('GET', '/owner/audit')));
  expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200));
  expect(new Set(handled).size).toBe(20);
  expect(pacer).toHaveBeenCalledTimes(20);
  pacer.mockRestore();
});
