/** Changing the manifest of an organisation's own platform: in force immediately, recorded, and never over a version that the owner has not seen. */
import { beforeEach, describe, expect, test } from 'vitest';
import { expectStatus } from '../world/agent.ts';
import { leaksOf } from '../world/canary.ts';
import { expectDenied, expectEnvelope, verifyReceipt } from '../world/evidence.ts';
import { everythingStored } from '../world/store-contents.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { CANARY, DEMO_SCOPES, fresh, givenWorld, READ, WRITE } from '../world/world.ts';

const CLIENT_SECRET = 'CANARY-client-0123456789-abcdefghij';

describe.each(STORES)(`changing a platform on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = fresh(() => world.demoOrganisation());
  const ask = (method: string, path: string, body?: unknown) => organisation.ask(method, path, body);
  const entry = (more: object = {}) => ({
    kind: 'rest',
    base_url: `${world.upstream.url}/v1`,
    auth: { type: 'bearer' },
    scopes: DEMO_SCOPES,
    ...more,
  });
  const change = (more: object, version = 1, rest: object = {}) =>
    ask('POST', '/owner/platforms/demo', { entry: entry(more), version, ...rest });
  const version = async () => (await ask('GET', '/owner/platforms/demo')).body.version;
  const events = async () =>
    (await ask('GET', '/owner/audit?kind=event')).body.rows.filter(
      ({ reason }: { reason: string }) => reason === 'platform_changed',
    );
  beforeEach(() => {
    world.upstream.answer = undefined;
  });

  test('is in force at the next call, keeps the credential, and is recorded with the differences', async () => {
    const agent = await organisation.agent();
    // A revoked agent keeps its grants, and is not counted.
    const revoked = await organisation.agent();
    await expectStatus(200, organisation.ask('POST', `/owner/agents/${revoked.agentId}/revoke`, {}));
    expect((await agent.act(READ)).status).toBe(200);
    expect(world.upstream.seen.at(-1)?.headers.authorization).toBe(`Bearer ${CANARY}`);
    const changed = await change({
      name: 'The CRM',
      base_url: `${world.upstream.url}/v2`,
      auth: { type: 'header', name: 'X-Api-Key' },
      scopes: { 'demo:read': ['GET /items'], 'demo:delete': DEMO_SCOPES['demo:delete'] },
    });
    expect(changed.status, changed.text).toBe(200);
    expect(changed.body).toMatchObject({ platform_id: 'demo', name: 'The CRM', version: 2, suspended: false });
    const changes = [
      `base_url: ${world.upstream.url}/v1 → ${world.upstream.url}/v2`,
      'auth: {"type":"bearer"} → {"type":"header","name":"X-Api-Key"}',
      'name: none → The CRM',
      'scope demo:read: − GET /items/*',
      'scope demo:write: removed',
    ];
    expect(changed.body.changes).toEqual(changes);
    expect(changed.body.warnings).toEqual([
      'The credential of its connection stays and may not fit another auth: test, and replace or connect again.',
      'The scope demo:write is removed, and an agent holds it: it no longer allows anything.',
    ]);
    expect((await agent.act(READ)).status).toBe(200);
    const { target, headers } = world.upstream.seen.at(-1)!;
    expect([target, headers['x-api-key'], headers.authorization]).toEqual(['/v2/items', CANARY, undefined]);
    await expectDenied(world, agent, WRITE, 'endpoint_scope_mismatch');
    const [event, ...others] = await events();
    expect(others).toEqual([]);
    const { payload } = await verifyReceipt(world, (await ask('GET', `/v1/audit/${event.id}/receipt`)).body.receipt);
    expect(payload).toMatchObject({
      reason: 'platform_changed',
      platform: 'demo',
      change: { version: 2, changes, by: organisation.owner.id, how: 'api' },
    });
    // A governance file with the same content plans no change.
    const { text } = (await ask('GET', '/owner/governance')).body;
    expect(text).toContain('X-Api-Key');
    const planned = await expectStatus(200, ask('POST', '/owner/governance/plan', { text }));
    expect(planned.body.changes.filter(({ kind }: { kind: string }) => kind === 'platform')).toEqual([]);
  });

  test('a change based on an old version is refused, and of concurrent changes one succeeds', async () => {
    const answers = await Promise.all(Array.from({ length: 5 }, (_, at) => change({ name: `Name ${at}` })));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409, 409]);
    const refused = answers.find(({ status }) => status === 409)!;
    expectEnvelope(refused, 409, 'conflict');
    expect(refused.body).toMatchObject({ version: 2, detail: expect.stringContaining('Version 2 is in force, not 1') });
    expect([await version(), (await events()).length]).toEqual([2, 1]);
    expectEnvelope(await change({ name: 'Later' }, 3), 409, 'conflict');
    expect((await change({ name: 'Later' }, 2)).status).toBe(200);
  });

  test('a dry run, and an unchanged manifest, change nothing and record no event', async () => {
    const tried = await expectStatus(200, change({ base_url: 'https://elsewhere.example' }, 1, { dry_run: true }));
    expect(tried.body).toMatchObject({
      version: 1,
      base_url: `${world.upstream.url}/v1`,
      changes: [`base_url: ${world.upstream.url}/v1 → https://elsewhere.example`],
      warnings: ['The credential of its connection is sent to https://elsewhere.example from the next call on.'],
    });
    expect((await change({})).body).toMatchObject({ version: 1, changes: [], warnings: [] });
    expect([await version(), await events()]).toEqual([1, []]);
  });

  test('a standing approval no longer applies, and a pending call is decided by the new manifest', async () => {
    const agent = await organisation.agent();
    const standing = { count: 5, for_seconds: 3600, free: [] };
    expect((await ask('POST', `/owner/approvals/${await agent.hold(WRITE)}/approve`, { standing })).status).toBe(200);
    expect((await agent.act(WRITE)).status).toBe(200);
    expect((await change({ name: 'Another' })).status).toBe(200);
    expect((await agent.act(WRITE)).status).toBe(202);
    const held = await agent.hold(WRITE);
    const { 'demo:write': _, ...scopes } = DEMO_SCOPES;
    expect((await change({ scopes }, 2)).status).toBe(200);
    const seen = world.upstream.seen.length;
    await ask('POST', `/owner/approvals/${held}/approve`, {});
    await expect
      .poll(async () => (await ask('GET', `/owner/approvals/${held}`)).body.execution_error)
      .toContain('endpoint_scope_mismatch');
    expect(world.upstream.seen.length).toBe(seen);
  });

  test('secrets that its auth references are kept, replaced and deleted, and never shown', async () => {
    const secret = { env: 'CRM_SECRET' };
    const auth = { type: 'oauth2', issuer: 'https://id.example', client_id: 'abc', client_secret: secret };
    const missing = await change({ auth });
    expectEnvelope(missing, 400, 'invalid_request');
    expect(missing.body.detail).toContain('secrets.client_secret: is missing');
    const stored = () => world.db.selectFrom('platform_secrets').select('value').execute();
    const given = await change({ auth }, 1, { secrets: { client_secret: CLIENT_SECRET } });
    expect(given.body.changes, given.text).toContain('auth.client_secret: given');
    const [first] = await stored();
    const kept = await change({ auth, name: 'Same secret' }, 2);
    expect([kept.status, kept.body.changes], kept.text).toEqual([200, ['name: none → Same secret']]);
    expect(await stored()).toEqual([first]);
    const replaced = await change({ auth, name: 'Same secret' }, 3, {
      secrets: { client_secret: `${CLIENT_SECRET}2` },
    });
    // The manifest is unchanged, so its version stays.
    expect(replaced.body, replaced.text).toMatchObject({ version: 3, changes: ['auth.client_secret: changed'] });
    expect(await stored()).not.toEqual([first]);
    const unasked = await change({}, 3, { secrets: { client_secret: CLIENT_SECRET } });
    expect(unasked.body.detail).toContain('secrets.client_secret: is not referenced');
    const back = await change({}, 3);
    expect(back.body.changes, back.text).toContain('auth.client_secret: removed');
    expect(await stored()).toEqual([]);
    for (const [place, bytes] of await everythingStored(world.environment))
      expect([place, leaksOf(CLIENT_SECRET, bytes)]).toEqual([place, []]);
  });

  test('an invalid manifest is refused with all problems, and nothing is changed', async () => {
    const refused = await change({ base_url: 'crm.example', auth: { type: 'magic' }, colour: 'red' });
    expectEnvelope(refused, 400, 'invalid_request');
    expect(refused.body.problems.map((one: string) => one.split(':')[0])).toEqual(
      expect.arrayContaining(['entry.base_url', 'entry.auth.type', 'entry']),
    );
    for (const body of [{ entry: entry() }, { version: 1 }, { entry: [], version: 1 }, { entry: entry(), version: 0 }])
      expectEnvelope(await ask('POST', '/owner/platforms/demo', body), 400, 'invalid_request');
    expectEnvelope(await change({ suspended: true }), 400, 'invalid_request');
    expect([await version(), await events()]).toEqual([1, []]);
  });

  test('a built-in platform keeps its manifest, and an own platform cannot become built-in', async () => {
    const builtIn = { use: 'github', base_url: world.upstream.url };
    expect((await ask('POST', '/owner/platforms', { platform: 'code', entry: builtIn })).status).toBe(201);
    const { manifest } = (await ask('GET', '/owner/platforms/code')).body;
    for (const entry of [
      { ...manifest, name: 'Ours' },
      { ...builtIn, name: 'Ours' },
    ]) {
      const refused = await ask('POST', '/owner/platforms/code', { entry, version: 1 });
      expectEnvelope(refused, 409, 'conflict');
      expect(refused.body.detail).toContain('built-in platform github');
      expect(refused.body.detail).toContain('governance file');
    }
    const becomes = await ask('POST', '/owner/platforms/demo', { entry: builtIn, version: 1 });
    expectEnvelope(becomes, 400, 'invalid_request');
    expect(becomes.body.detail).toContain('built-in platform github');
    expect(await version()).toBe(1);
  });

  test('refused without the right, for another organisation’s platform, and for an unknown one', async () => {
    const other = await world.demoOrganisation();
    await other.platform({ id: 'theirs' });
    for (const role of ['viewer', 'approver'] as const) {
      const owner = await organisation.addOwner(role);
      const body = { entry: entry({ name: 'Mine' }), version: 1 };
      expectEnvelope(await organisation.ask('POST', '/owner/platforms/demo', body, owner), 403, 'forbidden');
    }
    for (const id of ['theirs', 'none', '%00'])
      expectEnvelope(await ask('POST', `/owner/platforms/${id}`, { entry: entry(), version: 1 }), 404, 'not_found');
    expect([await version(), await events()]).toEqual([1, []]);
  });
});
