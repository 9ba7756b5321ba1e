import { get, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { uuidv7 } from '../../broker/crypto/ids.ts';
import { AuditRowWithReceipt } from '../../broker/http/audit-row.ts';
import type { AuditRow } from '../../broker/store/audit.ts';
import type { OwnerTable } from '../../broker/store/tables/organisations.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { auditIdOf, expectEnvelope, verifyReceipt } from '../world/evidence.ts';
import { auditRow } from '../world/rows.ts';
import { thorough } from '../world/runner/thorough.ts';
import { postgresNote, STORES, type StoreKind } from '../world/stores.ts';
import { HOUR_MS } from '../world/times.ts';
import { CANARY, givenWorld, type Organisation, READ, shared, startWorld, type World } from '../world/world.ts';

const LONGER_THAN_SOCKETS = 40_000;

type Shown = { id: string; reason: string; created_at: string; receipt?: string };

/** Inserts rows as the broker writes them, in bulk, in the order of the list. */
async function putRows(world: World, organisation: Organisation, rows: Partial<AuditRow>[]): Promise<AuditRow[]> {
  const begun = world.running.broker.clock() - rows.length;
  const made = rows.map((row, i) =>
    auditRow({
      organisation_id: organisation.id,
      id: uuidv7(begun + i),
      created_at: begun + i,
      state: 'final',
      kind: 'event',
      finished_at: begun + i,
      ...row,
    }),
  );
  for (let i = 0; i < made.length; i += 200)
    await world.db
      .insertInto('audit_rows')
      .values(made.slice(i, i + 200))
      .execute();
  return made;
}

/** Starts an export without reading it. */
async function openExport(world: World, { owner }: Organisation, query = '', by: OwnerTable = owner) {
  const authorization = `Bearer ${mintOwnerSession(world.running.broker, by).token}`;
  return await new Promise<IncomingMessage>((answered, failed) => {
    const url = `${world.running.baseUrl}/owner/audit/export${query}`;
    get(url, { headers: { authorization }, agent: false }, answered).once('error', failed);
  });
}

async function readExport(world: World, organisation: Organisation, query = '', by?: OwnerTable): Promise<Shown[]> {
  const response = await openExport(world, organisation, query, by);
  const body = await text(response);
  expect(response.statusCode, body).toBe(200);
  expect(response.headers['content-type']).toBe('application/x-ndjson');
  expect(body === '' || body.endsWith('\n')).toBe(true);
  return body.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
}

describe.each(STORES)(`the owners’ audit on %s${postgresNote}`, (store) => {
  let world: World;
  let organisation: Organisation;
  let first: TestAgent;
  let second: TestAgent;
  /** In the order of creation. */
  const made: {
    id: string;
    agent: TestAgent | null;
    platform: string | null;
    result: string | null;
    reason: string;
    at: number;
  }[] = [];
  const times: number[] = [];
  beforeAll(async () => {
    // The last attempt of a test runs this again.
    for (const list of [made, times]) list.length = 0;
    world = await startWorld(store);
    organisation = await world.organisation();
    for (const id of ['demo', 'side']) await organisation.platform({ id });
    const terms = { grants: { demo: {}, side: {} } };
    [first, second] = [await organisation.agent(terms), await organisation.agent(terms)];
    const later = () => {
      world.clock.skewMs += HOUR_MS;
      times.push(world.running.broker.clock());
    };
    const call = async (agent: TestAgent, request: object, result: string, reason: string) => {
      world.clock.skewMs += 5;
      const answer = await agent.act({ ...READ, ...request });
      const platform = ({ ...READ, ...request } as typeof READ).platform;
      made.push({ id: auditIdOf(answer), agent, platform, result, reason, at: times.length });
    };
    await call(first, {}, 'allowed', 'approved');
    await call(second, { platform: 'side' }, 'allowed', 'approved');
    later();
    await call(first, { scope: 'demo:none' }, 'denied', 'scope_not_granted');
    await call(first, { endpoint: '//x' }, 'errored', 'invalid_endpoint');
    later();
    await call(second, { method: 'POST', scope: 'demo:write', data: {} }, 'held', 'approval_required_by_policy');
    world.clock.skewMs += 5;
    await organisation.ask('POST', '/owner/platforms/side/suspend');
    const [event] = (await organisation.ask('GET', '/owner/audit?limit=1')).body.rows;
    made.push({ id: event.id, agent: null, platform: 'side', result: null, reason: 'platform_suspended', at: 2 });
  });

  const search = async (query: string) => {
    const answer = await expectStatus(200, organisation.ask('GET', `/owner/audit?${query}`));
    return answer.body.rows.map(({ id }: Shown) => id);
  };
  const iso = (at: number) => encodeURIComponent(new Date(at).toISOString());
  const FILTERS: [string, () => string, (row: (typeof made)[number]) => boolean][] = [
    ['nothing', () => '', () => true],
    ['an agent by its uuid', () => `agent=${first.id.toUpperCase()}`, ({ agent }) => agent === first],
    ['an agent by its agent id', () => `agent=${second.agentId}`, ({ agent }) => agent === second],
    ['an agent that is none', () => `agent=${crypto.randomUUID()}`, () => false],
    ['a platform', () => 'platform=side', ({ platform }) => platform === 'side'],
    ['calls', () => 'kind=action', ({ result }) => result !== null],
    ['events', () => 'kind=event', ({ result }) => result === null],
    ['a result', () => 'result=allowed', ({ result }) => result === 'allowed'],
    ['a reason', () => 'reason=scope_not_granted', ({ reason }) => reason === 'scope_not_granted'],
    ['a moment to begin', () => `since=${iso(times[0]!)}`, ({ at }) => at > 0],
    ['a moment to end', () => `until=${iso(times[1]!)}`, ({ at }) => at < 2],
    [
      'moments with an offset',
      () => `since=${encodeURIComponent(new Date(times[0]! + 2 * HOUR_MS).toISOString().replace('Z', '+02:00'))}`,
      ({ at }) => at > 0,
    ],
    [
      'an audit id and what its row is',
      () => `text=${made[0]!.id}&kind=action&agent=${first.id}`,
      ({ id }) => id === made[0]!.id,
    ],
    ['an audit id and what its row is not', () => `text=${made[0]!.id}&kind=event`, () => false],
    ['an audit id from before the time', () => `text=${made[0]!.id}&since=${iso(times[0]!)}`, () => false],
    [
      'all of it',
      () =>
        `agent=${first.id}&result=denied&platform=demo&since=${iso(times[0]!)}&until=${iso(times[1]!)}&reason=scope_not_granted&kind=action`,
      ({ reason }) => reason === 'scope_not_granted',
    ],
  ];
  test.each(FILTERS)('filters the list and the export by %s', async (_what, query, passes) => {
    const expected = made.filter(passes).map(({ id }) => id);
    expect(await search(query())).toEqual(expected.toReversed());
    const lines = await readExport(world, organisation, `?${query()}`);
    expect(lines.map(({ id }) => id)).toEqual(expected);
  });

  test('times are exact to the millisecond', async () => {
    const [row] = (await organisation.ask('GET', '/owner/audit?limit=1')).body.rows;
    const at = Date.parse(row.created_at);
    expect(await search(`since=${iso(at)}`)).toEqual([row.id]);
    expect(await search(`since=${iso(at + 1)}`)).toEqual([]);
    expect(await search(`until=${iso(at)}`)).not.toContain(row.id);
    expect(await search(`until=${iso(at + 1)}`)).toContain(row.id);
  });

  test.each([
    'agent=x',
    'agent=agt_x',
    'agent=%00',
    'platform=%00',
    'kind=call',
    'result=ok',
    'reason=%27',
    'since=yesterday',
    'since=2026-13-01T00:00:00Z',
    'until=1',
    'limit=201',
    'result=held&result=denied',
  ])('?%s is refused, in the list and in the export', async (query) => {
    for (const path of ['/owner/audit', '/owner/audit/export']) {
      if (path.endsWith('export') && query.startsWith('limit')) continue;
      const answer = await organisation.ask('GET', `${path}?${query}`);
      expectEnvelope(answer, 400, 'invalid_request');
      expect(answer.body.detail).toContain(query.split('=')[0]);
    }
    expectEnvelope(await organisation.ask('GET', '/owner/audit/export?after=x'), 400, 'invalid_request');
  });

  test('a rare row is found by bounded steps of the search', async () => {
    const fresh = await world.organisation();
    const rows = await putRows(
      world,
      fresh,
      Array.from({ length: 23_000 }, (_, i) => ({ reason: [1, 12_000, 22_999].includes(i) ? 'rare' : 'common' })),
    );
    const wanted = [22_999, 12_000, 1].map((i) => rows[i]!.id);
    const found: string[] = [];
    let [next, pages] = [undefined as string | null | undefined, 0];
    while (next !== null) {
      const { body } = await fresh.ask('GET', `/owner/audit?text=rare${next ? `&before=${next}` : ''}`);
      found.push(...body.rows.map(({ id }: Shown) => id));
      next = body.next;
      pages++;
    }
    // A text is searched in at most 20,000 rows per page, and in fewer on a slow machine.
    expect(found).toEqual(wanted);
    expect(pages).toBeGreaterThan(1);
    expect((await fresh.ask('GET', '/owner/audit?limit=3')).body.rows.map(({ id }: Shown) => id)).toEqual(
      rows
        .slice(-3)
        .toReversed()
        .map(({ id }) => id),
    );
    const lines = await readExport(world, fresh, '?reason=rare');
    expect(lines.map(({ id }) => id)).toEqual(wanted.toReversed());
    // All rows in a thorough run; otherwise enough for several steps.
    const last = thorough ? undefined : 19_999;
    const rest = await readExport(world, fresh, last === undefined ? '' : `?after=${rows[last]!.id.toUpperCase()}`);
    expect(rest.map(({ id }) => id)).toEqual(rows.slice((last ?? -1) + 1).map(({ id }) => id));
  }, 180_000);

  test('an exported row equals the listed one, and has the receipt with its hash', async () => {
    const { body } = await organisation.ask('GET', '/owner/audit');
    const rows = body.rows.map(
      ({
        sentence: _,
        rules: __,
        platform_name: ___,
        standing: ____,
        agent_names: _____,
        ...row
      }: Record<string, unknown>) => row,
    );
    const lines = await readExport(world, organisation);
    for (const line of lines) {
      expect(AuditRowWithReceipt.parse(line)).toEqual(line);
      const { receipt, ...listed } = line;
      expect(rows).toContainEqual(listed);
      const { payload } = await verifyReceipt(world, receipt!);
      expect(payload).toMatchObject({ jti: line.id, row_hash: (line as unknown as AuditRow).row_hash });
    }
    expect(JSON.stringify(lines)).not.toContain(CANARY);
  });

  test('rows that are not final are listed, and exported once they are', async () => {
    const fresh = await world.organisation();
    const [intent] = await putRows(world, fresh, [{ state: 'intent', finished_at: null }]);
    expect((await fresh.ask('GET', '/owner/audit')).body.rows).toMatchObject([{ id: intent!.id, state: 'intent' }]);
    expect(await readExport(world, fresh)).toEqual([]);
    await world.db.updateTable('audit_rows').set({ state: 'final' }).where('id', '=', intent!.id).execute();
    expect(await readExport(world, fresh)).toMatchObject([{ id: intent!.id, state: 'final' }]);
  });

  test('a viewer may read and export; nothing of another organisation is returned', async () => {
    const viewer = await organisation.addOwner('viewer');
    expect((await readExport(world, organisation, '', viewer)).length).toBeGreaterThan(made.length - 1);
    const other = await world.organisation();
    expect(await readExport(world, other)).toEqual([]);
    expect((await other.ask('GET', `/owner/audit?agent=${first.id}`)).body).toEqual({ rows: [], next: null });
    expect((await other.ask('GET', `/owner/audit?before=${made.at(-1)!.id}`)).body).toEqual({ rows: [], next: null });
    const head = await fetch(`${world.running.baseUrl}/owner/audit/export`, {
      method: 'HEAD',
      headers: { authorization: `Bearer ${mintOwnerSession(world.running.broker, organisation.owner).token}` },
    });
    expect(head.status).toBe(200);
  });
});

// The behaviour of sockets does not depend on the store.
describe('the export applies back-pressure', () => {
  const world = givenWorld('sqlite' satisfies StoreKind);
  const organisation = shared(() => world.organisation());
  let rows: AuditRow[];
  beforeAll(async () => {
    rows = await putRows(
      world,
      organisation,
      Array.from({ length: 1_000 }, () => ({ detail: 'x'.repeat(LONGER_THAN_SOCKETS) })),
    );
  });

  /** An export of 40 MB that the client does not read, as far as it is sent. */
  async function stalled(by?: OwnerTable) {
    const response = await openExport(world, organisation, '', by);
    await pause(1_500);
    return response;
  }

  test('when the client disconnects, its export ends and its slot is free again', async () => {
    const open = async () => {
      const response = await openExport(world, organisation);
      response.destroy();
      return response.statusCode;
    };
    const held = await Promise.all([1, 2, 3, 4].map(() => openExport(world, organisation)));
    expect(held.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200, 200]);
    const fifth = await openExport(world, organisation);
    expect([fifth.statusCode, fifth.headers['retry-after']]).toEqual([429, '30']);
    expect(JSON.parse(await text(fifth)).error).toBe('too_many_streams');
    for (const response of held) response.destroy();
    await expect.poll(open, { timeout: 15_000 }).toBe(200);
  });

  test('a client that loses its rights gets no more, and a recognisably incomplete answer', async () => {
    const leaving = await organisation.addOwner('viewer');
    const response = await stalled(leaving);
    expect(response.statusCode).toBe(200);
    await world.db.deleteFrom('owners').where('id', '=', leaving.id).execute();
    await expect(text(response)).rejects.toThrow('aborted');
  });

  test('only little is read from the store for a client that does not read', async () => {
    const response = await stalled();
    await world.db.deleteFrom('audit_rows').where('organisation_id', '=', organisation.id).execute();
    const lines = (await text(response)).trim().split('\n');
    expect(lines.length).toBeGreaterThan(0);
    expect(lines.length).toBeLessThan(rows.length / 2);
    expect(JSON.parse(lines.at(-1)!).id).toBe(rows[lines.length - 1]!.id);
  });
});
