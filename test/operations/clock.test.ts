/** Machines with a wrong clock: real processes whose clock is moved while they run. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { freePort } from '../../bench/free-port.ts';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { type Answer, expectStatus, send, TestAgent } from '../world/agent.ts';
import { type BrokerProcess, spawnBroker } from '../world/broker-process.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { thorough } from '../world/runner/thorough.ts';
import { query } from '../world/store-contents.ts';
import { newFolder, postgresNote, STORES } from '../world/stores.ts';
import { givenWorld, shared } from '../world/world.ts';

const HELD = { platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write', data: { a: 1 } };
const CHANGE = { platform: 'demo', endpoint: '/items/1', method: 'PATCH', scope: 'demo:write', data: { a: 1 } };
const SECOND_MS = 1_000;
const HOUR_MS = 3600 * SECOND_MS;
const IN_DOUBT = /"level":"error".*clock/;
const IN_DOUBT_EACH = new RegExp(IN_DOUBT, 'g');
const TIMEOUT = { timeout: 20_000, interval: 20 };

// Each test starts processes, which takes seconds on a busy machine.
vi.setConfig({ testTimeout: scaledTimeout(60_000) });

type Moved = BrokerProcess & { move(shiftMs: number): void };

/** Starts a broker whose clock is off by `shiftMs`. It compares clocks every `beatMs`, and sweeps for expired items every 40 ms. */
function spawnMoved(environment: Record<string, string>, shiftMs = 0, beatMs = 40): Moved {
  const file = join(newFolder(), 'shift');
  const move = (ms: number) => writeFileSync(file, String(ms));
  move(shiftMs);
  const fast = { TEST_BEAT_MS: `${beatMs}`, TEST_CHORES_MS: '40', LOG_LEVEL: 'info', TEST_CLOCK_FILE: file };
  const preload = fileURLToPath(new URL('../world/shifted-clock.ts', import.meta.url));
  const child = spawnBroker({ ...environment, ...fast }, ['--import', preload]);
  onTestFinished(() => child.signal('SIGKILL'));
  return { ...child, move };
}

const saysDoubt = (child: BrokerProcess) => vi.waitUntil(() => IN_DOUBT.test(child.output().stderr), TIMEOUT);
const health = (url: string) => send(`${url}/health`, {});

/** Waits for many sweeps of expired items. */
async function rounds(environment: Record<string, string>): Promise<void> {
  const sql = `select max(seen_at) as at from instances`;
  const [before] = await query(environment, sql);
  await vi.waitUntil(async () => Number((await query(environment, sql))[0]!.at) > Number(before!.at) + 400, TIMEOUT);
}

describe.runIf(STORES.includes('postgres'))(`one of two replicas has a wrong clock${postgresNote}`, () => {
  let environment: Record<string, string>;
  let thereUrl: string;
  const world = givenWorld('postgres');
  const organisation = shared(() => world.demoOrganisation());
  const here = shared(() => organisation.agent());
  /** After four of these intervals without a heartbeat the other broker is considered dead, and its calls are closed. */
  const HEARTBEAT_MS = 250;
  beforeAll(() => {
    const beating = setInterval(() => void world.running.services.heartbeat.beat().catch(() => {}), HEARTBEAT_MS / 5);
    return () => clearInterval(beating);
  });
  beforeAll(async () => {
    const port = await freePort();
    thereUrl = `http://localhost:${port}`;
    environment = {
      ...world.environment,
      PORT: `${port}`,
      BASE_URL: world.running.baseUrl,
      AGENT_BROKER_DATA: newFolder(),
      AGENT_BROKER_KEY_FILE: world.running.broker.config.keyFile,
    };
  });

  // A clock that is behind is refused in thorough runs, and on SQLite below.
  test.each(thorough ? [40 * HOUR_MS, -6 * 60 * SECOND_MS] : [40 * HOUR_MS])(
    'a replica whose clock is %i ms off does not start',
    async (shiftMs) => {
      const child = spawnMoved(environment, shiftMs, HEARTBEAT_MS);
      expect(await child.serve()).toBeUndefined();
      expect((await child.ended).code).toBe(1);
      expect(child.output().stderr).toMatch(/clock of this machine is (40 h ahead of|6 min behind) .*PostgreSQL/);
    },
  );

  test('a replica whose clock is a minute off serves, warns, and expires nothing; set 40 hours ahead, no replica loses an approval or an Idempotency-Key', async () => {
    const child = spawnMoved(environment, 60 * SECOND_MS, HEARTBEAT_MS);
    expect(await child.serve(), child.output().stderr).toBeDefined();
    await saysDoubt(child);
    expect((await health(thereUrl)).status).toBe(503);
    child.move(0);
    await vi.waitUntil(async () => (await health(thereUrl)).status === 200, TIMEOUT);
    const there = new TestAgent({ ...here, baseUrl: thereUrl });
    const key = { 'idempotency-key': 'once' };
    await expectStatus(200, here.act(CHANGE, key));
    const held = await here.hold(HELD);
    const sent = world.upstream.seen.length;
    child.move(40 * HOUR_MS);
    await vi.waitUntil(async () => (await health(thereUrl)).status === 503, TIMEOUT);
    await rounds(environment);
    for (const agent of [here, there, here]) {
      const again = await agent.act(CHANGE, key);
      expect([again.status, again.headers.get('idempotency-replayed')], again.text).toEqual([200, 'true']);
    }
    expect(world.upstream.seen).toHaveLength(sent);
    expect(await query(environment, `select status from approvals where id = '${held}'`)).toEqual([
      { status: 'pending' },
    ]);
    const decided = await organisation.approve(held);
    expect([decided.status, decided.body.status], decided.text).toEqual([200, 'approved']);
    expect((await health(thereUrl)).status).toBe(503);
    child.move(0);
    await vi.waitUntil(async () => (await health(thereUrl)).status === 200, TIMEOUT);
    expect(child.output().stderr).toContain('the clocks agree again');
  });
});

describe('a wrong clock on sqlite', () => {
  let agent: TestAgent;
  let session: string;
  const world = givenWorld();
  beforeAll(async () => {
    const organisation = await world.organisation();
    await organisation.platform();
    agent = await organisation.agent();
    session = mintOwnerSession(world.running.broker, organisation.owner).token;
    await world.running.stop();
  });
  const environment = shared(() => ({ ...world.environment, PORT: new URL(world.running.baseUrl).port }));

  const asOwner = (path: string, init: RequestInit = {}): Promise<Answer> =>
    send(agent.baseUrl + path, { ...init, headers: { authorization: `Bearer ${session}` } });
  async function ended(child: BrokerProcess): Promise<void> {
    child.signal('SIGTERM');
    expect((await child.ended).code, child.output().stderr).toBe(0);
  }

  test('set 40 hours ahead for a while: nothing expires, and a signed out session stays ended; set back by two hours: rows stay in order', async () => {
    const child = spawnMoved(environment);
    expect(await child.serve(), child.output().stderr).toBeDefined();
    const key = { 'idempotency-key': 'once' };
    expect((await agent.act(CHANGE, key)).status).toBe(200);
    const held = await agent.hold(HELD);
    expect((await asOwner('/owner/sign-out', { method: 'POST' })).status).toBe(200);
    child.move(40 * HOUR_MS);
    await saysDoubt(child);
    await rounds(environment);
    expect((await health(agent.baseUrl)).status).toBe(503);
    expect((await agent.act(CHANGE, key)).headers.get('idempotency-replayed')).toBe('true');
    expect((await asOwner('/owner/me')).body.error).toBe('token_expired');
    child.move(0);
    await vi.waitUntil(async () => (await health(agent.baseUrl)).status === 200, TIMEOUT);
    expect((await asOwner('/owner/me')).body.error).toBe('token_expired');
    expect((await agent.get(`/v1/approvals/${held}`)).body.status).toBe('pending');

    // Set back by two hours: the broker’s time does not go back, and rows stay in order.
    await agent.act(CHANGE);
    child.move(-2 * HOUR_MS);
    await vi.waitUntil(async () => (await health(agent.baseUrl)).status === 503, TIMEOUT);
    expect(child.output().stderr.match(IN_DOUBT_EACH)).toHaveLength(2);
    const last = await expectStatus(200, agent.act(CHANGE));
    expect(await query(environment, 'select id from audit_rows order by id desc limit 1')).toEqual([
      { id: last.body._meta.audit_id },
    ]);
    child.move(0);
    await ended(child);
  });

  test('behind the newest heartbeat: the broker starts only with --accept-clock', async () => {
    const refused = spawnMoved(environment, -HOUR_MS);
    expect(await refused.serve()).toBeUndefined();
    expect((await refused.ended).code).toBe(1);
    expect(refused.output().stderr).toMatch(/60 min behind the newest heartbeat.*--accept-clock/);
    const accepted = spawnMoved({ ...environment, TEST_ACCEPT_CLOCK: '1' }, -HOUR_MS);
    expect(await accepted.serve(), accepted.output().stderr).toBeDefined();
    expect((await health(agent.baseUrl)).status).toBe(200);
    await ended(accepted);
    // The twin: a clock far ahead of the newest heartbeat, as after a night without a broker, is accepted.
    const next = spawnMoved(environment, 12 * HOUR_MS);
    expect(await next.serve(), next.output().stderr).toBeDefined();
    expect(next.output().stderr).not.toMatch(IN_DOUBT);
    await ended(next);
  });

  test('slightly behind the newest heartbeat: the broker starts, expires nothing, and is ready once the clock has caught up', async () => {
    const [beat] = await query(environment, `select value from meta where name = 'newest_beat'`);
    const newest = Number(beat!.value) - Date.now();
    const child = spawnMoved(environment, newest - 120 * SECOND_MS);
    expect(await child.serve(), child.output().stderr).toBeDefined();
    await saysDoubt(child);
    expect((await health(agent.baseUrl)).status).toBe(503);
    child.move(newest + 60 * SECOND_MS);
    await vi.waitUntil(async () => (await health(agent.baseUrl)).status === 200, TIMEOUT);
    await ended(child);
  });
});
