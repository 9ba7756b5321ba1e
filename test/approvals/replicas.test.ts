/** Two brokers on one PostgreSQL: one holds the call and has the waiting agent, the other decides and replays. */
import { sql } from 'kysely';
import { beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { uuidv4 } from '../../broker/crypto/ids.ts';
import { findApproval } from '../../broker/store/approvals.ts';
import { forgetInstance, heartbeat } from '../../broker/store/instances.ts';
import { takeClaim } from '../../broker/store/replays.ts';
import { approveAndDie } from '../world/after-crash.ts';
import type { TestAgent } from '../world/agent.ts';

import { evidenceOf, verifyReceipt, withoutCalls } from '../world/evidence.ts';
import { endNoticeConnections, keepNoticesDown } from '../world/notice-connections.ts';
import { givenReplica } from '../world/replica.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { sized } from '../world/runner/thorough.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { givenWorld, shared, WRITE } from '../world/world.ts';

describe.runIf(STORES.includes('postgres'))(`held calls and replicas on postgres${postgresNote}`, () => {
  let there: TestAgent;
  const world = givenWorld('postgres');
  const organisation = shared(() => world.demoOrganisation());
  const second = givenReplica(world);
  const here = shared(() => organisation.agent());
  beforeAll(() => {
    there = second.asks(here);
  });
  beforeEach(() => {
    world.upstream.answer = undefined;
  });
  const decide = (id: string, verb: 'approve' | 'deny') =>
    organisation.ask('POST', `/owner/approvals/${id}/${verb}`, {});
  const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
  /** Until the other process has read the call and waits: then its listener is up, or about to be. */
  const letItWait = () => pause(300);

  test('a decision at one replica reaches the agent that waits at the other immediately', async () => {
    const warm = await there.hold(WRITE);
    const first = there.get(`/v1/approvals/${warm}?wait=20`);
    await letItWait();
    await decide(warm, 'deny');
    expect((await first).body.status).toBe('denied');
    const took: number[] = [];
    for (let round = 0; round < sized(5, 10); round++) {
      const id = await there.hold(WRITE);
      const waiting = there.get(`/v1/approvals/${id}?wait=20`);
      await letItWait();
      const began = performance.now();
      const decided = decide(id, round % 2 ? 'approve' : 'deny');
      const { body } = await waiting;
      took.push(performance.now() - began);
      expect(body).toMatchObject(round % 2 ? { status: 'approved', result: { status: 200 } } : { status: 'denied' });
      await decided;
    }
    // Polling the store, a second after the wait began, would take longer. A bench measures the exact time.
    expect(took.sort((a, b) => a - b)[2], `in ms: ${took}`).toBeLessThan(scaledTimeout(400));
  });

  test('a broken listening connection delays answers briefly, and loses none', async () => {
    const id = await there.hold(WRITE);
    const waiting = there.get(`/v1/approvals/${id}?wait=30`);
    await letItWait();
    /** Connections whose own notification is returning to them, or has: these are listening. */
    const listening = async () => {
      const { rows } = await sql<{ pid: number }>`select pid from pg_stat_activity
        where application_name = 'agent-broker notices' and datname = current_database()
        and state = 'idle' and query like '%pg_notify%'`.execute(world.db);
      return rows.map(({ pid }) => pid);
    };
    const before = await listening();
    expect(before.length).toBeGreaterThanOrEqual(1);
    await endNoticeConnections(world);
    const began = performance.now();
    await decide(id, 'approve');
    const { body } = await waiting;
    expect(body.result.status).toBe(200);
    expect(performance.now() - began).toBeLessThan(scaledTimeout(8_000));
    // The listener has reconnected.
    await vi.waitUntil(async () => (await listening()).filter((pid) => !before.includes(pid)).length >= before.length, {
      timeout: 10_000,
      interval: 50,
    });
    const took: number[] = [];
    for (let round = 0; round < 3; round++) {
      const again = await there.hold(WRITE);
      const next = there.get(`/v1/approvals/${again}?wait=20`);
      await letItWait();
      const since = performance.now();
      await decide(again, 'deny');
      expect((await next).body.status).toBe('denied');
      took.push(performance.now() - since);
    }
    // Polling the store, a second after the wait began, would take longer.
    expect(Math.min(...took), `in ms: ${took}`).toBeLessThan(scaledTimeout(400));
  });

  test('while no notices arrive, the store is polled: the answer comes within two seconds', async () => {
    const id = await there.hold(WRITE);
    const waiting = there.get(`/v1/approvals/${id}?wait=30`);
    await letItWait();
    const repair = keepNoticesDown(world);
    await pause(1_000);
    const began = performance.now();
    await decide(id, 'deny');
    expect((await waiting).body.status).toBe('denied');
    expect(performance.now() - began).toBeLessThan(scaledTimeout(5_000));
    await repair();
  });

  test('a decision that is rolled back takes its notice with it: no waiting agent is woken', async () => {
    const { changes } = world.running.services;
    const heard: string[] = [];
    const stop = changes.subscribe(({ id }) => heard.push(id));
    const id = uuidv4();
    await world.db
      .transaction()
      .execute(async (tx) => {
        await changes.announce(tx, { organisation_id: organisation.id, id });
        throw new Error('undone');
      })
      .catch(() => {});
    // Another test cut the connection for notifications: until it is restored, announcements are lost.
    const isHeard = async () => {
      const held = await there.hold(WRITE);
      await pause(200);
      return heard.includes(held);
    };
    await expect.poll(isHeard, { timeout: 10_000, interval: 500 }).toBe(true);
    stop();
    expect(heard).not.toContain(id);
  });

  /** Leaves the state of a process that died right after its decision. */
  async function claimedBy(instanceId: string): Promise<string> {
    const id = await here.hold(WRITE);
    await approveAndDie(world, organisation, id, instanceId);
    return id;
  }

  test('R7 the claim of a dead process is taken over by a living one, and the call is made once', async () => {
    const dead = uuidv4();
    await heartbeat(world.db, dead, Date.now());
    const before = world.upstream.seen.length;
    const ids = await Promise.all(Array.from({ length: sized(3, 5) }, () => claimedBy(dead)));
    // The process counts as alive: its claim is not touched.
    await pause(200);
    expect(world.upstream.seen.length).toBe(before);
    await forgetInstance(world.db, dead);
    for (const id of ids) {
      const { body } = await there.get(`/v1/approvals/${id}?wait=20`);
      expect(body).toMatchObject({ status: 'approved', result: { status: 200 } });
      expect((await evidenceOf(world, here, body.audit_id)).row).toMatchObject({ result: 'allowed', approval_id: id });
    }
    expect(world.upstream.seen.length).toBe(before + ids.length);
  });

  test('R7 a process that lost its claim sends nothing', async () => {
    const { services, broker } = world.running;
    const other = uuidv4();
    await heartbeat(world.db, other, Date.now());
    const id = await claimedBy(other);
    const claimed = (await findApproval(world.db, organisation.id, id))!;
    // Another process takes over between our claim and our first step.
    await takeClaim(world.db, claimed, other);
    await withoutCalls(world, () => services.replays.start(claimed));
    const { exec_state, lease_owner, fence } = (await findApproval(world.db, organisation.id, id))!;
    expect([exec_state, lease_owner, fence]).toEqual(['claimed', other, 2]);
    expect(broker.instanceId).not.toBe(other);
    await forgetInstance(world.db, other);
    expect((await here.get(`/v1/approvals/${id}?wait=20`)).body.result.status).toBe(200);
  });

  test('R7 a process that was considered dead during a call: the call is closed as unknown, and the late outcome is recorded as an event', async () => {
    let finish = () => {};
    const asked = new Promise<void>((resolve) => {
      world.upstream.answer = (_request, response) => {
        finish = () => response.setHeader('content-type', 'application/json').end('{}');
        resolve();
      };
    });
    const id = await here.hold(WRITE);
    const before = world.upstream.seen.length;
    const decided = decide(id, 'approve');
    await asked;
    // The other process considers us dead; our next heartbeat is up to five seconds away.
    await vi.waitUntil(
      async () => {
        await forgetInstance(world.db, world.running.broker.instanceId);
        return (await findApproval(world.db, organisation.id, id))!.exec_state === 'unknown';
      },
      { timeout: 15_000, interval: 20 },
    );
    const { body } = await there.get(`/v1/approvals/${id}`);
    expect(body).toMatchObject({ status: 'approved', executed_at: null });
    expect(body.execution_error).toMatch(/^outcome unknown: the broker stopped while the call was in flight/);
    finish();
    expect((await decided).status).toBe(200);
    const late = await vi.waitUntil(
      async () => {
        const { rows } = (await organisation.ask('GET', '/owner/audit')).body;
        return rows.find(
          (row: { approval_id: string; reason: string }) => row.approval_id === id && row.reason === 'late_outcome',
        );
      },
      { timeout: 10_000 },
    );
    expect(late).toMatchObject({ kind: 'event', upstream_status: 200, flags: { late_for: body.audit_id } });
    const receipt = await here.get(`/v1/audit/${late.id}/receipt`, { accept: 'application/jose' });
    expect((await verifyReceipt(world, receipt.text)).payload).toMatchObject({ reason: 'late_outcome', kind: 'event' });
    expect((await there.get(`/v1/approvals/${id}`)).body.execution_error).toBe(body.execution_error);
    expect(world.upstream.seen.length).toBe(before + 1);
  });
});
