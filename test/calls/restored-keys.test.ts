/** Idempotency-Keys on a restored store, which lacks those that were used after the backup. */
import { describe, expect, test } from 'vitest';
import { uuidv4, uuidv7 } from '../../broker/crypto/ids.ts';
import { putKeysRestored } from '../../broker/store/restored.ts';
import { newRepeat } from '../../mcp/tools/repeats.ts';
import { expectStatus } from '../world/agent.ts';
import { auditIdOf, expectEnvelope, withoutCalls } from '../world/evidence.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { HOUR_MS } from '../world/times.ts';
import { givenWorld, shared } from '../world/world.ts';

const READ = { platform: 'demo', endpoint: '/items', method: 'GET', scope: 'demo:read' };
const WRITE = { ...READ, method: 'PATCH', scope: 'demo:write', data: { a: 1 } };
const scopes = { 'demo:read': ['GET /items'], 'demo:write': ['PATCH /items'] };
const keyed = (key: string) => ({ 'idempotency-key': key });

describe.each(STORES)(`ST-07 Idempotency-Keys after a restore on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation({ manifest: { scopes } }));
  const restored = async (at: number) => {
    await putKeysRestored(world.db, at);
    await world.restart();
  };

  test('a key that may have been used after the backup is refused and recorded, and nothing is sent', async () => {
    await restored(Date.now() - HOUR_MS);
    const agent = await organisation.agent();
    const made = [uuidv4(), 'refund-7', uuidv7(Date.now() - 2 * HOUR_MS), `${uuidv7(Date.now())}-1`];
    for (const key of made) {
      const answer = await withoutCalls(world, () => agent.act(WRITE, keyed(key)));
      expectEnvelope(answer, 409, 'idempotency_outcome_unknown');
      const { platform, consent_requested, message, detail } = answer.body;
      expect([platform, consent_requested, message]).toEqual(['demo', false, detail]);
      expect(detail).toContain('may have been made');
      expect(detail).toContain('UUID of version 7');
      await expectStatus(200, agent.get(`/v1/audit/${auditIdOf(answer)}/receipt`));
    }
    // It counts towards no breaker: further calls pass.
    expect((await agent.act(WRITE)).status).toBe(200);
    await expectStatus(200, agent.act(READ, keyed('refund-7')));
  });

  test('a key created after the restore makes a new call, and answers a repetition', async () => {
    await restored(Date.now() - HOUR_MS);
    const agent = await organisation.agent();
    // The last one as created by tools of MCP.
    for (const key of [uuidv7(Date.now()), `refund-${uuidv7(Date.now()).toUpperCase()}`, newRepeat(undefined).key]) {
      world.upstream.seen.length = 0;
      const first = await agent.act(WRITE, keyed(key));
      const again = await agent.act(WRITE, keyed(key));
      expect([first.status, again.status, again.text], first.text).toEqual([200, 200, first.text]);
      expect(again.headers.get('idempotency-replayed')).toBe('true');
      expect(world.upstream.seen).toHaveLength(1);
    }
  });

  test('a key from a clock that is ahead may have been used before, and is refused', async () => {
    await restored(Date.now() - 10_000);
    const agent = await organisation.agent();
    const answer = await withoutCalls(world, () => agent.act(WRITE, keyed(uuidv7(Date.now()))));
    expectEnvelope(answer, 409, 'idempotency_outcome_unknown');
  });

  test('after 24 hours every key is accepted', async () => {
    await restored(Date.now() - 24 * HOUR_MS + 60_000);
    const agent = await organisation.agent();
    expect(await agent.act(WRITE, keyed('refund-8'))).toMatchObject({
      status: 409,
      body: { error: 'idempotency_outcome_unknown' },
    });
    await restored(Date.now() - 24 * HOUR_MS);
    expect((await agent.act(WRITE, keyed('refund-8'))).status).toBe(200);
  });
});
