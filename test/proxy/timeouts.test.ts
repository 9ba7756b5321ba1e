/** Idle timeouts of answers, and how long held requests wait: settings of a connection. */
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { BUILTIN_PLATFORMS } from '../../broker/platforms/builtin.ts';
import { findAuditRow } from '../../broker/store/audit.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { DEMO_RULES, givenWorld, shared } from '../world/world.ts';
import { rawClient } from './raw-client.ts';

test('answers of models, and logs and watches of a cluster, may be idle for ten minutes', () => {
  const patient = Object.entries(BUILTIN_PLATFORMS).filter(([, manifest]) => 'idle_seconds' in manifest);
  expect(
    patient.map(([name, manifest]) => [name, (manifest as { idle_seconds?: number }).idle_seconds]).sort(),
  ).toEqual(['anthropic', 'kubernetes', 'openai'].map((name) => [name, 600]));
});

describe.each(ONE_STORE)(`settings of a connection on %s${postgresNote}`, (store) => {
  let agent: TestAgent;
  let id: string;
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());
  beforeAll(async () => {
    id = (await organisation.ask('GET', '/owner/connections')).body.connections[0].id;
    await organisation.platform({ id: 'patient' });
    await organisation.platform({ id: 'hasty', manifest: { idle_seconds: 1 } });
    const openai = { ...BUILTIN_PLATFORMS.openai, base_url: world.upstream.url };
    await organisation.platform({ id: 'openai', manifest: openai });
    agent = await organisation.agent({ rules: DEMO_RULES, grants: { demo: {}, patient: {}, hasty: {} } });
  });
  const ask = rawClient(() => agent);
  const set = (settings: unknown) => organisation.ask('POST', `/owner/connections/${id}/settings`, settings);
  /** An answer whose second event comes after this delay. */
  const silentFor = (ms: number) => {
    world.upstream.answer = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: one\n\n');
      setTimeout(() => response.end('data: two\n\n'), ms);
    };
  };
  /** An answer that sends nothing for this long, like a model that thinks. */
  const thinksFor = (ms: number) => {
    world.upstream.answer = (_, response) => {
      setTimeout(() => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end('{"thought":true}');
      }, ms);
    };
  };
  const idOf = async (label: string): Promise<string> =>
    (await organisation.ask('GET', '/owner/connections')).body.connections.find(
      (one: { label: string }) => one.label === label,
    ).id;
  const setOf = async (label: string, settings: unknown) => {
    await expectStatus(200, organisation.ask('POST', `/owner/connections/${await idOf(label)}/settings`, settings));
  };
  const readStream = async (connection: string) => {
    const response = await fetch(`${agent.baseUrl}/proxy/${connection}/items`, {
      headers: { authorization: `Bearer ${agent.token()}` },
    });
    const text = await response.text().catch(() => 'cut');
    return { text, auditId: response.headers.get('x-svc-audit-id') ?? '' };
  };

  test('an idle answer is cut after idle_seconds, from the next call on', async () => {
    silentFor(2_300);
    expect((await set({ idle_seconds: 1 })).body).toMatchObject({ idle_seconds: 1, wait_seconds: null });
    const [cut, whole] = await Promise.all([readStream('demo-main'), readStream('patient-main')]);
    world.upstream.answer = undefined;
    expect([cut.text, whole.text]).toEqual(['cut', 'data: one\n\ndata: two\n\n']);
    const row = await findAuditRow(world.db, organisation.id, cut.auditId);
    expect(JSON.parse(row?.flags ?? '{}')).toMatchObject({ ended: 'idle' });
    expect((await set({ idle_seconds: null })).body).toMatchObject({ idle_seconds: null });
  });

  test('the idle timeout is the platform’s when the connection sets none, also before the head', async () => {
    thinksFor(2_300);
    const [cut, whole] = await Promise.all([
      ask('GET', '/proxy/hasty-main/items'),
      ask('GET', '/proxy/patient-main/items'),
    ]);
    expect([cut.status, cut.body.error, whole.status]).toEqual([502, 'upstream_unreachable', 200]);
    await setOf('hasty-main', { idle_seconds: 30 });
    const patient = await ask('GET', '/proxy/hasty-main/items');
    await setOf('hasty-main', { idle_seconds: null });
    world.upstream.answer = undefined;
    expect(patient).toMatchObject({ status: 200, body: { thought: true } });
    await world.forgive();
  });

  test.each([
    ['the connection says 1 second', 'demo-main', { idle_seconds: 1 }, 422],
    ['the platform says 1 second', 'hasty-main', { idle_seconds: null }, 422],
    ['the connection says more than the platform', 'hasty-main', { idle_seconds: 30 }, 200],
  ])('an approved call has the same idle timeout: %s', async (_, label, settings, status) => {
    await setOf(label, settings);
    const path = `/proxy/${label}/items`;
    const body = JSON.stringify({ prompt: label, status });
    const write = (wait: string) => ask('POST', path, { body, headers: { 'x-svc-wait': wait } });
    const held = await write('0');
    expect(held).toMatchObject({ status: 403, body: { error: 'approval_pending' } });
    const before = world.upstream.seen.length;
    thinksFor(2_300);
    await organisation.approve(held.body.approval_id);
    const answer = await write('20');
    world.upstream.answer = undefined;
    await setOf(label, { idle_seconds: null });
    expect(answer.status, answer.text).toBe(status);
    if (status === 200) expect(answer.body).toEqual({ thought: true });
    expect(world.upstream.seen.length).toBe(before + 1);
    await world.forgive();
  });

  test.each([
    ['openai', { idleTimeoutMs: 600_000, totalTimeoutMs: 600_000 }],
    // Without a setting the timeout is that of a stream.
    ['patient', { idleTimeoutMs: 60_000, totalTimeoutMs: 600_000 }],
  ])('an approved call of %s has the limits %j', async (id, limits) => {
    const scopeList = id === 'openai' ? ['openai:inference.run'] : undefined;
    const asking = await organisation.agent({
      rules: [{ effect: 'require_approval' }],
      grants: { [id]: { ...(scopeList && { scopeList }) } },
    });
    const path = id === 'openai' ? '/proxy/openai-main/chat/completions' : '/proxy/patient-main/items';
    const write = () =>
      rawClient(() => asking)('POST', path, { body: '{"model":"x","messages":[]}', headers: { 'x-svc-wait': '0' } });
    const held = await write();
    expect(held, held.text).toMatchObject({ status: 403, text: expect.stringContaining('approval_pending') });
    const send = vi.spyOn(world.running.broker.outbound, 'send');
    await organisation.approve(held.headers.get('x-svc-approval-id'));
    await expect.poll(async () => (await write()).status).toBe(200);
    expect(send.mock.calls.map(([request]) => request)).toMatchObject([limits]);
    send.mockRestore();
  });

  test('the answer to POST /v1/actions has the same idle timeout', async () => {
    thinksFor(2_300);
    await setOf('demo-main', { idle_seconds: 1 });
    const call = (platform: string) => agent.act({ platform, endpoint: '/items', method: 'GET', scope: 'demo:read' });
    const [cut, hasty, whole] = await Promise.all(['demo', 'hasty', 'patient'].map(call));
    world.upstream.answer = undefined;
    await setOf('demo-main', { idle_seconds: null });
    expect([cut?.status, cut?.body.code, hasty?.status, hasty?.body.code]).toEqual([502, 'timeout', 502, 'timeout']);
    expect(whole?.body.data, whole?.text).toEqual({ thought: true });
    await world.forgive();
  });

  test.each([
    ['openai', { idleTimeoutMs: 600_000, totalTimeoutMs: 600_000 }],
    ['hasty', { idleTimeoutMs: 1_000, totalTimeoutMs: 120_000 }],
    // Without a setting the limits are those of any call.
    ['patient', { idleTimeoutMs: undefined, totalTimeoutMs: undefined }],
  ])('a call of %s through POST /v1/actions has the limits %j', async (platform, limits) => {
    const scope = platform === 'openai' ? 'openai:inference.run' : 'demo:write';
    const endpoint = platform === 'openai' ? '/chat/completions' : '/items';
    const asking = await organisation.agent({
      rules: [{ effect: 'allow' }],
      grants: { [platform]: { ...(platform === 'openai' && { scopeList: [scope] }) } },
    });
    const send = vi.spyOn(world.running.broker.outbound, 'send');
    const data = { model: 'x', messages: [] };
    await asking.act({ platform, endpoint, method: 'POST', scope, data });
    const { calls } = send.mock;
    send.mockRestore();
    expect(calls).toHaveLength(1);
    const [[request] = []] = calls;
    expect([request?.idleTimeoutMs, request?.totalTimeoutMs]).toEqual([limits.idleTimeoutMs, limits.totalTimeoutMs]);
  });

  test('a held request waits wait_seconds, unless it sets the time itself', async () => {
    await set({ wait_seconds: 0 });
    const begun = performance.now();
    const write = (n: number, headers: Record<string, string> = {}) =>
      ask('POST', '/proxy/demo-main/items', { body: JSON.stringify({ n }), headers });
    const refused = await write(1);
    expect(refused).toMatchObject({ status: 403, body: { error: 'approval_pending' } });
    expect(performance.now() - begun).toBeLessThan(scaledTimeout(5_000));
    await set({ wait_seconds: 120 });
    const waiting = write(2);
    const joined = await write(2, { 'x-svc-wait': '0' });
    await organisation.approve(joined.body.approval_id);
    expect(await waiting).toMatchObject({ status: 200, body: { body: '{"n":2}' } });
    await set({ wait_seconds: null });
  });

  test('are changed by admins only, within bounds, and the change is recorded', async () => {
    for (const wrong of [
      ...[{}, { idle_seconds: 0 }, { idle_seconds: 601 }, { idle_seconds: 1.5 }, { idle_seconds: '60' }],
      ...[{ wait_seconds: -1 }, { wait_seconds: 121 }, { idle_ms: 5 }],
    ])
      expect(await set(wrong), JSON.stringify(wrong)).toMatchObject({ status: 400 });
    const viewer = await organisation.addOwner('viewer');
    const path = `/owner/connections/${id}/settings`;
    expect(await organisation.ask('POST', path, { idle_seconds: 90 }, viewer)).toMatchObject({ status: 403 });
    expect(await (await world.organisation()).ask('POST', path, { idle_seconds: 90 })).toMatchObject({ status: 404 });
    expect((await set({ idle_seconds: 90, wait_seconds: 5 })).body).toMatchObject({
      idle_seconds: 90,
      wait_seconds: 5,
    });
    const { body } = await organisation.ask('GET', '/owner/audit?reason=connection_changed');
    expect(body.rows[0]).toMatchObject({
      connection_id: id,
      flags: { change: { label: 'demo-main', idle_ms: 90_000, wait_ms: 5_000, by: organisation.owner.id } },
    });
  });
});
