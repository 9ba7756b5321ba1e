import { sql } from 'kysely';
import { beforeAll, describe, expect, test } from 'vitest';
import { makeMetrics } from '../../broker/telemetry/metrics.ts';
import { type Answer, send, type TestAgent } from '../world/agent.ts';
import { expectDeclared } from '../world/declared-routes.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { READ, startWorld, type World, WRITE } from '../world/world.ts';

const TOKEN = 'metrics-token-0123456789';
const STRANGER = { 'x-forwarded-for': '203.0.113.9' };

/** Parses the samples of an answer, by name with labels. */
function samplesOf({ text }: Answer): Map<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  );
}

const read = async (world: World): Promise<Map<string, number>> =>
  samplesOf(await send(`${world.running.baseUrl}/metrics`, {}));

test('platforms of one organisation do not use up the labels of others', async () => {
  const { platform, recorded, instruments } = makeMetrics();
  const record = (id: string, organisation: string) => {
    platform(id, organisation);
    recorded({ kind: 'action', result: 'allowed', reason: 'approved', platform_id: id });
  };
  for (let i = 0; i < 150; i++) record(`large-${i}`, 'large');
  for (const organisation of ['a', 'b', 'c', 'd', 'e'])
    for (let i = 0; i < 10; i++) record(`${organisation}-${i}`, organisation);
  const { values } = await instruments!.calls.get();
  const labels = values.map(({ labels: said }) => `${(said as { platform?: string }).platform}`.replace(/-.*/, ''));
  const count = (name: string) => labels.filter((label) => label === name).length;
  expect(['large', 'a', 'b', 'c', 'd', 'e', 'other'].map(count)).toEqual([100, 6, 6, 6, 6, 1, 1]);
});

describe.each(STORES)(`metrics on %s${postgresNote}`, (store) => {
  let world: World;
  let agent: TestAgent;
  beforeAll(async () => {
    world = await startWorld(store, { METRICS_TOKEN: TOKEN });
    const organisation = await world.organisation();
    await organisation.platform();
    agent = await organisation.agent();
  });

  test('calls are counted by result, reason and platform, and timed, without names of agents or people', async () => {
    const before = await read(world);
    expect((await agent.act(READ)).status).toBe(200);
    expect((await agent.act({ ...WRITE, method: 'PATCH', endpoint: '/items/1' })).status).toBe(200);
    expect((await agent.act({ ...READ, scope: 'demo:delete' })).status).toBe(403);
    expect((await agent.act({ ...READ, platform: 'no-such-platform' })).status).toBe(403);
    const text = (await send(`${world.running.baseUrl}/metrics`, {})).text;
    const after = await read(world);
    const more = (name: string) => (after.get(name) ?? 0) - (before.get(name) ?? 0);
    const allowed = [...after.keys()].filter((name) => name.startsWith('agent_broker_calls_total{result="allowed"'));
    expect(allowed).toHaveLength(1);
    expect(allowed[0]).toMatch(/,platform="demo"}$/);
    expect(more(allowed[0] ?? '')).toBe(2);
    const denied = [...after.keys()].filter((name) => name.startsWith('agent_broker_calls_total{result="denied"'));
    expect(denied.map((name) => /platform="([^"]*)"/.exec(name)?.[1]).sort()).toEqual(['demo', 'other']);
    expect(more('agent_broker_call_duration_seconds_count{part="total"}')).toBe(4);
    expect(more('agent_broker_upstream_duration_seconds_count{platform="demo"}')).toBe(2);
    expect(more('agent_broker_audit_group_rows_sum')).toBeGreaterThan(0);
    for (const said of [agent.agentId, 'no-such-platform', 'CANARY']) expect(text).not.toContain(said);
  });

  test('held calls, and failures of a platform, are counted', async () => {
    const { upstream } = world;
    upstream.answer = (_request, response) => response.writeHead(503).end();
    expect((await agent.act(READ)).status).toBe(200);
    upstream.answer = undefined;
    const samples = await read(world);
    expect(samples.get('agent_broker_upstream_failures_total{platform="demo",code="status_5xx"}')).toBe(1);
    expect(samples.get('agent_broker_approvals_pending')).toBe(0);
    expect(samples.get('agent_broker_store_up')).toBe(1);
    expect(samples.get('agent_broker_outcome_unknown_total')).toBe(0);
    expect(samples.get('process_open_fds')).toBeGreaterThan(0);
    const own = store === 'postgres' ? 'agent_broker_pool_connections_most' : 'agent_broker_sqlite_bytes';
    expect(samples.get(own)).toBeGreaterThan(0);
    for (const use of ['evidence', 'issuing', 'root', 'session'])
      expect(samples.get(`agent_broker_key_age_seconds{use="${use}"}`)).toBeGreaterThanOrEqual(0);
  });

  test('metrics are readable only with the operator’s token', async () => {
    const url = `${world.running.baseUrl}/metrics`;
    const ask = async (headers: Record<string, string>) => {
      const answer = await send(url, { headers });
      expectDeclared('GET', '/metrics', answer);
      return [answer.status, answer.body?.error];
    };
    const bearer = (token: string) => ({ ...STRANGER, authorization: `Bearer ${token}` });
    expect(await ask(STRANGER)).toEqual([401, 'missing_token']);
    expect(await ask(bearer('metrics-token-012345678'))).toEqual([401, 'invalid_token']);
    const read = await send(url, { headers: bearer(TOKEN) });
    expectDeclared('GET', '/metrics', read);
    expect(read.text).toContain('agent_broker_build_info{version="');
  });
});

test('metrics without a token are readable from this machine only', async () => {
  const world = await startWorld('sqlite');
  const url = `${world.running.baseUrl}/metrics`;
  expect((await send(url, { headers: STRANGER })).status).toBe(404);
  expect((await send(url, {})).status).toBe(200);
});

test('metrics are available while the store is not', async () => {
  const world = await startWorld('sqlite');
  await sql`drop table notices`.execute(world.db);
  const samples = await read(world);
  expect(samples.get('agent_broker_approvals_pending')).toBeNaN();
  expect(samples.get('agent_broker_audit_failing')).toBe(0);
});

test('metrics can be switched off', async () => {
  const world = await startWorld('sqlite', { AGENT_BROKER_METRICS: 'off' });
  expect((await send(`${world.running.baseUrl}/metrics`, {})).status).toBe(404);
});
