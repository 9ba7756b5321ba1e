/** Devices with Web Push: who may add which, what is sent, to whom, and the handling of the push service's answers. */
import { beforeEach, describe, expect, test } from 'vitest';
import { expectStatus } from '../world/agent.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { startPushService, subscribe } from '../world/servers/push-service.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { CANARY, fresh, givenWorld, shared, WRITE } from '../world/world.ts';

const HOSTILE = 'pay\u202e\u0007<b>now</b>\n[Approve](https://evil.example)';

describe.each(ONE_STORE)(`web push on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const service = shared(() => startPushService(world));
  const organisation = fresh(() => world.demoOrganisation());
  const agent = fresh(() => organisation.agent({ name: 'triage' }));
  const viewer = fresh(() => organisation.addOwner('viewer'));

  beforeEach(() => {
    service.pushed.length = 0;
    service.answer = undefined;
  });

  const add = (json: object, by = organisation.owner) =>
    organisation.ask('POST', '/owner/push-subscriptions', { ...json, device_name: 'Phone' }, by);
  const devices = async (by = organisation.owner) =>
    (await organisation.ask('GET', '/owner/push-subscriptions', undefined, by)).body.subscriptions;
  const hold = (more: object = {}) => agent.hold({ ...WRITE, ...more });

  test('a held call reaches the device encrypted, signed by the key of its subscription, and its outcome replaces it', async () => {
    const phone = subscribe(service);
    const added = await expectStatus(201, add(phone.json));
    for (const secret of [phone.json.endpoint, phone.json.keys.auth, phone.json.keys.p256dh])
      expect(added.text).not.toContain(secret);
    const { public_key: key } = (await organisation.ask('GET', '/owner/push-subscriptions')).body;
    const began = Date.now();
    const id = await hold({ data: { title: 'SECRET-BODY' } });
    const [first] = await service.waitFor(1);
    expect(Date.now() - began).toBeLessThan(scaledTimeout(2_000));
    expect(phone.json.endpoint.endsWith(first!.path)).toBe(true);
    expect(first!.key).toBe(key);
    expect(first!.claims.aud).toBe(service.origin);
    expect(first!.claims.sub).toMatch(/^(mailto:|https:)/);
    const left = Number(first!.claims.exp) - Date.now() / 1000;
    expect(left > 0 && left <= 24 * 3600).toBe(true);
    expect(first!.headers).toMatchObject({ 'content-encoding': 'aes128gcm', urgency: 'high' });
    expect(first!.headers.topic).toMatch(/^[A-Za-z0-9_-]{1,32}$/);
    expect(Number(first!.headers.ttl)).toBeGreaterThan(24 * 3600 - 60);
    expect(Number(first!.headers.ttl)).toBeLessThanOrEqual(24 * 3600);
    expect(first!.body.length).toBeLessThanOrEqual(4096);
    const message = phone.read(first!.body);
    expect(message).toEqual({
      tag: id,
      step: 'first',
      title: 'Approval needed',
      sentence: expect.stringContaining('/items'),
      agent: 'triage',
      until: expect.stringMatching(/Z$/),
      path: `/approve/${id}`,
    });
    expect(JSON.stringify(message)).not.toContain(CANARY);
    await organisation.deny(id);
    const [, outcome] = await service.waitFor(2);
    expect(outcome!.headers.topic).toBe(first!.headers.topic);
    expect(phone.read(outcome!.body)).toMatchObject({
      tag: id,
      step: 'outcome',
      outcome: `Denied by ${organisation.owner.email}`,
    });
  });

  test('owners list, test and remove their own devices only, and everything is recorded', async () => {
    const [mine, theirs] = [subscribe(service), subscribe(service)];
    const { id } = (await add(mine.json)).body;
    const { id: other } = (await add(theirs.json, viewer)).body;
    expect((await devices()).map((one: { id: string }) => one.id)).toEqual([id]);
    expect((await devices(viewer)).map((one: { id: string }) => one.id)).toEqual([other]);
    expect((await organisation.ask('GET', '/owner/channels')).body.channels).toEqual([]);
    for (const [method, path, body] of [
      ['DELETE', other, undefined],
      ['POST', `${other}/test`, {}],
      ['POST', `${other}/settings`, {}],
    ] as const)
      expect((await organisation.ask(method, `/owner/push-subscriptions/${path}`, body)).status).toBe(404);
    expect((await organisation.ask('DELETE', `/owner/channels/${other}`)).status).toBe(404);
    const tried = await organisation.ask('POST', `/owner/push-subscriptions/${id}/test`, {});
    expect(tried.body.ok, tried.text).toBe(true);
    expect(mine.read((await service.waitFor(1))[0]!.body)).toMatchObject({ title: 'Test notice', path: '/console' });
    expect((await organisation.ask('DELETE', `/owner/push-subscriptions/${id}`)).status).toBe(200);
    expect(await devices()).toEqual([]);
    const { rows } = (await organisation.ask('GET', '/owner/audit')).body;
    const reasons = rows.map((row: { reason: string }) => row.reason);
    for (const reason of ['push_device_added', 'push_device_tested', 'push_device_removed'])
      expect(reasons).toContain(reason);
    expect(JSON.stringify(rows)).not.toContain(mine.json.endpoint);
  });

  test('the same browser again is one device, of the owner who signed in there last', async () => {
    const phone = subscribe(service);
    await add(phone.json);
    await add(phone.json);
    expect(await devices()).toHaveLength(1);
    await add(phone.json, viewer);
    expect(await devices()).toHaveLength(0);
    expect(await devices(viewer)).toHaveLength(1);
    await hold();
    await service.waitFor(1);
  });

  test('the rules of a device select its notices', async () => {
    const phone = subscribe(service);
    const { id } = (await add(phone.json)).body;
    const rules = { events: ['agent_suspended'] };
    const changed = await organisation.ask('POST', `/owner/push-subscriptions/${id}/settings`, rules);
    expect(changed.body.rules, changed.text).toEqual(rules);
    const quiet = { from: '00:00', to: '00:00', zone: 'UTC' };
    const refused = await organisation.ask('POST', `/owner/push-subscriptions/${id}/settings`, { quiet });
    expect([refused.status, refused.body.detail]).toEqual([400, expect.stringContaining('nothing would ever be sent')]);
    await hold();
    await organisation.ask('POST', `/owner/agents/${agent.agentId}/suspend`, {});
    await service.waitFor(1);
    expect(service.pushed.map(({ body }) => phone.read(body).title)).toEqual(['Agent suspended']);
  });

  test.each([404, 410])('a device for which the service answers %d is removed', async (status) => {
    await add(subscribe(service).json);
    service.answer = { status };
    await hold();
    await expect.poll(async () => (await devices()).length).toBe(0);
    service.answer = undefined;
    await hold();
    expect(service.pushed).toHaveLength(1);
  });

  test('a message that is too large is sent without its sentence; after a 429 the next is sent when the service allows', async () => {
    const phone = subscribe(service);
    const { id } = (await add(phone.json)).body;
    service.answer = { status: 413 };
    const tried = await organisation.ask('POST', `/owner/push-subscriptions/${id}/test`, {});
    expect(tried.body).toEqual({ ok: false, detail: 'It answered 413.' });
    expect(service.pushed.map(({ body }) => phone.read(body).sentence === '')).toEqual([false, true]);
    expect(service.pushed[1]!.body.length).toBeLessThan(1_000);
    service.pushed.length = 0;
    service.answer = { status: 429, headers: { 'retry-after': '2' } };
    await hold();
    await service.waitFor(1);
    service.answer = undefined;
    const since = Date.now();
    await expect.poll(async () => (await devices())[0]?.status).toBe('failing');
    await service.waitFor(2);
    expect(Date.now() - since).toBeGreaterThan(1_500);
    await expect.poll(async () => (await devices())[0]?.status).toBe('active');
  });

  test('a hostile name is one line of text with hidden characters made visible', async () => {
    const phone = subscribe(service);
    await add(phone.json);
    const hostile = await organisation.agent({ name: HOSTILE });
    await hostile.act({ ...WRITE, data: { title: HOSTILE } });
    const { agent: name } = phone.read((await service.waitFor(1))[0]!.body);
    expect(name).toContain('⟦U+202E⟧');
    expect(name).not.toMatch(/[\n\u202e\u0007]/);
  });

  test.each([
    [{ endpoint: 'http://push.example/x' }, 'https'],
    [{ endpoint: 'https://127.0.0.1/x' }, 'public'],
    [{ endpoint: 'https://[::1]/x' }, 'public'],
    [{ endpoint: 'https://10.0.0.7/x' }, 'public'],
    [{ endpoint: 'https://169.254.169.254/latest' }, 'public'],
    [{ endpoint: 'https://localhost/x' }, 'public'],
    [{ endpoint: 'https://user@push.example/x' }, 'user name'],
    [{ endpoint: 'nothing' }, 'endpoint'],
    [{ keys: { p256dh: 'AAAA', auth: 'AAAAAAAAAAAAAAAAAAAAAA' } }, 'p256dh'],
    [{ keys: { p256dh: Buffer.alloc(65, 4).toString('base64url'), auth: 'AAAAAAAAAAAAAAAAAAAAAA' } }, 'p256dh'],
  ])('%j is refused with an explanation', async (wrong, word) => {
    const refused = await expectStatus(400, add({ ...subscribe(service).json, ...wrong }));
    expect(refused.text).toContain(word);
    expect(await devices()).toEqual([]);
  });

  test('a name that resolves to an internal address gets no message, and the device shows why', async () => {
    const phone = subscribe(service);
    // Resolved at each message: the service of this test is the only one on loopback that may be reached.
    const inward = new URL(phone.json.endpoint);
    inward.port = new URL(world.running.baseUrl).port;
    const { id } = (await add({ ...phone.json, endpoint: inward.href })).body;
    const { ok, detail } = (await organisation.ask('POST', `/owner/push-subscriptions/${id}/test`, {})).body;
    expect(ok).toBe(false);
    expect(detail).not.toContain('127.0.0.1');
    expect((await devices())[0]).toMatchObject({ status: 'failing', last_error: detail });
  });

  test('an owner has at most twenty devices', async () => {
    for (let i = 0; i < 20; i++) expect((await add(subscribe(service).json)).status).toBe(201);
    const refused = await expectStatus(409, add(subscribe(service).json));
    expect(refused.text).toContain('remove one');
  });

  test('a removed owner gets no messages', async () => {
    await add(subscribe(service).json, viewer);
    expect((await organisation.ask('DELETE', `/owner/owners/${viewer.id}`)).status).toBe(200);
    const phone = subscribe(service);
    await add(phone.json);
    await hold();
    await service.waitFor(1);
    expect(service.pushed.map(({ path }) => phone.json.endpoint.endsWith(path))).toEqual([true]);
  });
});
