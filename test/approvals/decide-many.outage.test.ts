/** The store becomes unavailable while several held calls are decided together: what was approved and sent is reported as that. */
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { expectStatus } from '../world/agent.ts';
import { startFaultProxy } from '../world/servers/fault-proxy.ts';
import { newDatabase, postgresNote, STORES } from '../world/stores.ts';
import { startWorld, WRITE } from '../world/world.ts';

describe.runIf(STORES.includes('postgres'))(
  `the store is unavailable while several calls are decided${postgresNote}`,
  () => {
    test('calls that were approved and sent are reported as approved, and the rest as not decided', async () => {
      const cut = await startFaultProxy(await newDatabase());
      const world = await startWorld('sqlite', { DATABASE_URL: cut.url });
      const organisation = await world.demoOrganisation();
      const agent = await organisation.agent();
      const items: { approval_id: string; request_hash: string }[] = [];
      for (let n = 0; n < 6; n++) {
        const approval_id = await agent.hold(WRITE);
        const { request_hash } = (await organisation.ask('GET', `/owner/approvals/${approval_id}`)).body;
        items.push({ approval_id, request_hash });
      }
      const waiting: (() => void)[] = [];
      onTestFinished(() => {
        for (const answer of waiting) answer();
      });
      world.upstream.answer = (_request, response) => void waiting.push(() => response.writeHead(200).end('{}'));
      const asked = organisation.ask('POST', '/owner/approvals/decide', { decision: 'approve', items });
      await vi.waitUntil(() => waiting.length === 4, { timeout: 15_000, interval: 10 });
      await cut.cut();
      for (const answer of waiting.splice(0)) answer();
      const answer = await expectStatus(200, asked);
      const outcomes = answer.body.results.map(({ outcome }: { outcome: string }) => outcome);
      expect(outcomes).toEqual([...Array(4).fill('approved'), ...Array(2).fill('not_decided')]);
      for (const { approval } of answer.body.results.slice(0, 4))
        expect(approval).toMatchObject({ status: 'approved', executed_at: null, execution_error: null });
      for (const { approval, detail } of answer.body.results.slice(4)) {
        expect(approval).toBeNull();
        expect(detail).toContain('unknown whether this call is still pending');
      }
      await cut.repair();
    });
  },
);
