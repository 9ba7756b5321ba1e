/** The operator closes one organisation of a broker: nothing of it acts any more, no credential is left, and its record stays. */
import { beforeAll, describe, expect, test } from 'vitest';
import { closeOrganisation } from '../../broker/admin/organisations/close-organisation.ts';
import { readConfig } from '../../broker/environment/config.ts';
import { SEALED } from '../../broker/store/sealed.ts';
import { expectStatus, jsonPost, send, type TestAgent } from '../world/agent.ts';
import { furnish, storedRows } from '../world/full-organisation.ts';
import { startAuditReceiver } from '../world/servers/audit-receiver.ts';
import { type Organisation, startWorld, type World } from '../world/world.ts';

/** Held calls, answers, unfinished sign-ins and revocations, which have their own ends; and the key of the hashes by which the record names people. */
const RECORD = new Set<string>([
  'approvals',
  'standing_approvals',
  'idempotency_keys',
  'oauth_flows',
  'person_keys',
  'token_revocations',
]);

const close = ({ running }: World, id: string, body: object = {}) => {
  const authorization = `Bearer ${running.services.local.token.reveal()}`;
  return send(`${running.baseUrl}/owner/organisations/${id}/close`, jsonPost(body, { authorization }));
};
/** Does the steps until no agent is left. */
const closing = async (world: World, { id }: Organisation, body: object = {}) => {
  for (let step = 0; step < 10; step++) {
    const { status, body: now } = await close(world, id, body);
    expect(status, JSON.stringify(now)).toBe(200);
    if (!now.agents_left) return now;
  }
  throw new Error('agents are left after ten steps');
};

describe('POST /owner/organisations/{id}/close', () => {
  let world: World;
  let alpha: Organisation;
  let beta: Organisation;
  let agents: { alpha: TestAgent; beta: TestAgent };
  const read = (name: 'alpha' | 'beta') =>
    agents[name].act({ platform: `${name}-platform`, endpoint: '/items', method: 'GET', scope: 'demo:read' });
  beforeAll(async () => {
    world = await startWorld();
    const first = await furnish(world, 'alpha');
    const second = await furnish(world, 'beta');
    [alpha, beta] = [first.organisation, second.organisation];
    agents = { alpha: first.agent, beta: second.agent };
  });

  test('refuses the oldest organisation, an unknown one, and owners', async () => {
    expect(await close(world, alpha.id)).toMatchObject({ status: 409, body: { error: 'conflict' } });
    expect(await close(world, crypto.randomUUID())).toMatchObject({ status: 404 });
    expect(await beta.ask('POST', `/owner/organisations/${beta.id}/close`, {})).toMatchObject({ status: 401 });
    expect((await read('beta')).status).toBe(200);
  });

  test('ends agents, connections and credentials, and leaves the others as they are', async () => {
    const of = async ({ id }: Organisation) => {
      const counts = new Map<string, number>();
      for (const { table } of await storedRows(world.db, id)) counts.set(table, (counts.get(table) ?? 0) + 1);
      return Object.fromEntries(counts);
    };
    const before = await of(alpha);
    const sink = { name: 'beta-sink', behind: expect.any(Number) };
    expect(await closing(world, beta)).toEqual({ id: beta.id, closed: false, agents_left: false, sinks: [sink] });
    expect(await closing(world, beta, { drop_sinks: true })).toMatchObject({ closed: true });
    const rows = await storedRows(world.db, beta.id);
    expect((await close(world, beta.id)).body).toEqual({ id: beta.id, closed: true, agents_left: false, sinks: [] });

    expect(await read('beta')).toMatchObject({ status: 403, body: { error: 'agent_halted' } });
    const statuses = rows.filter(({ table }) => table === 'agents').map(({ row }) => row.status);
    expect(new Set(statuses)).toEqual(new Set(['revoked']));
    expect(await of(alpha)).toEqual(before);
    expect((await read('alpha')).status).toBe(200);
    const left = SEALED.filter(({ table }) => !RECORD.has(table)).flatMap(({ table, column }) =>
      rows.filter((one) => one.table === table && one.row[column] !== null && one.row[column] !== '').map(() => table),
    );
    expect(left).toEqual([]);
    const kept = new Set(rows.map(({ table }) => table));
    for (const table of ['connections', 'pipelines', 'audit_sinks', 'invites'])
      expect(kept.has(table), table).toBe(false);
  });

  test('its people can read the record, and change nothing', async () => {
    const activity = await expectStatus(200, beta.ask('GET', '/owner/audit?limit=100'));
    const reasons = activity.body.rows.map(({ reason }: { reason: string }) => reason);
    expect(reasons).toEqual(
      expect.arrayContaining(['all_agents_stopped', 'agent_revoked', 'connection_removed', 'organisation_closed']),
    );
    expect(await beta.ask('POST', '/owner/organisation', { name: 'gamma' })).toMatchObject({ status: 403 });
  });
});

test('an audit sink is removed once it has sent all rows', async () => {
  const receiver = await startAuditReceiver();
  const world = await startWorld('sqlite', { AGENT_BROKER_ALLOW_PRIVATE: receiver.address });
  await world.organisation();
  const beta = await world.organisation({ name: 'beta' });
  const sink = { name: 'siem', from: 'beginning', kind: 'webhook', format: 'json', url: `${receiver.url}/in` };
  expect((await beta.ask('POST', '/owner/audit-sinks', sink)).status).toBe(201);
  expect(await closing(world, beta)).toMatchObject({ closed: false, sinks: [{ name: 'siem' }] });
  await expect.poll(() => closing(world, beta), { timeout: 15_000 }).toMatchObject({ closed: true, sinks: [] });
  expect(receiver.rows().map(({ reason }) => reason)).toContain('organisation_closed');
});

test('the organisation in which groups give roles is not closed', async () => {
  const world = await startWorld();
  await world.organisation();
  const beta = await world.organisation({ name: 'beta' });
  const groups = { OIDC_ISSUER: 'https://id.example', OIDC_CLIENT_ID: 'broker', OIDC_CLIENT_SECRET: 'secret' };
  const roles = { OIDC_ROLES: '{"admin":["admins"]}', OIDC_ROLES_ORGANISATION: beta.id };
  const { oidc } = readConfig({ ...world.environment, ...groups, ...roles });
  const { broker } = world.running;
  const services = { ...world.running.services, broker: { ...broker, config: { ...broker.config, oidc } } };
  const by = { owner: { id: 'operator', organisation_id: beta.id }, how: 'local', correlationId: 'closing' } as const;
  await expect(closeOrganisation(services, by, { dropSinks: false })).rejects.toThrow(/OIDC_ROLES_ORGANISATION/);
});

test('what an admin makes while it is being closed does not stay', async () => {
  const world = await startWorld();
  await world.organisation();
  const beta = await world.demoOrganisation();
  const { services } = world.running;
  const by = { owner: { id: 'operator', organisation_id: beta.id }, how: 'local', correlationId: 'closing' } as const;
  const record = async (entry: Parameters<typeof services.recorder.record>[0]) => {
    if (entry.row.reason === 'organisation_closed') await beta.platform({ id: 'late' });
    return await services.recorder.record(entry);
  };
  const recorder = { ...services.recorder, record: record as typeof services.recorder.record };
  const raced = { ...services, recorder };
  expect(await closeOrganisation(raced, by, { dropSinks: false })).toEqual({ agentsLeft: true, sinks: [] });
  expect(await closeOrganisation(services, by, { dropSinks: false })).toEqual({ agentsLeft: false, sinks: [] });
  expect((await beta.ask('GET', '/owner/connections')).body.connections).toEqual([]);
});
