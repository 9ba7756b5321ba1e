/** The store becomes unavailable while an approved call is at the platform: no answer claims that nothing was sent. */
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { rawClient } from '../proxy/raw-client.ts';
import { startFaultProxy } from '../world/servers/fault-proxy.ts';
import { newDatabase, postgresNote, STORES } from '../world/stores.ts';
import { startWorld } from '../world/world.ts';

describe.runIf(STORES.includes('postgres'))(
  `the store is unavailable while an approved call is made${postgresNote}`,
  () => {
    test('owner and client get what is known, and the same request gets the answer when the store is available again', async () => {
      const cut = await startFaultProxy(await newDatabase());
      const world = await startWorld('sqlite', { DATABASE_URL: cut.url });
      const organisation = await world.demoOrganisation();
      const rules = [{ effect: 'require_approval' as const }];
      const agent = await organisation.agent({ policy: await organisation.policy(rules, 'hold') });
      const raw = rawClient(() => agent);
      const answering = Promise.withResolvers<void>();
      const asked = Promise.withResolvers<void>();
      onTestFinished(() => answering.resolve());
      world.upstream.answer = async (_request, response) => {
        asked.resolve();
        await answering.promise;
        response.writeHead(200, { 'content-type': 'application/json' }).end('{"done":true}');
      };
      const write = (wait: string) =>
        raw('POST', '/proxy/demo-main/items', {
          headers: { 'x-svc-wait': wait, 'content-type': 'application/json' },
          body: '{"n":1}',
        });
      const waiting = write('60');
      const pending = async () => (await organisation.pending())[0];
      const { approval_id: id } = await vi.waitUntil(pending, { timeout: 15_000, interval: 20 });
      await vi.waitUntil(() => world.running.services.changes.waiting(id) > 0, { timeout: 15_000, interval: 5 });
      const read = agent.get(`/v1/approvals/${id}?wait=50`);
      await vi.waitUntil(() => world.running.services.changes.waiting(id) > 1, { timeout: 15_000, interval: 5 });
      const deciding = organisation.approve(id);
      await asked.promise;
      await cut.cut();
      answering.resolve();

      const decided = await deciding;
      expect(decided, decided.text).toMatchObject({
        status: 200,
        body: { approval_id: id, status: 'approved', executed_at: null, execution_error: null, waiting: null },
      });
      const told = await waiting;
      expect(told, told.text).toMatchObject({
        status: 503,
        body: { error: 'store_unavailable', approval_id: id, approval_url: `${world.running.baseUrl}/approve/${id}` },
      });
      expect(told.body.detail).toContain('may have been made. Send the identical request again');
      expect(told.headers.get('x-should-retry')).toBeNull();
      const unread = await read;
      expect([unread.status, unread.body.error]).toEqual([503, 'store_unavailable']);
      for (const { text } of [told, unread]) expect(text).not.toContain('Nothing was sent');

      await cut.repair();
      const { recorder } = world.running.services;
      await vi.waitUntil(async () => (await recorder.retryLate().catch(() => 1)) === 0, {
        timeout: 15_000,
        interval: 50,
      });
      expect(await write('20')).toMatchObject({ status: 200, body: { done: true } });
      expect(world.upstream.seen).toHaveLength(1);
    });
  },
);
