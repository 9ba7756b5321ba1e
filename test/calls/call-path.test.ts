/** Counts the files that a governed read enters, by V8's coverage: the path of a call must stay short enough to read. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { TestAgent } from '../world/agent.ts';
import { spawnBroker } from '../world/broker-process.ts';
import { ROOT } from '../world/root.ts';
import { ALLOW_ALL, READ, startWorld } from '../world/world.ts';

/** The count at the last change: an increase needs a reason. The last ones were the lease of a call, which parsed bodies use, too, and the
 * measurement of decisions (runtime/pace.ts). */
const MAX_FILES = 121;

/** Runs in the broker: each SIGUSR2 prints the product files whose functions were called since the last one, in its own thread. */
const COUNTER = `
import { Session } from 'node:inspector/promises';
const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
process.on('SIGUSR2', async () => {
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const called = result.filter(({ url, functions }) => /^file:.*[/](broker|json|mcp)[/]/.test(url) && !url.includes('node_modules')
    && functions.some(({ functionName, ranges }) => functionName !== '' && ranges[0].count > 0));
  process.stdout.write('CALLED ' + JSON.stringify(called.map(({ url }) => url)) + '\\n');
});`;

test('a governed read enters no more files than before', async () => {
  const world = await startWorld('sqlite');
  const organisation = await world.demoOrganisation();
  const agent = await organisation.agent({ rules: ALLOW_ALL });
  await world.running.stop();
  const broker = spawnBroker(
    world.environment,
    ['--import', `data:text/javascript,${encodeURIComponent(COUNTER)}`],
    join(ROOT, 'test/world/child-broker.ts'),
  );
  const baseUrl = await broker.serve();
  expect(baseUrl, broker.output().stderr).toBeDefined();
  const caller = new TestAgent({ ...agent, baseUrl: baseUrl! });
  const lists = () =>
    [...broker.output().stdout.matchAll(/^CALLED (.*)$/gm)].map(([, list]) => JSON.parse(list!) as string[]);
  const called = async (): Promise<string[]> => {
    const before = lists().length;
    broker.signal('SIGUSR2');
    await expect.poll(() => lists().length, { timeout: 10_000 }).toBe(before + 1);
    return lists().at(-1)!;
  };
  for (let i = 0; i < 3; i++) expect((await caller.act(READ)).status).toBe(200);
  // The minimum of several runs: timers of the broker enter files too.
  let files: string[] = [];
  for (let i = 0; i < 5; i++) {
    await called();
    expect((await caller.act(READ)).status).toBe(200);
    const entered = (await called()).map((url) => url.slice(url.indexOf(ROOT) + ROOT.length + 1));
    if (i === 0 || entered.length < files.length) files = entered.toSorted();
  }
  expect(files).toContain('broker/policy/decide.ts');
  expect(files.length, files.join('\n')).toBeLessThanOrEqual(MAX_FILES);
});
