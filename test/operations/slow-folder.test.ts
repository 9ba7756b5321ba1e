import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { send } from '../world/agent.ts';
import { spawnBroker } from '../world/broker-process.ts';
import { READ, startWorld } from '../world/world.ts';

const WRITE_MS = 200;

/** The first slot of the journal is written three times, to measure the speed of the disk. */
test.each([
  ['slow', { SLOW_AFTER: '0' }, true],
  ['that becomes slow later', { SLOW_AFTER: '5' }, false],
])('reads on a data folder %s wait only for their own journal entries', async (_what, slow, isWarned) => {
  const world = await startWorld('sqlite');
  const organisation = await world.organisation();
  await organisation.platform();
  const agent = await organisation.agent();
  await world.running.stop();
  const preload = fileURLToPath(new URL('../world/slow-folder.ts', import.meta.url));
  const environment = { ...world.environment, PORT: new URL(agent.baseUrl).port, LOG_LEVEL: 'warn', ...slow };
  const child = spawnBroker(environment, ['--import', preload]);
  onTestFinished(() => child.signal('SIGKILL'));
  expect(await child.serve(), child.output().stderr).toBeDefined();
  expect(child.output().stderr.includes('the data folder is slow'), 'the start warns').toBe(isWarned);
  const began = performance.now();
  const reads = Array.from({ length: 30 }, () => agent.act(READ));
  const versions: number[] = [];
  let done = false;
  const others = (async () => {
    while (!done) {
      const asked = performance.now();
      await send(`${agent.baseUrl}/version`, {});
      versions.push(performance.now() - asked);
      await new Promise((later) => setTimeout(later, 10));
    }
  })();
  expect((await Promise.all(reads)).map(({ status }) => status)).toEqual(Array(30).fill(200));
  const took = performance.now() - began;
  done = true;
  await others;
  expect(took, 'one after the other').toBeLessThan(30 * WRITE_MS);
  expect(versions.length, 'answered meanwhile').toBeGreaterThan(5);
  child.signal('SIGTERM');
  expect((await child.ended).code).toBe(0);
});
