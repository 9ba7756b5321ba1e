/** Demo calls of the sandbox's agent at an owner's request: real calls, to the sandbox only. */

import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { beforeEach, describe, expect, test } from 'vitest';
import { sandboxProfile } from '../../broker/admin/organisations/demo.ts';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { sessionCookieName } from '../../broker/auth/session-cookie.ts';
import { putPlatform } from '../../broker/store/governed-versions.ts';
import { expectStatus, makeKeyPair, send } from '../world/agent.ts';
import { expectEnvelope, verifyReceipt } from '../world/evidence.ts';
import { whileAuditRowsAreRefused } from '../world/faults.ts';
import { givenReplica } from '../world/replica.ts';
import { givenSandbox } from '../world/sandbox.ts';
import { startChannelServer } from '../world/servers/channel-server.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { shared } from '../world/world.ts';

describe.each(STORES)(`a demo with the sandbox on %s${postgresNote}`, (store) => {
  const channel = shared(() => startChannelServer());
  const {
    world,
    organisation,
    ask: askSandbox,
  } = givenSandbox(store, () => ({
    AGENT_BROKER_ALLOW_PRIVATE: [channel.address, '127.0.0.1:1'].join(),
  }));
  const demo = (by = organisation.owner) => organisation.ask('POST', '/owner/demo', {}, by);
  const possible = async () => (await organisation.ask('GET', '/owner/demo')).body;
  const rows = async (query = '') => (await organisation.ask('GET', `/owner/audit?${query}`)).body.rows;
  const pending = async () =>
    (await organisation.pending()) as {
      approval_id: string;
      request_hash: string;
    }[];
  const decide = async (verb: 'approve' | 'deny', more: object = {}) => {
    const [waiting] = await pending();
    const { request_hash } = (await organisation.ask('GET', `/owner/approvals/${waiting!.approval_id}`)).body;
    return await organisation.ask('POST', `/owner/approvals/${waiting!.approval_id}/${verb}`, {
      request_hash,
      ...more,
    });
  };
  const refunds = async () => (await askSandbox('/refunds')).body.items as { payment: string; amount: number }[];
  const receipt = async (id: string) => {
    const { body } = await organisation.ask('GET', `/v1/audit/${id}/receipt`);
    return (await verifyReceipt(world, body.receipt)).payload;
  };
  beforeEach(async () => {
    while ((await pending()).length > 0) await decide('deny');
  });

  test('is possible in an organisation without any call', async () => {
    expect(await rows('kind=action')).toEqual([]);
    expect(await possible()).toMatchObject({ platform: 'sandbox', why_not: null });
    expect((await organisation.ask('GET', '/owner/stats?range=day')).body.totals.calls).toBe(0);
  });

  test('makes a read, a refused call that the agent reports, and a held refund, which an approval makes once; all recorded with receipts', async () => {
    const before = await refunds();
    const { body } = await expectStatus(200, demo());
    expect(body.calls).toMatchObject([
      { method: 'GET', endpoint: '/issues', result: 'allowed', upstream_status: 200 },
      { method: 'PATCH', endpoint: '/issues/1', result: 'denied', reason: 'endpoint_scope_mismatch' },
      { method: 'POST', endpoint: '/refunds', result: 'held', upstream_status: null },
    ]);
    expect((await askSandbox('/issues/1')).body.state, 'what was refused').toBe('open');
    expect(await refunds(), 'what waits').toEqual(before);
    const { agent_id } = await possible();
    for (const { audit_id, result } of body.calls)
      expect(await receipt(audit_id)).toMatchObject({ jti: audit_id, agent: agent_id, result });
    const [event] = await rows('reason=demo_started');
    expect(event).toMatchObject({
      kind: 'event',
      agent_public_id: agent_id,
      platform_id: 'sandbox',
      flags: { change: { by: organisation.owner.id, how: 'api' } },
    });
    expect(await receipt(event.id)).toMatchObject({ jti: event.id });
    const { diagnostics } = (await organisation.ask('GET', '/owner/diagnostics')).body;
    expect(diagnostics[0]).toMatchObject({
      id: body.report_id,
      agent_public_id: agent_id,
      code: 'endpoint_scope_mismatch',
      correlation_id: event.correlation_id,
    });
    expect((await pending()).map(({ approval_id }) => approval_id)).toEqual([body.approval_id]);
    const made = await decide('approve');
    expect(made.body).toMatchObject({ status: 'approved', execution_error: null });
    expect((await refunds()).slice(0, -before.length)).toMatchObject([{ payment: 'pay_1001', amount: 100 }]);
    const [replayed] = await rows('kind=action&result=allowed&limit=1');
    expect(replayed).toMatchObject({ approval_id: body.approval_id, path: '/refunds', upstream_status: 201 });
    expect(await receipt(replayed.id)).toMatchObject({ result: 'allowed' });
  });

  test('repeated and concurrent demos leave one pending refund, and a channel gets one notice of it, as of any other call', async () => {
    const told = { name: `pager-${channel.seen.length}`, kind: 'webhook', url: `${channel.url}/hook` };
    const added = await expectStatus(201, organisation.ask('POST', '/owner/channels', told));
    const seen = channel.seen.length;
    const answers = await Promise.all(Array.from({ length: 4 }, () => demo()));
    const [again] = [await demo()];
    expect([...answers, again].map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    const waiting = await pending();
    expect(waiting).toHaveLength(1);
    expect(new Set([...answers, again].map(({ body }) => body.approval_id))).toEqual(
      new Set([waiting[0]!.approval_id]),
    );
    expect(again!.body.calls).toHaveLength(2);
    await channel.waitFor(seen + 1);
    await decide('deny');
    const said = () => channel.came().slice(seen);
    await expect
      .poll(() => said().map(({ type }) => type), { timeout: 10_000 })
      .toEqual(['call_held.opened', 'call_held.outcome']);
    expect(said()[0]!.body).toContain('sandbox-agent');
    await organisation.ask('DELETE', `/owner/channels/${added.body.id}`);
    expect((await demo()).body.calls, 'decided, the next demo asks again').toHaveLength(3);
  });

  test('under a standing approval the refund of the next demo passes, and uses it', async () => {
    await demo();
    await expectStatus(200, decide('approve', { standing: { count: 2, for_seconds: 3600, free: [] } }));
    expect((await demo()).body).toMatchObject({
      approval_id: null,
      calls: [{}, {}, { endpoint: '/refunds', result: 'allowed', upstream_status: 201 }],
    });
    const [standing] = (await organisation.ask('GET', '/owner/standing-approvals')).body.standing_approvals;
    expect(standing).toMatchObject({ count: 2, left: 1 });
    await organisation.ask('DELETE', `/owner/standing-approvals/${standing.id}`);
  });

  test('only admins can start a demo; a browser needs the console’s header', async () => {
    const before = (await rows()).length;
    for (const role of ['approver', 'viewer'] as const) {
      const owner = await organisation.addOwner(role);
      expectEnvelope(await demo(owner), 403, 'forbidden');
      expect((await organisation.ask('GET', '/owner/demo', undefined, owner)).status).toBe(200);
    }
    const cookie = `${sessionCookieName(world.running.baseUrl)}=${mintOwnerSession(world.running.broker, organisation.owner).token}`;
    const press = (headers: Record<string, string>) =>
      send(`${world.running.baseUrl}/owner/demo`, { method: 'POST', headers });
    expectEnvelope(await press({}), 401, 'missing_token');
    expectEnvelope(await press({ cookie }), 403, 'forbidden');
    expectEnvelope(await press({ cookie, 'x-svc-csrf': '1', origin: 'https://evil.example' }), 403, 'forbidden');
    expectEnvelope(
      await demo().then(() => organisation.ask('POST', '/owner/demo', { platform: 'crm' })),
      400,
      'invalid_request',
    );
    expect((await rows(`kind=event&reason=demo_started`)).length).toBeGreaterThan(0);
    expect((await rows()).length, 'of one demo').toBe(before + 4);
    expect((await press({ cookie, 'x-svc-csrf': '1' })).status).toBe(200);
    expect((await rows('reason=demo_started'))[0].flags.change.how).toBe('console');
  });

  test('when it cannot be recorded, no call is made', async () => {
    const before = await rows();
    await whileAuditRowsAreRefused(world, async () => {
      expectEnvelope(await demo(), 503, 'audit_unavailable');
    });
    expect(await rows()).toEqual(before);
  });

  describe('no call is made, nor recorded,', () => {
    const refused = async (why: string, by = organisation) => {
      const before = (await by.ask('GET', '/owner/audit')).body.rows;
      expect((await by.ask('GET', '/owner/demo')).body).toMatchObject({
        agent_id: null,
        why_not: expect.stringContaining(why),
      });
      const answer = await by.ask('POST', '/owner/demo', {});
      expectEnvelope(answer, 409, 'conflict');
      expect(answer.body.detail).toContain(why);
      expect((await by.ask('GET', '/owner/audit')).body.rows).toEqual(before);
      expect(world.upstream.seen).toEqual([]);
    };
    const profile = () => sandboxProfile(world.running.broker.config.dataFolder);

    test('in an organisation without a sandbox', async () => {
      await refused('has no sandbox', await world.organisation());
    });

    test('when the platform of that name is not the sandbox, even if it may be called', async () => {
      const { manifest } = (await organisation.ask('GET', '/owner/platforms/sandbox')).body;
      const put = (base_url: string) =>
        putPlatform(
          world.db,
          {
            organisationId: organisation.id,
            platformId: 'sandbox',
            manifest: JSON.stringify({ ...manifest, base_url }),
          },
          Date.now(),
        );
      await put(world.upstream.url);
      await refused('does not run with');
      await put(manifest.base_url);
      expect((await demo()).status).toBe(200);
    });

    test('without its agent’s key, or with another agent’s key', async () => {
      renameSync(profile(), `${profile()}.away`);
      await refused('is not in the data folder');
      const kept = JSON.parse(readFileSync(`${profile()}.away`, 'utf8'));
      const other = await organisation.agent({ name: 'other' });
      writeFileSync(profile(), JSON.stringify({ ...kept, agent_id: other.agentId }));
      await refused('is not in the data folder');
      writeFileSync(profile(), 'garbage');
      await refused('is not in the data folder');
      renameSync(`${profile()}.away`, profile());
      expect(await possible()).toMatchObject({ why_not: null });
    });

    test('when its agent was stopped', async () => {
      const { agent_id } = await possible();
      await organisation.ask('POST', `/owner/agents/${agent_id}/suspend`, {});
      await refused('is suspended');
      await organisation.ask('POST', `/owner/agents/${agent_id}/resume`, {});
      expect(await possible()).toMatchObject({ why_not: null });
    });
  });

  test('a key that does not belong to the agent makes no call', async () => {
    const path = sandboxProfile(world.running.broker.config.dataFolder);
    const kept = readFileSync(path, 'utf8');
    const before = await rows('kind=action');
    writeFileSync(
      path,
      JSON.stringify({
        ...JSON.parse(kept),
        private_key: makeKeyPair().privateKey.export({ format: 'pem', type: 'pkcs8' }),
      }),
    );
    const answer = await demo();
    writeFileSync(path, kept);
    expectEnvelope(answer, 409, 'conflict');
    expect(answer.body.detail).toContain('another key');
    expect(await rows('kind=action')).toEqual(before);
    await world.forgive();
  });

  test('a stop by owners applies to calls of the demo', async () => {
    await organisation.ask('POST', '/owner/agents/suspend-all', { reason: 'a drill' });
    const { calls, approval_id } = (await demo()).body;
    expect(calls.map(({ result, reason }: Record<string, string>) => [result, reason])).toEqual(
      Array.from({ length: 3 }, () => ['denied', 'agent_suspended']),
    );
    expect(approval_id).toBeNull();
    await organisation.ask('POST', '/owner/agents/resume-all');
  });
});

describe.each(STORES.filter((store) => store === 'postgres'))('a demo requested from a replica on %s', (store) => {
  const { world, organisation } = givenSandbox(store);
  const replica = givenReplica(world, { behind: true });

  test('is refused with an explanation where the sandbox does not run', async () => {
    const authorization = `Bearer ${mintOwnerSession(world.running.broker, organisation.owner).token}`;
    const there = (method: string) => send(`${replica.baseUrl}/owner/demo`, { method, headers: { authorization } });
    expect((await there('GET')).body).toMatchObject({
      agent_id: null,
      why_not: expect.stringContaining('does not run with'),
    });
    expectEnvelope(await there('POST'), 409, 'conflict');
    expect((await organisation.ask('GET', '/owner/demo')).body.why_not).toBeNull();
  });
});
