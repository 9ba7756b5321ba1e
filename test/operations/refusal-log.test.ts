/** The log of limits that refuse requests: one line at the first refusal, then one per minute with the count. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { makeLog } from '../../broker/log/log.ts';
import { makeRefusalLog } from '../../broker/log/refusals.ts';
import { jsonPost, send } from '../world/agent.ts';
import { READ, startWorld } from '../world/world.ts';

const BEGINS = 'a limit starts to refuse requests';
const GOES_ON = 'a limit refused requests in the last minute';

test('429s are logged once per limit and agent or address, without secrets', async () => {
  const world = await startWorld('sqlite', { AGENT_BROKER_LIMIT_FACTOR: '0.02' });
  const organisation = await world.organisation();
  await organisation.platform();
  const [agent, other] = [await organisation.agent(), await organisation.agent()];
  const warn = vi.spyOn(world.running.broker.log, 'warn').mockImplementation(() => {});
  onTestFinished(() => warn.mockRestore());
  const statuses = await Promise.all(Array.from({ length: 30 }, async () => (await agent.act(READ)).status));
  expect(statuses.filter((status) => status === 429)).toHaveLength(18);
  for (let i = 0; i < 14; i++) await other.act(READ);
  for (let i = 0; i < 3; i++) await send(`${world.running.baseUrl}/owner/sign-in`, jsonPost({ token: 'sit_CANARY' }));
  const line = (route: string, by: object) => [{ limit: 'rate_limited', route, ...by, refused: 1 }, BEGINS];
  expect(warn.mock.calls).toEqual([
    line('POST /v1/actions', { agent: agent.agentId, organisation: organisation.id }),
    line('POST /v1/actions', { agent: other.agentId, organisation: organisation.id }),
    line('POST /owner/sign-in', { source: '127.0.0.1' }),
  ]);
});

describe('a limit that keeps refusing', () => {
  const warn = vi.fn();
  beforeEach(() => {
    vi.useFakeTimers();
    warn.mockClear();
  });
  afterEach(() => {
    vi.useRealTimers();
  });
  const AGENT = { limit: 'rate_limited', route: 'POST /v1/actions', agent: 'agt_x' };

  test('is logged once a minute, with the count, until it stops', () => {
    const refusals = makeRefusalLog({ warn });
    for (let second = 0; second < 150; second++) {
      for (let i = 0; i < 10; i++) refusals.refused({ ...AGENT });
      vi.advanceTimersByTime(1_000);
    }
    vi.advanceTimersByTime(600_000);
    expect(warn.mock.calls).toEqual([
      [{ ...AGENT, refused: 1 }, BEGINS],
      [{ ...AGENT, refused: 599 }, GOES_ON],
      [{ ...AGENT, refused: 600 }, GOES_ON],
      [{ ...AGENT, refused: 300 }, GOES_ON],
    ]);
    refusals.refused({ ...AGENT });
    expect(warn).toHaveBeenLastCalledWith({ ...AGENT, refused: 1 }, BEGINS);
  });

  test('does not flood the log when thousands of addresses are refused', () => {
    const refusals = makeRefusalLog({ warn });
    for (let i = 0; i < 5_000; i++) refusals.refused({ limit: 'rate_limited', source: `2001:db8:${i}::/64` });
    expect(warn).toHaveBeenCalledTimes(101);
    vi.advanceTimersByTime(60_000);
    const last = warn.mock.lastCall;
    expect(last).toEqual([{ limit: 'all, of further agents and addresses', refused: 4_899 }, GOES_ON]);
  });
});

test('an organisation whose agents are refused by many limits does not hide the refusals of another one', () => {
  const lines: Record<string, unknown>[] = [];
  const { refused } = makeRefusalLog(makeLog('warn', { write: (line: string) => void lines.push(JSON.parse(line)) }));
  for (let i = 0; i < 500; i++) refused({ limit: 'rate_limited', agent: `agt_${i}`, organisation: 'many' });
  const one = { limit: 'rate_limited', agent: 'agt_x', organisation: 'one' };
  refused(one);
  expect(lines.filter(({ organisation }) => organisation === 'many')).toHaveLength(50);
  expect(lines.at(-1)).toMatchObject({ ...one, msg: BEGINS });
});

test('connections refused because file descriptors are exhausted are logged', async () => {
  const program = `
    import { openListener } from './broker/process/listener.ts';
    import { makeLog } from './broker/log/log.ts';
    const listener = await openListener({ host: '127.0.0.1', port: 0 }, makeLog('warn'));
    process.stdout.write(String(listener.port));
    process.stdin.resume().on('end', () => process.exit());`;
  const node = ['-c', 'ulimit -n 200; exec "$@"', 'sh', process.execPath, '--input-type=module', '-e', program];
  const child = spawn('sh', node, { stdio: ['pipe', 'pipe', 'pipe'] });
  onTestFinished(() => void child.kill());
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  const [port] = await once(child.stdout, 'data');
  const sockets: Socket[] = [];
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  for (let i = 0; i < 160; i++) sockets.push(connect(Number(port), '127.0.0.1').on('error', () => {}));
  await vi.waitFor(() => expect(log).not.toBe(''), 10_000);
  const lines = log.trim().split('\n');
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    { level: 'warn', time: expect.any(String), limit: '150 connections', refused: 1, msg: BEGINS },
  ]);
});
