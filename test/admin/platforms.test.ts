import { beforeAll, describe, expect, test } from 'vitest';
import { expectStatus } from '../world/agent.ts';
import { expectDenied, expectEnvelope, verifyReceipt, withoutCalls } from '../world/evidence.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { CANARY, DEMO_SCOPES, givenWorld, READ, shared } from '../world/world.ts';

describe.each(STORES)(`owners’ platforms on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation({ manifest: { name: 'The demo' } }));
  const other = shared(() => world.organisation());
  beforeAll(async () => {
    await organisation.platform({ id: 'bare', secret: null });
    await other.platform({ id: 'theirs' });
  });

  test('lists the organisation’s platforms with their connections, and no secret', async () => {
    const answer = await expectStatus(200, organisation.ask('GET', '/owner/platforms'));
    expect(answer.body.platforms).toEqual([
      {
        platform_id: 'bare',
        name: 'bare',
        kind: 'rest',
        base_url: `${world.upstream.url}/v1`,
        builtin: null,
        update_available: false,
        version: 1,
        suspended: false,
        created_at: expect.any(String),
        connections: [],
      },
      expect.objectContaining({
        platform_id: 'demo',
        name: 'The demo',
        connections: [
          {
            id: expect.any(String),
            platform: 'demo',
            label: 'demo-main',
            default: true,
            status: 'active',
            state: 'connected',
            has_secret: true,
            per_person: false,
            connects_by: 'secret',
            oauth: null,
            failing: null,
            redirect_uri: null,
            secret_from: null,
            upstream_scopes: null,
            lacks_consent_for: [],
            last_test: null,
            idle_seconds: null,
            wait_seconds: null,
            url: `${world.running.baseUrl}/proxy/demo-main`,
            revision: 1,
            created_at: expect.any(String),
          },
        ],
      }),
    ]);
    expect(answer.text).not.toContain(CANARY);
    const viewer = await organisation.addOwner('viewer');
    expect((await organisation.ask('GET', '/owner/platforms', undefined, viewer)).status).toBe(200);
  });

  test('returns one platform with its manifest and the operations of each scope', async () => {
    const answer = await expectStatus(200, organisation.ask('GET', '/owner/platforms/demo'));
    expect(answer.body.manifest).toMatchObject({ kind: 'rest', auth: { type: 'bearer' }, scopes: DEMO_SCOPES });
    expect(answer.body.scopes).toEqual(Object.entries(DEMO_SCOPES).map(([scope, rules]) => ({ scope, rules })));
    expect(answer.text).not.toContain(CANARY);
    for (const id of ['theirs', 'none', '%00', '__proto__', '..%2fdemo'])
      expectEnvelope(await organisation.ask('GET', `/owner/platforms/${id}`), 404, 'not_found');
  });

  test('calls to a suspended platform are refused from the next one until it is resumed; both are recorded', async () => {
    const fresh = await world.organisation();
    await fresh.platform();
    const agent = await fresh.agent();
    expect((await agent.act(READ)).status).toBe(200);
    const suspended = await fresh.ask('POST', '/owner/platforms/demo/suspend', { reason: 'an incident' });
    expect([suspended.status, suspended.body.suspended], suspended.text).toEqual([200, true]);
    await expectDenied(world, agent, READ, 'platform_suspended');
    await expectStatus(200, agent.get('/v1/agent/permissions'));
    expectEnvelope(await fresh.ask('POST', '/owner/platforms/demo/suspend', {}), 409, 'conflict');
    // A new manifest does not resume it.
    await fresh.platform({ manifest: { name: 'Again' }, secret: null });
    await expectDenied(world, agent, READ, 'platform_suspended');
    const resumed = await fresh.ask('POST', '/owner/platforms/demo/resume');
    expect([resumed.status, resumed.body.suspended, resumed.body.version], resumed.text).toEqual([200, false, 2]);
    expect((await agent.act(READ)).status).toBe(200);
    expectEnvelope(await fresh.ask('POST', '/owner/platforms/demo/resume'), 409, 'conflict');
    const { rows } = (await fresh.ask('GET', '/owner/audit')).body;
    const events = rows.filter(({ kind }: { kind: string }) => kind === 'event');
    expect(events.map((row: Record<string, unknown>) => [row.reason, row.platform_id, row.detail])).toEqual([
      ['platform_resumed', 'demo', null],
      ['platform_suspended', 'demo', 'an incident'],
    ]);
    for (const { id, reason } of events) {
      const { receipt } = (await fresh.ask('GET', `/v1/audit/${id}/receipt`)).body;
      const { payload } = await verifyReceipt(world, receipt);
      expect(payload).toMatchObject({ reason, platform: 'demo', change: { by: fresh.owner.id, how: 'api' } });
    }
  });

  test('of two concurrent suspensions one succeeds', async () => {
    const fresh = await world.organisation();
    await fresh.platform();
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => fresh.ask('POST', '/owner/platforms/demo/suspend')),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409, 409]);
  });

  test('requests without the right, or for an unknown platform, change and record nothing', async () => {
    const agent = await organisation.agent();
    for (const role of ['viewer', 'approver'] as const) {
      const owner = await organisation.addOwner(role);
      const refused = await organisation.ask('POST', '/owner/platforms/demo/suspend', {}, owner);
      expectEnvelope(refused, 403, 'forbidden');
    }
    for (const id of ['theirs', 'none', '%00'])
      expectEnvelope(await organisation.ask('POST', `/owner/platforms/${id}/suspend`, {}), 404, 'not_found');
    expectEnvelope(await organisation.ask('POST', '/owner/platforms/demo/suspend', { x: 1 }), 400, 'invalid_request');
    expect((await organisation.ask('GET', '/owner/audit')).body.rows).toEqual([]);
    await withoutCalls(world, () => agent.get('/v1/agents/me'));
    expect((await agent.act(READ)).status).toBe(200);
  });
});
