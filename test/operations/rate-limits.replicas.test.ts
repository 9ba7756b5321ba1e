/** Rate limits over three brokers on one PostgreSQL, one of which has a clock that is off by more than a window. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../bench/free-port.ts';
import { ALLOWANCE } from '../../broker/runtime/window-counts.ts';
import { type Answer, makeKeyPair, send, TestAgent } from '../world/agent.ts';
import { type BrokerProcess, spawnBroker } from '../world/broker-process.ts';
import { expectEnvelope, withoutCalls } from '../world/evidence.ts';
import { thorough } from '../world/runner/thorough.ts';
import { hasRedis, startRedis } from '../world/servers/redis.ts';
import { query } from '../world/store-contents.ts';
import { newFolder, postgresNote, STORES } from '../world/stores.ts';
import { fresh, givenWorld, READ, shared, type World } from '../world/world.ts';

const FACTOR = 0.1;
/** Limit of `POST /v1/actions`. */
const LIMIT = 600 * FACTOR;
const AHEAD = LIMIT * ALLOWANCE;
/** Below the 16 calls that an agent may have in flight. */
const AT_ONCE = 12;

/** Starts another broker with the world's public URL; returns its process and its own URL. */
async function startBeside(world: World, clockMs?: number): Promise<{ url: string; process: BrokerProcess }> {
  const port = await freePort();
  const environment = { ...world.environment, PORT: `${port}`, BASE_URL: world.running.baseUrl, LOG_LEVEL: 'warn' };
  const clock = join(newFolder(), 'shift');
  if (clockMs !== undefined) writeFileSync(clock, `${clockMs}`);
  const process = spawnBroker(
    {
      ...environment,
      AGENT_BROKER_DATA: newFolder(),
      AGENT_BROKER_KEY_FILE: world.running.broker.config.keyFile,
      TEST_CLOCK_FILE: clock,
    },
    clockMs === undefined ? [] : ['--import', fileURLToPath(new URL('../world/shifted-clock.ts', import.meta.url))],
  );
  expect(await process.serve(), process.output().stderr).toBeDefined();
  return { url: `http://localhost:${port}`, process };
}

/** Sends requests to the brokers in turn, `AT_ONCE` concurrently. */
async function inTurn<T>(urls: readonly string[], times: number, ask: (url: string) => Promise<T>): Promise<T[]> {
  const answers: T[] = [];
  for (let asked = 0; asked < times; asked += AT_ONCE)
    answers.push(
      ...(await Promise.all(
        Array.from({ length: Math.min(AT_ONCE, times - asked) }, (_, index) =>
          ask(urls[(asked + index) % urls.length]!),
        ),
      )),
    );
  return answers;
}

const at = (agent: TestAgent, url: string) => new TestAgent({ ...agent, baseUrl: url });
const withStatus = (answers: readonly Answer[], status: number) => answers.filter((one) => one.status === status);

describe.runIf(STORES.includes('postgres'))(`rate limits over replicas on postgres${postgresNote}`, () => {
  let urls: string[];
  const world = givenWorld('postgres', { AGENT_BROKER_LIMIT_FACTOR: `${FACTOR}` });
  const organisation = shared(() => world.demoOrganisation());
  const agent = fresh(() => organisation.agent());
  beforeAll(async () => {
    const beside = await Promise.all([startBeside(world), startBeside(world, 100_000)]);
    urls = [world.running.baseUrl, ...beside.map(({ url }) => url)];
    return () => {
      for (const { process } of beside) process.signal('SIGKILL');
    };
  });
  const callAt = (url: string) => at(agent, url).act(READ);

  test('MR-05 an agent gets its limit once, not three times, and each broker gives the same time for a retry', async () => {
    const answers = await inTurn(urls, LIMIT + 60, callAt);
    const made = withStatus(answers, 200).length;
    expect(made).toBeGreaterThanOrEqual(LIMIT);
    expect(made).toBeLessThanOrEqual(LIMIT + urls.length * AHEAD);
    expect(made + withStatus(answers, 429).length).toBe(answers.length);
    expect(answers.slice(0, LIMIT).filter(({ status }) => status !== 200)).toEqual([]);
    const again: number[] = [];
    for (const url of urls) {
      const answer = await withoutCalls(world, () => callAt(url));
      expectEnvelope(answer, 429, 'rate_limited');
      const seconds = Number(answer.headers.get('retry-after'));
      expect(seconds).toBeGreaterThan(0);
      expect(seconds).toBeLessThanOrEqual(60);
      expect(answer.headers.get('ratelimit')).toBe(`"actions";r=0;t=${seconds}`);
      again.push(performance.now() + seconds * 1000);
    }
    // Each rounded up to a second.
    expect(Math.max(...again) - Math.min(...again)).toBeLessThan(2_500);
    // The limit is of this agent only.
    for (const url of urls) expect((await at(await organisation.agent(), url).act(READ)).status).toBe(200);
  });

  test('MR-05 at one broker alone an agent gets exactly its limit', async () => {
    const answers = await inTurn(urls.slice(1, 2), LIMIT + 10, callAt);
    expect(withStatus(answers, 200)).toHaveLength(LIMIT);
  });

  test('MR-05 guesses of a sign-in link are counted over all brokers, exactly', async () => {
    const guess = (url: string) =>
      send(`${url}/owner/sign-in`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{"token":"x"}',
        from: '127.0.0.7',
      });
    const answers = await inTurn(urls, 9, guess);
    expect(withStatus(answers, 410)).toHaveLength(10 * FACTOR);
    expect(withStatus(answers, 429)).toHaveLength(9 - 10 * FACTOR);
  });

  test('MR-05 bad bearers of one address over all brokers are verified as often as at one broker', async () => {
    const stranger = at(agent, urls[0]!);
    const bad = (url: string) =>
      at(agent, url).get(
        '/v1/agents/me',
        { authorization: `Bearer ${stranger.token({ agent_id: crypto.randomUUID() })}` },
        '127.0.0.8',
      );
    const most = 300 * FACTOR;
    const looked = withStatus(await inTurn(urls, most + 60, bad), 401).length;
    expect(looked).toBeGreaterThanOrEqual(most);
    // Plus those in flight when the limit was exceeded.
    expect(looked).toBeLessThanOrEqual(most + urls.length * most * ALLOWANCE + AT_ONCE);
  });

  test('MR-05 five wrong signatures at any of the brokers halt an agent for their address at all of them', async () => {
    const headers = () => ({
      authorization: `Bearer ${new TestAgent({ ...agent, keys: forger }).token({ jti: crypto.randomUUID() })}`,
    });
    const forger = makeKeyPair();
    for (let guess = 0; guess < 4; guess++)
      expectEnvelope(await at(agent, urls[guess % 3]!).get('/v1/agents/me', headers()), 401, 'invalid_signature');
    for (const url of urls) expect((await callAt(url)).status).toBe(200);
    await at(agent, urls[1]!).get('/v1/agents/me', headers());
    for (const url of urls) expect((await callAt(url)).body.reason).toBe('circuit_breaker_open');
    // From another address the agent is not affected.
    for (const url of urls) expect((await at(agent, url).act(READ, {}, '127.0.0.9')).status).toBe(200);
    const guesses = await inTurn(urls, 24, (url) => at(agent, url).get('/v1/agents/me', headers(), '127.0.0.6'));
    expect(withStatus(guesses, 200)).toEqual([]);
    const [row] = await query(world.environment, `select strikes, open_until from breakers where key = '127.0.0.6'`);
    expect(Number(row!.strikes)).toBeGreaterThanOrEqual(5);
    expect(row!.open_until).not.toBeNull();
  });

  test('while the shared counters are unavailable calls are made, and each replica enforces the limit by itself', async () => {
    const client = new pg.Client({ connectionString: world.environment.DATABASE_URL! });
    await client.connect();
    onTestFinished(() => client.end());
    await client.query('begin; lock table rate_counts in access exclusive mode');
    const answers = await inTurn(urls.slice(0, 2), 2 * LIMIT + 40, callAt);
    expect(withStatus(answers, 200)).toHaveLength(2 * LIMIT);
    expect(withStatus(answers, 429)).toHaveLength(40);
    await client.query('rollback');
  });
});

const redis = await hasRedis();

describe.runIf(STORES.includes('postgres') && redis)(
  `rate limits over replicas on Redis${redis ? '' : ' (skipped: there is no redis-server here; CI installs it)'}`,
  () => {
    const server = shared(() => startRedis());
    let beside: { url: string; process: BrokerProcess };
    const world = givenWorld('postgres', () => ({
      AGENT_BROKER_LIMIT_FACTOR: `${FACTOR}`,
      RATE_LIMIT_URL: server.url,
    }));
    const organisation = shared(() => world.demoOrganisation());
    const agent = fresh(() => organisation.agent());
    beforeAll(async () => {
      beside = await startBeside(world);
      return () => beside.process.signal('SIGKILL');
    });
    const urls = () => [world.running.baseUrl, beside.url];
    const calls = async (times: number) =>
      withStatus(await inTurn(urls(), times, (url) => at(agent, url).act(READ)), 200).length;

    test('MR-05 an agent gets its limit once, and PostgreSQL is not queried', async () => {
      const made = await calls(LIMIT + 60);
      expect(made).toBeGreaterThanOrEqual(LIMIT);
      expect(made).toBeLessThanOrEqual(LIMIT + 2 * AHEAD);
      expect(await query(world.environment, 'select * from rate_counts')).toEqual([]);
    });

    // A server that is not there is in the next test, and at the start in thorough runs.
    test.each<[string, Partial<URL>]>([
      ...(thorough ? [['with no server at its port', { port: '9' }] as [string, Partial<URL>]] : []),
      ['with another password', { password: 'another-password' }],
    ])('a Redis %s is reported at the start, before anything is counted', async (_what, change) => {
      const url = Object.assign(new URL(server.url), change);
      const environment = { ...world.environment, RATE_LIMIT_URL: url.href, AGENT_BROKER_DATA: newFolder() };
      const process = spawnBroker({
        ...environment,
        PORT: `${await freePort()}`,
        BASE_URL: world.running.baseUrl,
        LOG_LEVEL: 'warn',
        AGENT_BROKER_KEY_FILE: world.running.broker.config.keyFile,
      });
      onTestFinished(() => process.signal('SIGKILL'));
      expect(await process.serve(), process.output().stderr).toBeDefined();
      await expect.poll(() => process.output().stderr).toContain('each process counts for itself');
      expect(process.output().stderr).not.toMatch(/another-password/);
    });

    test('a stopped or unreachable Redis delays no call: each replica counts by itself until Redis is back', async () => {
      server.pause();
      expect(await calls(2 * LIMIT + 24)).toBeLessThanOrEqual(2 * LIMIT + AHEAD);
      server.resume();
      await server.stop();
      const other = await organisation.agent();
      const one = await inTurn(urls(), 2 * LIMIT + 24, (url) => at(other, url).act(READ));
      expect(withStatus(one, 200)).toHaveLength(2 * LIMIT);
      expect(withStatus(one, 429)).toHaveLength(24);
      await server.start();
      // The clients reconnect within seconds, and then the next use is counted in Redis.
      for (const url of urls()) {
        const probe = at(await organisation.agent(), url);
        const isCounted = async () => {
          await probe.get('/v1/agent/permissions');
          return (await server.keys()).some((key) => key.endsWith(probe.id));
        };
        await expect.poll(isCounted, { timeout: 15_000, interval: 250 }).toBe(true);
      }
      const { stderr } = beside.process.output();
      expect(stderr).toContain('each process counts for itself');
      expect(stderr).not.toContain(server.password);
      const third = await organisation.agent();
      const both = await inTurn(urls(), LIMIT + 60, (url) => at(third, url).act(READ));
      expect(withStatus(both, 200).length).toBeLessThanOrEqual(LIMIT + 2 * AHEAD);
    });
  },
);
