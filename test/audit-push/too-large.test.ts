/** Receivers that limit the size of requests get smaller batches; a single row that is too large is a failure. */
import { describe, expect, test } from 'vitest';
import { MAX_ROWS, nextBatch } from '../../broker/audit-push/batch.ts';
import { makeRowLimits } from '../../broker/audit-push/row-limits.ts';
import { findSink } from '../../broker/store/audit-sinks.ts';
import { recordReads } from '../receipt-log/read-log.ts';
import { expectStatus } from '../world/agent.ts';
import { startUpstream } from '../world/servers/upstream.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { fresh, givenWorld, READ, shared } from '../world/world.ts';

const CALLS = 60;

const receiver = shared(() => startUpstream());

/** Returns the indexes of the rows in a request. */
function indexesIn(body: string): number[] {
  const { resourceLogs } = JSON.parse(body.startsWith('[') ? '{}' : body);
  if (resourceLogs === undefined)
    return JSON.parse(body).map((event: { metadata: { sequence: number } }) => event.metadata.sequence);
  return resourceLogs[0].scopeLogs[0].logRecords.map(
    ({ attributes }: { attributes: { key: string; value: { intValue: string } }[] }) =>
      Number(attributes.find(({ key }) => key === 'agent_broker.log_index')?.value.intValue),
  );
}

describe.each(ONE_STORE)(`a receiver that limits the size of requests on %s${postgresNote}`, (store) => {
  const world = givenWorld(store, () => ({ AGENT_BROKER_ALLOW_PRIVATE: receiver.address }));
  const organisation = fresh(() => world.demoOrganisation({ manifest: { base_url: `${receiver.url}/v1` } }));
  const agent = fresh(() => organisation.agent());
  let mostBytes = 0;
  /** For each request: its rows, and whether it was accepted. */
  let came: { indexes: number[]; isTaken: boolean }[] = [];

  const sink = async () => (await organisation.ask('GET', '/owner/audit-sinks')).body.sinks[0];

  const logged = () => expect.poll(async () => (await organisation.ask('GET', '/owner/log')).body.waiting).toBe(0);

  /** Records this many calls, then a sink that starts with the first row; the last row is the creation of the sink. */
  const push = async (kind: string, { calls = CALLS, reason }: { calls?: number; reason?: string } = {}) => {
    came = [];
    receiver.answer = (request, response, body) => {
      if (request.url?.startsWith('/v1/items')) {
        response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
        return;
      }
      const isTaken = Buffer.byteLength(body) <= mostBytes;
      came.push({ indexes: indexesIn(body), isTaken });
      response.writeHead(isTaken ? 200 : 413).end('{}');
    };
    await recordReads(world, organisation, agent, calls, { ...READ, ...(reason !== undefined && { reason }) });
    await logged();
    const made = { name: 'siem', kind, url: `${receiver.url}/in`, from: 'beginning' };
    const { body } = await expectStatus(201, organisation.ask('POST', '/owner/audit-sinks', made));
    await logged();
    return body;
  };

  test.each([
    ['otlp', 30_000],
    ['webhook', 15_000],
  ])('%s: all rows arrive, once and in order, in batches that are halved immediately', async (kind, bytes) => {
    mostBytes = bytes;
    await push(kind);
    const began = performance.now();
    await expect.poll(async () => (await sink()).rows_behind, { timeout: 15_000 }).toBe(0);
    // After a failure the pusher would wait, longer each time.
    expect(performance.now() - began).toBeLessThan(10_000);
    const rows = came.flatMap(({ indexes, isTaken }) => (isTaken ? indexes : []));
    expect(rows.length).toBeGreaterThan(CALLS);
    expect(rows).toEqual(rows.map((_, at) => at));
    expect(came[0]).toMatchObject({ isTaken: false });
    // The limit is remembered: most batches are not refused first.
    const refused = came.filter(({ isTaken }) => !isTaken).length;
    expect(refused).toBeLessThan(came.length / 2);
    expect(await sink()).toMatchObject({ failures: 0, failing_since: null, last_error: null });
  });

  test('a single row that is too large is a failure that says so, and pushing continues when the limit is raised', async () => {
    mostBytes = 1_000;
    await push('webhook', { calls: 20 });
    await expect
      .poll(async () => (await sink()).last_error, { timeout: 15_000 })
      .toMatch(/^The receiver answered 413: a request of \d+ bytes is too large for it\. Raise its limit/);
    expect(new Set(came.map(({ indexes }) => indexes[0]))).toEqual(new Set([0]));
    expect(came.at(-1)!.indexes).toEqual([0]);
    mostBytes = 10_000_000;
    await expect.poll(async () => (await sink()).rows_behind, { timeout: 15_000 }).toBe(0);
    const rows = came.flatMap(({ indexes, isTaken }) => (isTaken ? indexes : []));
    expect(rows).toEqual(rows.map((_, at) => at));
  });

  test('the limit of 1 MiB per batch counts bytes, not characters', async () => {
    mostBytes = 10_000_000;
    // Three bytes per character, in the row and in its receipt.
    const { id } = await push('webhook', { calls: 400, reason: '漢'.repeat(500) });
    await expect.poll(async () => (await sink()).rows_behind, { timeout: 15_000 }).toBe(0);
    const { broker } = world.running;
    const stored = (await findSink(broker.store.db, { organisation_id: organisation.id, id }))!;
    let [rows, bytes, batches] = [0, 0, 0];
    for (let next_index = 0; next_index < stored.log_size; batches++) {
      const { end, lines } = await nextBatch(broker, { ...stored, next_index, batch_end: null }, MAX_ROWS);
      const own = lines.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
      expect(own).toBeLessThanOrEqual(1024 * 1024);
      [rows, bytes, next_index] = [rows + lines.length, bytes + own, end];
    }
    expect(rows).toBe(stored.log_size);
    expect([bytes, batches]).toEqual([expect.any(Number), Math.ceil(bytes / 1024 / 1024)]);
    expect(batches).toBeGreaterThan(1);
  });
});

test('a refused batch halves a sink’s limit, which grows again in small steps up to the common maximum', () => {
  const limits = makeRowLimits();
  expect(limits.of('a')).toBe(MAX_ROWS);
  limits.refused('a', 500);
  expect([limits.of('a'), limits.of('b')]).toEqual([250, MAX_ROWS]);
  // A batch below the limit does not raise it.
  limits.taken('a', 249);
  expect(limits.of('a')).toBe(250);
  limits.taken('a', 250);
  expect(limits.of('a')).toBe(266);
  for (let i = 0; i < 100; i++) limits.taken('a', limits.of('a'));
  expect(limits.of('a')).toBe(MAX_ROWS);
  limits.refused('a', 1);
  expect(limits.of('a')).toBe(1);
});
