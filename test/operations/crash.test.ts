import { afterAll, describe, expect, test } from 'vitest';
import type { AuditRow } from '../../broker/store/audit.ts';
import { checkReceipts, readAll } from '../world/after-crash.ts';
import { type BrokerProcess, spawnBroker } from '../world/broker-process.ts';
import { type CallKind, type Sent, startLoad } from '../world/load.ts';
import { makeRandom, type Random } from '../world/random.ts';
import { everythingStored, placesOf, query } from '../world/stored.ts';
import { newFolder, postgresNote, STORES, type StoreKind } from '../world/stores.ts';
import { CANARY, startWorld, type World } from '../world/world.ts';

/** On all stores together; the whole run is CRASH_KILLS=200. */
const KILLS = Math.ceil(Number(process.env.CRASH_KILLS ?? 20) / STORES.length);
const SEED = Number(process.env.CRASH_SEED ?? Math.floor(Math.random() * 2 ** 32));
const BODY_CANARY = 'BODY-CANARY-5e1f-abcdefghij-0123456789';
const LONGEST_RECOVERY_MS = 30_000;

const KINDS: readonly CallKind[] = [
  { share: 38, method: 'GET', scope: 'demo:read' },
  { share: 34, method: 'PATCH', scope: 'demo:write', data: { text: BODY_CANARY } },
  { share: 12, method: 'DELETE', scope: 'demo:delete' },
  { share: 8, method: 'POST', scope: 'demo:write', data: { text: BODY_CANARY }, collection: true },
  { share: 8, method: 'PATCH', scope: 'demo:read', data: { text: BODY_CANARY } },
];

describe.each(STORES)(`kill -9 at ${KILLS} random instants on %s (CRASH_SEED=${SEED})${postgresNote}`, (store) => {
  const children = new Set<BrokerProcess>();
  afterAll(() => {
    for (const child of children) child.signal('SIGKILL');
  });

  test('ST-03 every call that the platform saw is on record, once; every answer has its row; all of it verifies', {
    timeout: KILLS * 6_000 + 2 * LONGEST_RECOVERY_MS,
  }, async () => {
    const random = makeRandom(SEED);
    const { world, agents, environment } = await seed(store, random);
    const spawn = () => {
      const child = spawnBroker(environment);
      children.add(child);
      return child;
    };
    const load = startLoad({ agents, random, kinds: KINDS, baseUrl: agents[0]!.baseUrl, workers: 12 });
    let next = spawn();
    for (let kill = 0; kill < KILLS; kill++) {
      const current = next;
      next = spawn();
      const serving = current.serve();
      // One in five while it starts, and closes what the last one left.
      if (random() < 0.8) expect(await serving, current.output().stderr).toBeDefined();
      await pause(random() * 500);
      current.signal('SIGKILL');
      expect(await current.ended, current.output().stderr).toEqual({ code: null, signal: 'SIGKILL' });
    }
    expect(await next.serve(), next.output().stderr).toBeDefined();
    const restartedAt = performance.now();
    await load.stop();
    while ((await countIntents(environment)) > 0) {
      expect(performance.now() - restartedAt, 'I3: rows that are not final').toBeLessThan(LONGEST_RECOVERY_MS);
      await pause(100);
    }
    const answer = await fetch(`${load.baseUrl}/.well-known/svc-receipt-keys.json`);
    const keys = (await answer.json()) as { keys: { kid: string }[] };
    next.signal('SIGTERM');
    expect(await next.ended, next.output().stderr).toEqual({ code: 0, signal: null });

    const { rows, approvals } = await readAll(environment);
    checkReceipts(rows, keys);
    checkPlatform(world.upstream.seen, rows);
    checkAnswers(load.sent, rows);
    const held = rows.filter((row) => row.result === 'held');
    expect(approvals.map((approval) => approval.id).sort()).toEqual(held.map((row) => row.approval_id).sort());
    const stored = await everythingStored(environment);
    for (const child of children) stored.set('output', Buffer.from(JSON.stringify(child.output())));
    expect(placesOf(CANARY, stored), 'I7').toEqual([]);
    expect(placesOf(BODY_CANARY, stored), 'I7').toEqual([]);
    if (process.env.CRASH_REPORT) report(store, world.upstream.seen.length, load.sent, rows);
    // It was a test at all: calls went through, and calls were cut off.
    expect(world.upstream.seen.length).toBeGreaterThan(KILLS / 2);
    expect(rows.filter((row) => row.reason === 'outcome_unknown').length).toBeGreaterThan(KILLS / 10);
  });
});

/** CRASH_REPORT=1 says what the run was made of. */
function report(store: StoreKind, seen: number, sent: readonly Sent[], rows: readonly AuditRow[]): void {
  const counts = Object.groupBy(
    rows,
    (row) => `${row.method === 'GET' ? 'read' : 'change'} ${row.result} ${row.reason}`,
  );
  const lines = Object.entries(counts).map(([what, found]) => `  ${what}: ${found!.length}`);
  process.stderr.write(`${store}: ${KILLS} kills, ${sent.length} sent, ${seen} seen\n${lines.sort().join('\n')}\n`);
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** A store with two agents, made by a broker that has stopped again, and a platform that takes its time. */
async function seed(store: StoreKind, random: Random) {
  const world = await startWorld(store, { LOG_LEVEL: 'warn' });
  const organisation = await world.organisation();
  await organisation.platform();
  const agents = [await organisation.agent({ name: 'one' }), await organisation.agent({ name: 'two' })];
  await world.running.stop();
  const environment = {
    ...world.environment,
    PORT: new URL(world.running.baseUrl).port,
    NODE_COMPILE_CACHE: newFolder(),
  };
  world.upstream.answer = (request, response, body) => {
    const answer = () => response.setHeader('content-type', 'application/json').end(JSON.stringify({ body }));
    const slowness = random();
    if (slowness < 0.5 || request.destroyed) answer();
    else setTimeout(answer, slowness < 0.9 ? slowness * 30 : 150);
  };
  return { world, agents, environment };
}

async function countIntents(environment: Readonly<Record<string, string>>): Promise<number> {
  const [found] = await query(environment, `select count(*) as count from audit_rows where state = 'intent'`);
  return Number(found!.count);
}

const itemOf = (path: string | null): string | undefined => /^(?:\/v1)?\/items\/(.+)$/.exec(path ?? '')?.[1];

/** I1 and I2: the platform saw each call at most once, and whatever it saw has a row. */
function checkPlatform(seen: World['upstream']['seen'], rows: readonly AuditRow[]): void {
  const rowsOf = new Map<string, AuditRow[]>();
  for (const row of rows) {
    const item = itemOf(row.path);
    if (item !== undefined) rowsOf.set(item, [...(rowsOf.get(item) ?? []), row]);
  }
  const timesSeen = new Map<string, number>();
  for (const { target } of seen) {
    const item = itemOf(target)!;
    timesSeen.set(item, (timesSeen.get(item) ?? 0) + 1);
  }
  expect(
    [...timesSeen].filter(([, times]) => times > 1),
    'I1: made twice',
  ).toEqual([]);
  const unrecorded = seen.filter(({ target }) => !rowsOf.get(itemOf(target)!)?.some((row) => row.result !== 'denied'));
  expect(
    unrecorded.map(({ method, target }) => `${method} ${target}`),
    'I2: not on record',
  ).toEqual([]);
  for (const [item, found] of rowsOf) {
    const made = found.filter((row) => row.result === 'allowed').length;
    expect(made, item).toBeLessThanOrEqual(timesSeen.get(item) ?? 0);
  }
}

/** No answer without its row, and the row says what the answer says. */
function checkAnswers(sent: readonly Sent[], rows: readonly AuditRow[]): void {
  const byId = new Map(rows.map((row) => [row.id, row]));
  const results: Record<number, string> = { 200: 'allowed', 202: 'held', 403: 'denied' };
  for (const { item, answers } of sent) {
    const made = new Set<string>();
    for (const { status, body } of answers) {
      // The same call again, whose first answer nobody got.
      if (status === 409) expect(body.error).toMatch(/^idempotency_(in_progress|outcome_unknown)$/);
      else {
        const row = byId.get(body._meta?.audit_id ?? body.audit_id);
        expect(row, `${status} ${JSON.stringify(body)}`).toBeDefined();
        if (status === 429) expect(row!.reason).toBe('too_many_pending_approvals');
        else expect(row!.result, JSON.stringify(body)).toBe(results[status]);
        if (status === 200) made.add(row!.id);
      }
    }
    expect(made.size, item).toBeLessThanOrEqual(1);
  }
}
