/** The data that the approval page can read with its link alone. */
import { describe, expect, test } from 'vitest';
import { uuidv4 } from '../../broker/crypto/ids.ts';
import { expectStatus, send } from '../world/agent.ts';
import { leaksOf } from '../world/canary.ts';
import { childOf } from '../world/child.ts';
import { expectEnvelope, withoutCalls } from '../world/evidence.ts';
import { enrol } from '../world/passkeys.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { DAY_MS } from '../world/times.ts';
import { CANARY, givenWorld, shared, startWorld } from '../world/world.ts';

const WORDS = 'because-the-customer-asked';
const WRITE = {
  platform: 'demo',
  endpoint: '/items?notify=1',
  method: 'POST',
  scope: 'demo:write',
  data: { title: 'content-of-the-body', to: 'ann@acme.example' },
  headers: { 'X-Kept': 'kept', Cookie: 'not-sent' },
  reason: WORDS,
};

describe.each(ONE_STORE)(`GET /approve/{id}/request on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() =>
    world.demoOrganisation({ manifest: { name: 'The shop', recipients: { 'POST /items': ['/to'] } } }),
  );
  const agent = shared(() => organisation.agent());

  async function hold(): Promise<string> {
    const answer = await expectStatus(
      202,
      withoutCalls(world, () => agent.act(WRITE)),
    );
    return answer.body.approval_id;
  }
  const shown = (id: string, query = '') => send(`${world.running.baseUrl}/approve/${id}/request${query}`, {});

  test('while pending: the exact request, the agent, why it was held, and the time left', async () => {
    const id = await hold();
    const answer = await expectStatus(200, shown(id));
    expect(answer.body).toMatchObject({
      status: 'pending',
      expires_at: expect.any(String),
      expires_in_seconds: expect.any(Number),
      agent: { name: 'triage', agent_id: agent.agentId, parent: null, suspended: false, ended: false },
      platform: 'demo',
      platform_name: 'The shop',
      platform_suspended: false,
      connection: 'demo-main',
      scope: 'demo:write',
      reason: WORDS,
      held_because: {
        reason: 'approval_required_by_policy',
        rules: [{ source: 'policy', effect: 'require_approval' }],
      },
      request_hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      request: {
        method: 'POST',
        endpoint: '/items?notify=1',
        body: WRITE.data,
        headers: { 'x-kept': 'kept' },
        recipients: ['ann@acme.example'],
      },
    });
    expect(answer.body.expires_in_seconds).toBeGreaterThan(80_000);
    const owners = await organisation.ask('GET', `/owner/approvals/${id}`);
    expect(answer.body.request).toEqual(owners.body.request);
    expect(answer.body.request_hash).toBe(owners.body.request_hash);
  });

  test('it shows that the agent, or the parent of a child, is suspended', async () => {
    const parent = await organisation.agent({ name: 'parent' });
    const child = await childOf(world, organisation, parent);
    const ids = [parent, child].map((one) => one.hold(WRITE));
    const suspended = async (id: string) => [
      (await shown(id)).body.agent.suspended,
      (await organisation.ask('GET', `/owner/approvals/${id}`)).body.agent.suspended,
    ];
    for (const id of ids) expect(await suspended(await id)).toEqual([false, false]);
    await organisation.ask('POST', `/owner/agents/${parent.agentId}/suspend`, {});
    for (const id of ids) expect(await suspended(await id)).toEqual([true, true]);
  });

  test('owners see the platform’s name beside its id on all pages', async () => {
    const id = await hold();
    const named = { platform: 'demo', platform_name: 'The shop' };
    const of = async (path: string) => (await organisation.ask('GET', path)).body;
    expect(await of(`/owner/approvals/${id}`)).toMatchObject(named);
    expect((await of('/owner/approvals?status=pending')).approvals[0]).toMatchObject(named);
    const [row] = (await of('/owner/audit?limit=1')).rows;
    expect(row).toMatchObject({ platform_id: 'demo', platform_name: 'The shop' });
    const body = JSON.stringify({ platform: 'demo', scope: 'demo:delete', reason: WORDS });
    const reader = await organisation.agent({ name: 'reader', grants: { demo: { scopeList: ['demo:read'] } } });
    await reader.request('POST', '/v1/access-request', { headers: { 'content-type': 'application/json' }, body });
    const [asked] = (await of('/owner/access-requests?status=pending')).access_requests;
    expect(asked).toMatchObject(named);
    expect(await of(`/owner/access-requests/${asked.request_id}`)).toMatchObject(named);
    // Receipts and answers to agents stay unchanged.
    expect((await agent.get(`/v1/approvals/${id}`)).body).not.toHaveProperty('platform_name');
  });

  test('a request is omitted when the client sends its current hash as known', async () => {
    const id = await hold();
    const { body } = await shown(id);
    const again = await shown(id, `?known=${body.request_hash}`);
    expect(again.body).toMatchObject({ status: 'pending', request_hash: body.request_hash, passkeys: false });
    expect(again.body).not.toHaveProperty('request');
    for (const other of ['', 'x', 'f'.repeat(64)])
      expect((await shown(id, `?known=${other}`)).body.request).toEqual(body.request);
    expectEnvelope(await shown(id, '?known=a&known=b'), 400, 'invalid_request');
  });

  test('the answer is not cached, and its address is not sent as referrer', async () => {
    for (const answer of [await shown(await hold()), await shown(uuidv4())]) {
      expect(answer.headers.get('cache-control')).toBe('no-store');
      expect(answer.headers.get('referrer-policy')).toBe('no-referrer');
      expect(answer.headers.get('access-control-allow-origin')).toBeNull();
    }
  });

  test('neither the credential nor a dropped header is included', async () => {
    const { text } = await shown(await hold());
    expect(leaksOf(CANARY, text)).toEqual([]);
    expect(text).not.toContain('not-sent');
    expect(text.toLowerCase()).not.toContain('authorization');
  });

  test('an unknown id and a malformed one get the same 404', async () => {
    const answers = await Promise.all([uuidv4(), 'x', '..%2f', `${await hold()}0`].map((id) => shown(id)));
    for (const answer of answers) expectEnvelope(answer, 404, 'not_found');
    expect(new Set(answers.map(({ body }) => body.detail)).size).toBe(1);
  });

  test('the id may be in upper case', async () => {
    expect((await shown((await hold()).toUpperCase())).status).toBe(200);
  });

  test('it shows whether a passkey can approve, and nothing about which', async () => {
    const another = await world.organisation();
    await another.platform();
    const theirs = await another.agent();
    const held = await theirs.act(WRITE);
    const id = held.body.approval_id;
    expect((await shown(id)).body.passkeys).toBe(false);
    const authenticator = await enrol(world, another);
    const { body, text } = await shown(id);
    expect(body.passkeys).toBe(true);
    expect(text).not.toContain(authenticator.credentialId);
    const [passkey] = (await another.ask('GET', '/owner/passkeys')).body.passkeys;
    await another.ask('DELETE', `/owner/passkeys/${passkey.id}`);
    expect((await shown(id)).body.passkeys).toBe(false);
  });

  const contentOf = (text: string) =>
    [WORDS, 'content-of-the-body', 'ann@acme.example', 'triage', '/items'].filter((word) => text.includes(word));

  test('once approved and made: the state without content', async () => {
    const id = await hold();
    await organisation.approve(id, { note: 'a-word-to-the-agent' });
    const { body, text } = await shown(id);
    expect(body).toEqual({
      status: 'approved',
      expires_at: expect.any(String),
      decided_at: expect.any(String),
      executed_at: expect.any(String),
      execution_error: null,
      result_summary: expect.stringContaining('status 200'),
    });
    expect(contentOf(text)).toEqual([]);
    expect(text).not.toContain('a-word-to-the-agent');
  });

  test('once approved and not made: the reason', async () => {
    const id = await hold();
    await organisation.ask('POST', `/owner/agents/${agent.agentId}/suspend`, {});
    await organisation.approve(id);
    await organisation.ask('POST', `/owner/agents/${agent.agentId}/resume`, {});
    const { body } = await shown(id);
    expect(body).toMatchObject({ status: 'approved', executed_at: null });
    expect(body.execution_error).toContain('agent_suspended');
  });

  test('once denied: the state without content', async () => {
    const id = await hold();
    await organisation.deny(id, { note: 'a-word-to-the-agent' });
    const { body, text } = await shown(id);
    expect(body).toMatchObject({ status: 'denied', decided_at: expect.any(String), executed_at: null });
    expect(contentOf(text)).toEqual([]);
    expect(text).not.toContain('a-word-to-the-agent');
  });

  test('once expired: the state without content', async () => {
    const id = await hold();
    world.clock.skewMs = DAY_MS + 1_000;
    const { body, text } = await shown(id);
    expect(body).toMatchObject({ status: 'expired', decided_at: null, executed_at: null });
    expect(contentOf(text)).toEqual([]);
  });

  test('a request that was altered in the store is not shown', async () => {
    const id = await hold();
    await world.db
      .updateTable('approvals')
      .set({ action: Buffer.alloc(64) })
      .where('id', '=', id)
      .execute();
    const { status, body } = await shown(id);
    expect([status, body.status, body.request]).toEqual([200, 'pending', null]);
  });

  test('the agent gets the link of the page, and owners find it with the call', async () => {
    const held = await agent.act(WRITE);
    const url = `${world.running.baseUrl}/approve/${held.body.approval_id}`;
    expect(held.body.message).toContain(`An owner decides at ${url}.`);
    const { approvals } = (await organisation.ask('GET', '/owner/approvals?limit=1')).body;
    expect(approvals[0].approve_url).toBe(url);
    const one = (await organisation.ask('GET', `/owner/approvals/${held.body.approval_id}`)).body;
    expect([one.approve_url, one.agent.owned_by_me]).toEqual([url, true]);
    const other = await organisation.addOwner('approver');
    const theirs = await organisation.ask('GET', `/owner/approvals/${held.body.approval_id}`, undefined, other);
    expect(theirs.body.agent.owned_by_me).toBe(false);
  });
});

test('60 failures in a minute from one address, then 429 with Retry-After', async () => {
  const world = await startWorld('sqlite', { AGENT_BROKER_LIMIT_FACTOR: '1' });
  const url = `${world.running.baseUrl}/approve/${uuidv4()}/request`;
  const statuses = new Map<number, number>();
  let last: Awaited<ReturnType<typeof send>> | undefined;
  for (let n = 0; n < 61; n++) {
    last = await send(url, {});
    statuses.set(last.status, (statuses.get(last.status) ?? 0) + 1);
  }
  expect([...statuses]).toEqual([
    [404, 60],
    [429, 1],
  ]);
  expectEnvelope(last!, 429, 'rate_limited');
  expect(Number(last!.headers.get('retry-after'))).toBeGreaterThan(0);
});

test('300 requests in a minute from one address about calls of one agent, which knows their ids, then 429', async () => {
  const world = await startWorld('sqlite', { AGENT_BROKER_LIMIT_FACTOR: '1', TRUSTED_PROXIES: '127.0.0.1/32' });
  const organisation = await world.demoOrganisation();
  const [agent, other] = [await organisation.agent(), await organisation.agent()];
  const [first, second, others] = [await agent.hold(WRITE), await agent.hold(WRITE), await other.hold(WRITE)];
  const look = (id: string, from = '198.51.100.1', query = '') =>
    send(`${world.running.baseUrl}/approve/${id}/request${query}`, { headers: { 'x-forwarded-for': from } });
  const { request_hash: hash } = (await look(first)).body;
  for (let n = 1; n < 300; n++)
    expect((await look(n % 2 === 0 ? first : second, undefined, `?known=${hash}`)).status).toBe(200);
  const refused = await look(first);
  expectEnvelope(refused, 429, 'rate_limited');
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  expect((await look(first, '198.51.100.2')).status).toBe(200);
  expect((await look(others)).status).toBe(200);
  // Long requests count more, because opening them is expensive.
  const large = await other.hold({ ...WRITE, data: { text: 'x'.repeat(1_000_000) } });
  const statuses: number[] = [];
  for (let n = 0; n < 19; n++) statuses.push((await look(large)).status);
  expect(statuses).toEqual([...Array(18).fill(200), 429]);
});
