/**
 * Permissions of an agent (specification, "Effective permissions" and "Authorization queries"): whatever owners grant, change and remove, and
 * whatever expires, applies at the very next call, consistently at every entry point.
 */
import fc from 'fast-check';
import { expect } from 'vitest';
import { expectStatus } from '../../world/agent.ts';
import type { World } from '../../world/world.ts';
import type { Count, Fuzzed } from '../fuzz.ts';
import { sequences, step } from '../steps.ts';
import { expectOnRecord } from './on-record.ts';
import { type Holder, newHolder, READ, type Rights, stepsOnRights, verdictOf, WRITE } from './rights.ts';

type Model = { rights: Rights; rows: string[]; made: number };

const ASKS = [
  { scope: READ, method: 'GET', endpoint: '/items' },
  { scope: WRITE, method: 'POST', endpoint: '/items', data: { title: 'x' } },
  { scope: 'demo:delete', method: 'DELETE', endpoint: '/items/1' },
];

export function grants(world: World, count: Count): Fuzzed {
  const begin = async () => {
    const { rights, holder } = await newHolder(world);
    const model: Model = { rights, rows: [], made: 0 };
    return { model, real: holder };
  };

  /** Uses every entry point for every scope. */
  const ask = step<Model, Holder>('ask', async (model, { agent }) => {
    const now = agent.clock();
    const permitted = await agent.get('/v1/agent/permissions');
    expect(permitted.status, permitted.text).toBe(model.rights.status === 'active' ? 200 : 403);
    const told: string[] = permitted.body.data?.platforms[0]?.scopes ?? [];
    for (const request of ASKS) {
      const { scope } = request;
      const verdict = verdictOf(model.rights, scope, now);
      const note = `${scope} ${JSON.stringify(model.rights)}`;
      const answer = await agent.act({ platform: 'demo', ...request });
      if (verdict === 'made') model.made++;
      const status = verdict === 'made' ? 200 : verdict === 'held' ? 202 : 403;
      expect(answer.status, `${note} ${answer.text}`).toBe(status);
      if (Array.isArray(verdict)) expect(verdict, note).toContain(answer.body.reason);
      model.rows.push(verdict === 'made' ? 'allowed' : verdict === 'held' ? 'held' : 'denied');
      count(Array.isArray(verdict) ? 'refused' : verdict);
      // This entry point only returns what a call would be answered.
      const question = {
        subject: { type: 'agent', id: agent.id },
        action: { name: scope },
        resource: { type: 'platform', id: 'demo' },
      };
      const said = await expectStatus(200, agent.post('/v1/authzen/access', question));
      expect([said.body.decision, said.body.require_approval === true], `${note} ${said.text}`).toEqual([
        verdict === 'made',
        verdict === 'held',
      ]);
      expect(told.includes(scope), `${note} ${permitted.text}`).toBe(!Array.isArray(verdict));
    }
  });

  const property = sequences<Model, Holder>(
    [fc.constant(ask), fc.constant(ask), fc.constant(ask), ...stepsOnRights<Model, Holder>()],
    {
      begin,
      after: async ({ made }) => expect(world.upstream.seen.length).toBe(made),
      end: async (model, real) => {
        await ask.run(model, real);
        await expectOnRecord(real, model.rows);
      },
    },
  );
  return { property, reaches: ['made', 'held', 'refused'] };
}
