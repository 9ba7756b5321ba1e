/** How long answers of a connection may be silent, and how long its requests wait for a person: settings of the connection. */
import { beforeAll, describe, expect, test } from 'vitest';
import { findAuditRow } from '../../broker/store/audit.ts';
import type { TestAgent } from '../world/agent.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { DEMO_RULES, type Organisation, startWorld, type World } from '../world/world.ts';
import { rawClient } from './raw-client.ts';

describe.each(ONE_STORE)(`settings of a connection on %s${postgresNote}`, (store) => {
  let world: World;
  let organisation: Organisation;
  let agent: TestAgent;
  let id: string;
  beforeAll(async () => {
    world = await startWorld(store);
    organisation = await world.organisation();
    await organisation.platform();
    id = (await organisation.ask('GET', '/owner/connections')).body.connections[0].id;
    await organisation.platform({ id: 'patient' });
    agent = await organisation.agent({ rules: DEMO_RULES, grants: { demo: {}, patient: {} } });
  });
  const ask = rawClient(() => agent);
  const set = (settings: unknown) => organisation.ask('POST', `/owner/connections/${id}/settings`, settings);
  /** An answer whose second event comes after so long. */
  const silentFor = (ms: number) => {
    world.upstream.answer = (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: one\n\n');
      setTimeout(() => response.end('data: two\n\n'), ms);
    };
  };
  const readStream = async (connection: string) => {
    const response = await fetch(`${agent.baseUrl}/proxy/${connection}/items`, {
      headers: { authorization: `Bearer ${agent.token()}` },
    });
    const text = await response.text().catch(() => 'cut');
    return { text, auditId: response.headers.get('x-svc-audit-id') ?? '' };
  };

  test('a silent answer is cut after idle_seconds, from the next call on', async () => {
    silentFor(2_300);
    expect((await set({ idle_seconds: 1 })).body).toMatchObject({ idle_seconds: 1, wait_seconds: null });
    const [cut, whole] = await Promise.all([readStream('demo-main'), readStream('patient-main')]);
    world.upstream.answer = undefined;
    expect([cut.text, whole.text]).toEqual(['cut', 'data: one\n\ndata: two\n\n']);
    const row = await findAuditRow(world.running.broker.store.db, organisation.id, cut.auditId);
    expect(JSON.parse(row?.flags ?? '{}')).toMatchObject({ ended: 'idle' });
    expect((await set({ idle_seconds: null })).body).toMatchObject({ idle_seconds: null });
  });

  test('a held request waits wait_seconds, unless it says itself', async () => {
    await set({ wait_seconds: 0 });
    const begun = performance.now();
    const write = (n: number, headers: Record<string, string> = {}) =>
      ask('POST', '/proxy/demo-main/items', { body: JSON.stringify({ n }), headers });
    const refused = await write(1);
    expect(refused).toMatchObject({ status: 403, body: { error: 'approval_pending' } });
    expect(performance.now() - begun).toBeLessThan(5_000);
    await set({ wait_seconds: 120 });
    const waiting = write(2);
    const joined = await write(2, { 'x-svc-wait': '0' });
    await organisation.ask('POST', `/owner/approvals/${joined.body.approval_id}/approve`, {});
    expect(await waiting).toMatchObject({ status: 200, body: { body: '{"n":2}' } });
    await set({ wait_seconds: null });
  });

  test('are changed by admins, within bounds, and on record', async () => {
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
