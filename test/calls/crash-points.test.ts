/** Kills the broker with SIGKILL at each step of a governed call, and checks what the next process recovers. */
import { createPublicKey } from 'node:crypto';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { RECEIPT_TYPE, receiptOf, rowHash } from '../../broker/audit/receipt.ts';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { verifyCompact } from '../../broker/crypto/jws.ts';
import { withTimeout } from '../../broker/runtime/waits.ts';
import type { AuditRow } from '../../broker/store/audit.ts';
import { openReader, type Reader } from '../prove/store-reader.ts';
import { type Answer, jsonPost, send, type TestAgent } from '../world/agent.ts';
import { type BrokerProcess, spawnBroker } from '../world/broker-process.ts';
import { listAuditRows } from '../world/rows.ts';
import { ONE_STORE, postgresNote, STORES } from '../world/stores.ts';
import { givenWorld, type Organisation, shared, startWorld, type World } from '../world/world.ts';

const RULES = [
  { effect: 'allow', methods: ['GET', 'PATCH'] },
  { effect: 'require_approval', methods: ['DELETE'] },
];
const CHANGE = { platform: 'demo', method: 'PATCH', scope: 'demo:write', data: { a: 1 } };
const HELD = { platform: 'demo', method: 'DELETE', scope: 'demo:delete' };
/** The first process is killed while it has a call at each of these points, where no transaction is open. */
const TOGETHER = ['C1', 'C3', 'C4', 'C5', 'C7', 'R6', 'R9'] as const;
/** In this order each further process kills itself at the point that the path names; its successor at the next. */
const ALONE = ['C2', 'C6', 'C8', 'C8-late', 'R1'] as const;

describe.each(STORES)(`a broker that is killed on %s${postgresNote}`, (store) => {
  let world: World;
  let organisation: Organisation;
  let agent: TestAgent;
  let last: BrokerProcess;
  let session: string;
  let reader: Reader;
  const held = new Map<string, string>();
  /** What the client received. */
  const saw = new Map<string, unknown>();

  const decide = (id: string, verb: 'approve' | 'deny') =>
    send(`${agent.baseUrl}/owner/approvals/${id}/${verb}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${session}`, 'content-type': 'application/json' },
      body: '{}',
    });
  const ask = (point: string): Promise<Answer> => {
    if (point.startsWith('C8')) return agent.act({ ...HELD, endpoint: `/items/${point}` });
    if (point.startsWith('R')) return decide(held.get(point)!, point === 'R9' ? 'deny' : 'approve');
    return agent.act({ ...CHANGE, endpoint: `/items/${point}` });
  };

  beforeAll(async () => {
    world = await startWorld(store);
    organisation = await world.organisation();
    await organisation.platform();
    agent = await organisation.agent({ rules: RULES });
    for (const point of ['R1', 'R6', 'R9']) held.set(point, await agent.hold({ ...HELD, endpoint: `/items/${point}` }));
    session = mintOwnerSession(world.running.broker, organisation.owner).token;
    await world.running.stop();
    reader = await openReader(world.environment);
    const environment = {
      ...world.environment,
      PORT: new URL(agent.baseUrl).port,
      TEST_BEAT_MS: '250',
      TEST_FAILPOINTS: '1',
    };
    const { TEST_FAILPOINTS: _, ...whole } = environment;
    let next = spawnBroker(environment);
    for (const points of [TOGETHER, ...ALONE.map((point) => [point])]) {
      const doomed = next;
      next = spawnBroker(points[0] === ALONE.at(-1) ? whole : environment);
      expect(await doomed.serve(), doomed.output().stderr).toBe(agent.baseUrl);
      world.upstream.answer = (request, response) => {
        if (!request.url!.endsWith('/C4')) response.setHeader('content-type', 'application/json').end('{"ok":true}');
      };
      const answers = points.map(async (point) => {
        const answer = await ask(point).then(
          ({ text }) => text,
          () => 'a reset',
        );
        saw.set(point, answer);
      });
      if (points === TOGETHER) {
        const isHeld = (point: string) =>
          point === 'C4' ? sent(point) === 1 : doomed.output().stdout.includes(`held at ${point}\n`);
        await vi.waitFor(() => expect(TOGETHER.filter((point) => !isHeld(point))).toEqual([]), { timeout: 10_000 });
        doomed.signal('SIGKILL');
      }
      await Promise.all(answers);
      const ended = await withTimeout(doomed.ended, 5_000);
      expect([points, ended]).toEqual([points, { code: null, signal: 'SIGKILL' }]);
    }
    last = next;
    expect(await last.serve(), last.output().stderr).toBe(agent.baseUrl);
    return () => last.signal('SIGKILL');
  }, 180_000);

  const sent = (point: string) => world.upstream.seen.filter(({ target }) => target.endsWith(`/${point}`)).length;
  const approvals = (point: string) =>
    reader.rows(`select audit_id, status from approvals where path = '/items/${point}'`);

  /** The rows of a crash point once each is final, with receipts that verify. */
  async function rowsOf(point: string): Promise<AuditRow[]> {
    const rows = (): Promise<AuditRow[]> =>
      reader.rows(`select * from audit_rows where path = '/items/${point}' order by id`);
    await expect.poll(async () => (await rows()).every(({ state }) => state === 'final')).toBe(true);
    const { keys } = (await send(`${agent.baseUrl}/.well-known/svc-receipt-keys.json`, {})).body;
    const published = new Map<string, ReturnType<typeof createPublicKey>>(
      keys.map((jwk: { kid: string }) => [jwk.kid, createPublicKey({ key: jwk, format: 'jwk' })]),
    );
    const found = await rows();
    for (const row of found) {
      expect(row.row_hash).toBe(rowHash(row));
      expect(verifyCompact(receiptOf(row)!, published, { typ: RECEIPT_TYPE })).toMatchObject({
        ok: true,
        payload: { jti: row.id, row_hash: row.row_hash },
      });
    }
    return found;
  }
  const MADE = { kind: 'action', result: 'allowed', upstream_status: 200 };
  const UNKNOWN = { kind: 'action', result: 'errored', reason: 'outcome_unknown', upstream_status: null };

  test('C1 killed before the intent is stored: nothing is recorded, and nothing was sent', async () => {
    expect([saw.get('C1'), await rowsOf('C1'), sent('C1')]).toEqual(['a reset', [], 0]);
  });

  test('C2 killed while the intent is stored: nothing is recorded, or a row that was closed', async () => {
    expect(saw.get('C2')).toBeOneOf(['a reset', expect.stringContaining('"ok":true')]);
    const rows = await rowsOf('C2');
    expect(rows.length).toBeLessThanOrEqual(1);
    expect(sent('C2')).toBeLessThanOrEqual(rows.length);
    if (rows[0]?.result !== 'allowed') for (const row of rows) expect(row).toMatchObject(UNKNOWN);
  });

  test.each([
    ['C3 after the intent, before it was sent', 0],
    ['C4 while the platform works', 1],
    ['C5 after the platform answered, before that is stored', 1],
  ])('%s: closed as unknown, signed, and never sent again', async (title, times) => {
    const point = title.slice(0, 2);
    expect(saw.get(point)).toBe('a reset');
    expect(await rowsOf(point)).toMatchObject([{ ...UNKNOWN, path: `/items/${point}`, platform_id: 'demo' }]);
    expect(sent(point)).toBe(times);
  });

  test('C6 killed while the outcome is stored: it is recorded, or closed as unknown', async () => {
    const rows = await rowsOf('C6');
    expect(rows).toHaveLength(1);
    expect(rows[0]).toMatchObject(rows[0]!.result === 'allowed' ? MADE : UNKNOWN);
    if (saw.get('C6') !== 'a reset') expect(rows[0]).toMatchObject(MADE);
    expect(sent('C6')).toBe(1);
  });

  test('C7 killed after the outcome is stored, before it is answered: the outcome is recorded', async () => {
    expect(saw.get('C7')).toBe('a reset');
    expect(await rowsOf('C7')).toMatchObject([MADE]);
    expect(sent('C7')).toBe(1);
  });

  test('C8 killed in the transaction of a held call: both the row and the approval exist, or neither', async () => {
    expect([saw.get('C8'), await rowsOf('C8'), await approvals('C8')]).toEqual(['a reset', [], []]);
    const [rows, waiting] = [await rowsOf('C8-late'), await approvals('C8-late')];
    expect(waiting).toEqual(rows.map(({ id }) => ({ audit_id: id, status: 'pending' })));
    if (saw.get('C8-late') !== 'a reset') expect(waiting).toHaveLength(1);
    expect(sent('C8') + sent('C8-late')).toBe(0);
  });

  test('R6 killed after the answer of an approved call is stored: the agent can read it, and the call is not sent again', async () => {
    // The approver waits for the call, unless its claim was taken over because heartbeats of 250 ms were late.
    expect(saw.get('R6')).toBeOneOf(['a reset', expect.stringMatching(/"executed_at":null/)]);
    const { body } = await agent.get(`/v1/approvals/${held.get('R6')}?wait=20`);
    expect(body).toMatchObject({ status: 'approved', executed_at: expect.any(String), result: { status: 200 } });
    const replays = (await rowsOf('R6')).filter(({ id }) => id === body.audit_id);
    expect(replays).toMatchObject([MADE]);
    expect(await decide(held.get('R6')!, 'approve')).toMatchObject({ status: 409, body: { error: 'already_decided' } });
    expect(sent('R6')).toBe(1);
  });

  test('R9 killed after a denial is stored: the approval stays denied, and the denial is recorded', async () => {
    expect(saw.get('R9')).toBe('a reset');
    expect((await agent.get(`/v1/approvals/${held.get('R9')}`)).body).toMatchObject({ status: 'denied' });
    const word = (await rowsOf('R9')).filter(({ kind }) => kind === 'event');
    expect(word).toMatchObject([{ reason: 'approval_denied' }]);
    expect(await decide(held.get('R9')!, 'approve')).toMatchObject({ status: 409, body: { error: 'already_decided' } });
    expect(sent('R9')).toBe(0);
  });

  test('R1 killed in the transaction of a decision: the approval is still pending, and can be decided once', async () => {
    expect([saw.get('R1'), sent('R1')]).toEqual(['a reset', 0]);
    const pending = await agent.get(`/v1/approvals/${held.get('R1')}`);
    expect(pending.body.status).toBe('pending');
    expect((await rowsOf('R1')).map(({ result }) => result)).toEqual(['held']);
    world.upstream.answer = undefined;
    expect((await decide(held.get('R1')!, 'approve')).body.status).toBe('approved');
    expect(await decide(held.get('R1')!, 'approve')).toMatchObject({ status: 409, body: { error: 'already_decided' } });
    expect(sent('R1')).toBe(1);
  });
});

describe.each(ONE_STORE)(`a client that disconnects on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent());

  test('C13 while the platform works: the call is completed, and its outcome recorded', async () => {
    const gone = new AbortController();
    const asked = Promise.withResolvers<() => boolean>();
    world.upstream.answer = (request, response) => {
      asked.resolve(() => {
        const isThere = !request.socket.destroyed;
        response.setHeader('content-type', 'application/json').end('{"ok":true}');
        return isThere;
      });
    };
    const call = fetch(`${agent.baseUrl}/v1/actions`, {
      ...jsonPost({ ...CHANGE, endpoint: '/items/gone' }, { authorization: `Bearer ${agent.token()}` }),
      signal: gone.signal,
    });
    const finish = await asked.promise;
    gone.abort();
    await expect(call).rejects.toThrow('aborted');
    // By then the broker has noticed: another call of the same client follows.
    expect((await agent.get('/v1/agents/me')).status).toBe(200);
    expect(finish()).toBe(true);
    const rows = async () =>
      (await listAuditRows(world.db, organisation.id, { limit: 20 })).filter(({ path }) => path === '/items/gone');
    await expect.poll(rows).toMatchObject([{ state: 'final', result: 'allowed', upstream_status: 200 }]);
    expect(world.upstream.seen).toHaveLength(1);
  });
});
