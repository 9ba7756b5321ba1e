/** Two brokers on one PostgreSQL: which of them may close whose calls. */
import { existsSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { sql } from 'kysely';
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { noteReads, readsFolder } from '../../broker/audit/in-flight-journal.ts';
import { canonicalJson, sha256Hex } from '../../broker/crypto/canonical.ts';
import { uuidv4, uuidv7 } from '../../broker/crypto/ids.ts';
import { readConfig } from '../../broker/environment/config.ts';
import { type Running, serve } from '../../broker/process/main.ts';
import { type AuditRow, findAuditRow } from '../../broker/store/audit.ts';
import { claimIdempotencyKey } from '../../broker/store/idempotency.ts';
import { listInstances } from '../../broker/store/instances.ts';
import { TestAgent } from '../world/agent.ts';
import { spawnBroker } from '../world/broker-process.ts';
import { evidenceOf, expectEnvelope } from '../world/evidence.ts';
import { listAuditRows } from '../world/rows.ts';
import { thorough } from '../world/runner/thorough.ts';
import { hideTables } from '../world/servers/fault-proxy.ts';
import { newFolder, ONE_STORE, postgresNote, STORES } from '../world/stores.ts';
import { givenWorld, READ, shared, startWorld } from '../world/world.ts';

/** A sixteenth of the production value, so that what takes 20 to 25 s there takes two here. */
const HEARTBEAT_MS = 300;
const DEAD_AFTER_MS = 4 * HEARTBEAT_MS;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const patch = (item: string) => ({
  platform: 'demo',
  endpoint: `/items/${item}`,
  method: 'PATCH',
  scope: 'demo:write',
  data: { a: 1 },
});

/** Stops the sweeps of a process, and with them its heartbeats; the returned function resumes them. Everything else goes on. */
function stopHeartbeats({ broker }: Running): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  const check = vi.spyOn(broker.storeClock, 'check').mockReturnValue(promise);
  const goOn = () => {
    check.mockRestore();
    resolve();
  };
  onTestFinished(goOn);
  return goOn;
}

describe.runIf(STORES.includes('postgres'))(`calls of another process on postgres${postgresNote}`, () => {
  const world = givenWorld('postgres');
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent());
  beforeAll(async () => {
    // This broker's heartbeats are 5 s apart, so the others would consider it dead.
    await world.running.stop();
  });

  const replicaEnvironment = () => ({
    ...world.environment,
    PORT: '0',
    AGENT_BROKER_DATA: newFolder(),
    AGENT_BROKER_KEY_FILE: join(world.environment.AGENT_BROKER_DATA!, 'keys', 'master.key'),
  });

  async function startReplica(clock = Date.now): Promise<Running> {
    const running = await serve(readConfig(replicaEnvironment()), { beatMs: HEARTBEAT_MS, clock });
    onTestFinished(() => running.stop());
    return running;
  }

  async function spawnReplica() {
    const child = spawnBroker({ ...replicaEnvironment(), TEST_BEAT_MS: String(HEARTBEAT_MS) });
    onTestFinished(() => child.signal('SIGKILL'));
    const baseUrl = await child.serve();
    expect(baseUrl, child.output().stderr).toBeDefined();
    return { child, through: at(baseUrl!) };
  }

  const at = (baseUrl: string) => new TestAgent({ ...agent, baseUrl });

  /** Sends a call that the platform has not answered yet. */
  async function callInFlight(through: TestAgent, item: string) {
    const asked = new Promise<ServerResponse>((resolve) => {
      world.upstream.answer = (_request, response) => resolve(response);
    });
    const answer = through.act(patch(item));
    return { answer, response: await asked };
  }

  async function rowOf({ broker }: Running, item: string): Promise<AuditRow> {
    const rows = await listAuditRows(broker.store.db, organisation.id, { limit: 50 });
    return rows.find((row) => row.path === `/items/${item}`)!;
  }

  /** Returns the last heartbeat of the process `id` in the store; undefined when it is not registered. */
  const seenAt = async ({ broker }: Running, id: string): Promise<number | undefined> =>
    (await listInstances(broker.store.db)).find((one) => one.id === id)?.seen_at;

  /** Waits for the call's final row. `beats`: collects the heartbeats of the waiting process meanwhile. */
  async function untilFinal(running: Running, item: string, beats = new Set<number | undefined>()): Promise<AuditRow> {
    const end = performance.now() + 15_000;
    for (;;) {
      beats.add(await seenAt(running, running.broker.instanceId));
      const row = await rowOf(running, item);
      if (row.state === 'final') return row;
      expect(performance.now(), `waited in vain for the row of ${item}`).toBeLessThan(end);
      // Far shorter than the interval of heartbeats.
      await pause(HEARTBEAT_MS / 6);
    }
  }

  test('the call of a slow but live process is not closed by another', async () => {
    const [slow, other] = [await startReplica(), await startReplica()];
    const { answer, response } = await callInFlight(at(slow.baseUrl), 'slow');
    await pause(3 * DEAD_AFTER_MS);
    expect(await rowOf(other, 'slow')).toMatchObject({ state: 'intent' });
    response.end('{}');
    expect((await answer).status).toBe(200);
    expect(await rowOf(other, 'slow')).toMatchObject({ state: 'final', result: 'allowed' });
  });

  test('MR-02 the calls of a killed process are closed by another after enough missed heartbeats', async () => {
    const { child, through } = await spawnReplica();
    const other = await startReplica();
    const { answer } = await callInFlight(through, 'killed');
    child.signal('SIGKILL');
    await expect(answer).rejects.toThrow();
    const beats = new Set<number | undefined>();
    const row = await untilFinal(other, 'killed', beats);
    // Counted in heartbeats, which are late on a busy machine: six (30 s in production) plus the one before.
    expect(beats.size).toBeLessThanOrEqual(7);
    expect(row).toMatchObject({ result: 'errored', reason: 'outcome_unknown' });
    await evidenceOf({ running: other }, at(other.baseUrl), row.id);
    expect(world.upstream.seen).toHaveLength(1);
  });

  test('R7 a process that was suspended for too long does not return the answer, and the signed row stays unchanged', async () => {
    const { child, through } = await spawnReplica();
    const other = await startReplica();
    const { answer, response } = await callInFlight(through, 'stopped');
    const { instance_id } = (await rowOf(other, 'stopped'))!;
    child.signal('SIGSTOP');
    const closed = await untilFinal(other, 'stopped');
    response.end('{"withheld":true}');
    child.signal('SIGCONT');
    const late = await answer;
    expect([late.status, late.body.error]).toEqual([503, 'audit_unavailable']);
    expect(late.body.detail).toContain('may have been made');
    expect(late.text).not.toContain('withheld"');
    expect(await findAuditRow(other.broker.store.db, organisation.id, closed.id)).toEqual(closed);
    // After it resumes, its heartbeat registers it again, and its next call succeeds.
    await vi.waitUntil(async () => (await seenAt(other, instance_id)) !== undefined, { timeout: 10_000 });
    world.upstream.answer = undefined;
    expect((await through.act(patch('next'))).status).toBe(200);
    child.signal('SIGTERM');
    expect(await child.ended).toEqual({ code: 0, signal: null });
  });

  test('R7 an unregistered process registers before its next call is sent, so that no other process closes the call', async () => {
    const back = await startReplica();
    const other = await startReplica();
    const goOn = stopHeartbeats(back);
    await vi.waitUntil(async () => (await seenAt(other, back.broker.instanceId)) === undefined, { timeout: 10_000 });
    const { answer, response } = await callInFlight(at(back.baseUrl), 'back');
    // The other process makes a complete sweep between its second and third heartbeat from here.
    const beats = new Set<number | undefined>();
    const otherBeats = async () => beats.add(await seenAt(other, other.broker.instanceId)).size;
    await vi.waitUntil(async () => (await otherBeats()) === 3, { timeout: 10_000, interval: 20 });
    goOn();
    response.end('{}');
    expect((await answer).status).toBe(200);
    expect(await rowOf(other, 'back')).toMatchObject({ state: 'final', result: 'allowed' });
  });

  test('clocks that differ do not make a live process look dead', async () => {
    const ahead = await startReplica(() => Date.now() + 3600_000);
    const slow = await startReplica();
    const { answer, response } = await callInFlight(at(slow.baseUrl), 'skewed');
    await pause(2 * DEAD_AFTER_MS);
    expect(await rowOf(ahead, 'skewed')).toMatchObject({ state: 'intent' });
    response.end('{}');
    expect((await answer).status).toBe(200);
  });
});

/** In CI the store that several processes share. */
const WHERE = thorough ? STORES : ONE_STORE;

describe.each(WHERE)(`a process that was unregistered on %s${postgresNote}`, (store) => {
  /** Starts a broker with a heartbeat every 50 ms. */
  async function startFast() {
    const world = await startWorld(store);
    const organisation = await world.organisation();
    await organisation.platform();
    const agent = await organisation.agent();
    await world.running.stop();
    const running = await serve(readConfig({ ...world.environment, PORT: '0' }), { beatMs: 50 });
    onTestFinished(() => running.stop());
    return { world, organisation, agent: new TestAgent({ ...agent, baseUrl: running.baseUrl }), running };
  }

  test('sends nothing while it cannot register again', async () => {
    const { world, agent, running } = await startFast();
    stopHeartbeats(running);
    const putBack = await hideTables(running.broker.store.db, ['instances']);
    await vi.waitUntil(() => running.services.heartbeat.ageMs() > 200, { timeout: 10_000 });
    expectEnvelope(await agent.act(patch('unsure')), 503, 'audit_unavailable');
    expect(world.upstream.seen).toHaveLength(0);
    await putBack();
    // A heartbeat that began while the table was hidden may cause one more refusal.
    await expect.poll(async () => (await agent.act(patch('sure'))).status).toBe(200);
    expect(world.upstream.seen).toHaveLength(1);
    expect(await listInstances(running.broker.store.db)).toHaveLength(1);
  });

  test('does not close its own calls when it is unregistered between its heartbeat and its sweep', async () => {
    const { world, organisation, agent, running } = await startFast();
    const { db } = running.broker.store;
    // A trigger removes the process right after each heartbeat, as another process would that had missed its heartbeats.
    await sql`create table beats (at integer)`.execute(db);
    const forget = 'insert into beats values (1); delete from instances where id = new.id;';
    if (store === 'sqlite')
      for (const on of ['insert', 'update'])
        await sql.raw(`create trigger forgets_${on} after ${on} on instances begin ${forget} end`).execute(db);
    else {
      await sql
        .raw(`create function forget() returns trigger language plpgsql as $$ begin ${forget} return null; end $$`)
        .execute(db);
      await sql
        .raw('create trigger forgets after insert or update on instances for each row execute function forget()')
        .execute(db);
    }
    const rounds = async () =>
      (await sql<{ count: number }>`select count(*) as count from beats`.execute(db)).rows[0]!.count;
    const asked = new Promise<ServerResponse>((resolve) => {
      world.upstream.answer = (_request, response) => resolve(response);
    });
    const answer = agent.act(patch('own'));
    const response = await asked;
    const before = Number(await rounds());
    // By the third heartbeat from here two complete sweeps have run.
    await vi.waitUntil(async () => Number(await rounds()) >= before + 3, { timeout: 10_000 });
    response.setHeader('content-type', 'application/json').end('{"id":7}');
    const made = await answer;
    expect([made.status, made.body.data], made.text).toEqual([200, { id: 7 }]);
    expect(await findAuditRow(db, organisation.id, made.body._meta.audit_id)).toMatchObject({ result: 'allowed' });
  });

  test('ST-03 the Idempotency-Key of a call that a dead process had not begun is released', async () => {
    const world = await startWorld(store);
    const organisation = await world.organisation();
    await organisation.platform();
    const agent = await organisation.agent();
    const { broker } = world.running;
    const now = broker.clock();
    // The state that a process leaves when it is killed between its claim and its intent.
    const claim = (key: string, instance_id: string, is_read = 0) =>
      claimIdempotencyKey(broker.store.db, {
        organisation_id: organisation.id,
        agent_id: agent.id,
        key_hash: sha256Hex(key),
        request_hash: sha256Hex(canonicalJson(patch(key))),
        audit_id: uuidv7(now),
        instance_id,
        is_read,
        created_at: now,
        expires_at: now + 3_600_000,
      });
    await claim('dead', uuidv4());
    await claim('read', uuidv4(), 1);
    await claim('living', broker.instanceId);
    const again = (key: string) => agent.act(patch(key), { 'idempotency-key': key });
    await vi.waitUntil(async () => (await again('dead')).status === 200, { timeout: 10_000, interval: 100 });
    expect((await again('read')).status).toBe(200);
    expectEnvelope(await again('living'), 409, 'idempotency_in_progress');
    expect(world.upstream.seen).toHaveLength(2);
    const rows = await listAuditRows(broker.store.db, organisation.id, { limit: 50 });
    const closed = rows.filter((row) => row.kind === 'action').map(({ path, result }) => `${path} ${result}`);
    // The read may have had a journal entry, which becomes a row of its own.
    expect(closed.toSorted()).toEqual(['/items/dead allowed', '/items/read allowed', 'null errored']);
  });
});

describe.each(WHERE)(`journal entries of reads that a dead process left on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());

  test('are recorded in the audit, except those from before the store was restored', async () => {
    const { store, config } = world.running.broker;
    const agent = await organisation.agent();
    await agent.act(READ);
    const [finished] = await listAuditRows(store.db, organisation.id, { limit: 1 });
    const leave = async (createdAt: number): Promise<string> => {
      const [folder, id] = [readsFolder(config.dataFolder), uuidv4()];
      const row: AuditRow = {
        ...finished!,
        id: uuidv7(createdAt),
        created_at: createdAt,
        state: 'intent',
        result: null,
      };
      const reads = noteReads(folder, id);
      await reads.note(row);
      reads.close({ keep: true });
      await vi.waitUntil(() => !existsSync(join(folder, id)), { timeout: 15_000 });
      return row.id;
    };
    const restoredAt = Date.now();
    const ended = {
      approvals: 0,
      access_requests: 0,
      registrations: 0,
      consents: 0,
      invites: 0,
      standing_approvals: 0,
    };
    const restored = { at: restoredAt, madeAt: null, ended, noted: true };
    await store.db
      .updateTable('organisations')
      .set({ restored: JSON.stringify(restored) })
      .where('id', '=', organisation.id)
      .execute();
    const [before, after] = [await leave(restoredAt - 1_000), await leave(restoredAt + 1)];
    expect(await findAuditRow(store.db, organisation.id, before)).toBeUndefined();
    expect(await findAuditRow(store.db, organisation.id, after)).toMatchObject({ reason: 'outcome_unknown' });
  }, 180_000);
});
