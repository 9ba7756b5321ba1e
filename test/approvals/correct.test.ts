/** Corrections: an owner changes a call's request before it is decided, and exactly the corrected request is approved and made. */
import { describe, expect, test } from 'vitest';
import { receiptOf } from '../../broker/audit/receipt.ts';
import { findApproval } from '../../broker/store/approvals.ts';
import { rawClient } from '../proxy/raw-client.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { verifyReceipt } from '../world/evidence.ts';
import { callMcp } from '../world/oauth-client.ts';
import { enrol, post, signFinish } from '../world/passkeys.ts';
import { listAuditRows } from '../world/rows.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { fresh, givenWorld, WRITE } from '../world/world.ts';

describe.each(ONE_STORE)(`corrections of held calls on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = fresh(() => world.demoOrganisation());
  const agent = fresh(() => organisation.agent());

  const hold = (by: TestAgent = agent, more: object = {}) =>
    by.hold({ ...WRITE, data: { title: 'x', amount: 500 }, ...more });
  const shown = async (id: string) => (await organisation.ask('GET', `/owner/approvals/${id}`)).body;
  const correct = async (id: string, change: object, hash?: string) =>
    organisation.ask('POST', `/owner/approvals/${id}/correct`, {
      request_hash: hash ?? (await shown(id)).request_hash,
      ...change,
    });
  const mine = async (id: string, by: TestAgent = agent) => (await by.get(`/v1/approvals/${id}`)).body;
  const made = async (id: string) =>
    await expect.poll(async () => (await mine(id)).executed_at).toEqual(expect.any(String));

  test('the corrected request is what is approved and made, and the agent reads the correction', async () => {
    const id = await hold();
    const before = await shown(id);
    expect(before).toMatchObject({ correctable: true, asked: null, corrected: null });
    const corrected = await expectStatus(200, correct(id, { data: { title: 'x', amount: 50 } }));
    expect(corrected.body).toMatchObject({ status: 'pending', corrected: { by_email: organisation.owner.email } });
    const after = await shown(id);
    expect(after.request_hash).not.toBe(before.request_hash);
    expect(after.request.body).toEqual({ title: 'x', amount: 50 });
    expect(after.asked).toEqual({ endpoint: '/items', body: { title: 'x', amount: 500 } });
    expect(await mine(id)).toMatchObject({
      status: 'pending',
      corrected: { endpoint: '/items', data: { title: 'x', amount: 50 }, at: expect.any(String) },
    });
    expect((await organisation.approve(id, { request_hash: after.request_hash })).status).toBe(200);
    await made(id);
    expect(JSON.parse(world.upstream.seen.at(-1)!.body)).toEqual({ title: 'x', amount: 50 });
    const told = await mine(id);
    expect(told.corrected.data).toEqual({ title: 'x', amount: 50 });
    expect(told.result.status).toBe(200);
  });

  test('the author and the difference of a correction are recorded with a receipt; the decision refers to the corrected request', async () => {
    const id = await hold();
    const { request_hash: first } = await shown(id);
    await correct(id, { data: { amount: 1 } });
    const { request_hash: second } = await shown(id);
    await organisation.approve(id, { request_hash: second });
    await made(id);
    const rows = await listAuditRows(world.db, organisation.id, { limit: 20 });
    const row = rows.find(({ reason }) => reason === 'approval_corrected')!;
    expect(row).toMatchObject({ approval_id: id, agent_public_id: agent.agentId, platform_id: 'demo', kind: 'event' });
    expect(JSON.parse(row.flags!).change).toMatchObject({
      by: organisation.owner.id,
      how: 'api',
      request_hash_before: first,
      request_hash: second,
    });
    const approved = rows.find(({ reason }) => reason === 'approval_approved')!;
    expect(JSON.parse(approved.flags!).approval.request_hash).toBe(second);
    // No row attributes the owner's version to the agent.
    const listed = (await organisation.ask('GET', '/owner/audit')).body.rows as {
      reason: string;
      result: string | null;
      sentence: { text: string };
    }[];
    expect(listed.find(({ result }) => result === 'held')?.sentence.text).not.toContain('1 field');
    expect(listed.find(({ result }) => result === 'allowed')?.sentence.text).toContain('1 field');
    const { payload } = await verifyReceipt(world, receiptOf(row)!);
    expect(payload).toMatchObject({ jti: row.id, reason: 'approval_corrected' });
  });

  test('a corrected call cannot be approved with the old hash, without a hash, or in bulk without its hash', async () => {
    const id = await hold();
    const { request_hash: old } = await shown(id);
    await correct(id, { data: { amount: 1 } });
    const { request_hash: now } = await shown(id);
    for (const body of [{ request_hash: old }, {}]) {
      const refused = await organisation.approve(id, body);
      expect([refused.status, refused.body.error, refused.body.request_hash]).toEqual([409, 'request_changed', now]);
    }
    const several = await organisation.ask('POST', '/owner/approvals/decide', {
      decision: 'approve',
      items: [{ approval_id: id, request_hash: old }],
    });
    expect(several.body.results[0].outcome).toBe('request_changed');
    expect((await shown(id)).status).toBe('pending');
    // A denial needs no hash.
    expect((await organisation.deny(id, { note: 'no' })).status).toBe(200);
    expect((await mine(id)).status).toBe('denied');
  });

  test('sign/begin of a passkey accepts the hash of the corrected request only', async () => {
    const key = await enrol(world, organisation);
    const id = await hold();
    const { request_hash: old } = await shown(id);
    const begin = (more: object = {}) => post(world, '/v1/approvals/passkeys/sign/begin', { approval_id: id, ...more });
    for (const more of [{}, { request_hash: old }]) expect((await begin(more)).status).toBe(200);
    await correct(id, { data: { amount: 1 } });
    const { request_hash: now } = await shown(id);
    for (const more of [{}, { request_hash: old }]) {
      const refused = await begin(more);
      expect([refused.status, refused.body.error, refused.body.request_hash]).toEqual([409, 'request_changed', now]);
    }
    const begun = await expectStatus(200, begin({ request_hash: now }));
    expect((await signFinish(world, key.get(begun.body))).status).toBe(200);
    await made(id);
    expect(JSON.parse(world.upstream.seen.at(-1)!.body)).toEqual({ amount: 1 });
  });

  test('of a concurrent approval and correction one wins, and only what was approved is made', async () => {
    for (let times = 0; times < 6; times++) {
      const id = await hold();
      const { request_hash: hash } = await shown(id);
      const [approved, corrected] = await Promise.all([
        organisation.approve(id, { request_hash: hash }),
        correct(id, { data: { amount: times } }, hash),
      ]);
      expect([approved.status, corrected.status].toSorted()).toEqual([200, 409]);
      if (approved.status === 200) {
        expect(corrected.body.error).toMatch(/^(?:already_decided|request_changed)$/);
        await made(id);
        expect(JSON.parse(world.upstream.seen.at(-1)!.body).amount).toBe(500);
      } else expect(approved.body.error).toBe('request_changed');
    }
  });

  test('no member of the body is lost, whatever its name', async () => {
    const id = await hold();
    const data = JSON.parse('{"__proto__": {"amount": 1}, "constructor": 2, "amount": 3}');
    const { body } = await correct(id, { data });
    expect(JSON.stringify((await shown(id)).request.body)).toBe(JSON.stringify(data));
    await organisation.approve(id, { request_hash: body.request_hash });
    await made(id);
    expect(world.upstream.seen.at(-1)!.body).toBe(JSON.stringify(data));
  });

  test('owners see the rules that hold the corrected call, not those of the original', async () => {
    const asking = { effect: 'require_approval' };
    await organisation.guardrails([
      { ...asking, name: 'large', when: 'has(request.body.amount) && request.body.amount > 100' },
      { ...asking, name: 'outsiders', when: 'has(request.body.to) && request.body.to != "inside"' },
    ]);
    const under = await organisation.agent({ rules: [{ effect: 'allow' }] });
    const data = { amount: 500, to: 'inside' };
    const id = await hold(under, { data });
    const because = async () => (await shown(id)).held_because;
    expect(await because()).toMatchObject({
      reason: 'approval_required_by_guardrail',
      detail: 'guardrail large requires an approval',
      rules: [{ name: 'large' }, { name: 'rule 1' }],
    });
    await correct(id, { data: { amount: 50, to: 'eve@outside.example' } });
    expect(await because()).toMatchObject({
      reason: 'approval_required_by_guardrail',
      detail: 'guardrail outsiders requires an approval',
      rules: [{ name: 'outsiders' }, { name: 'rule 1' }],
    });
    await correct(id, { data: { amount: 50, to: 'inside' } });
    expect(await because()).toMatchObject({
      reason: 'approved',
      detail: 'no rule would hold the corrected call',
      rules: [{ name: 'rule 1', effect: 'allow' }],
    });
    const rows = (await listAuditRows(world.db, organisation.id, { limit: 20 })).filter(
      ({ reason }) => reason === 'approval_corrected',
    );
    expect(rows.map(({ flags }) => JSON.parse(flags ?? '{}').change.held_by.reason)).toEqual([
      'approved',
      'approval_required_by_guardrail',
    ]);
  });

  test('a correction to an endpoint at another address of the platform is sent there', async () => {
    const manifest = {
      base_url: `${world.upstream.url}/v1`,
      base_urls: { 'POST /uploads/**': `${world.upstream.url}/uploading` },
      auth: { type: 'bearer' },
      scopes: { 'crm:write': ['POST /items/**', 'POST /uploads/**'] },
    };
    await organisation.platform({ id: 'crm', manifest });
    const rules = [{ effect: 'require_approval' }] as never;
    const under = await organisation.agent({ rules, grants: { crm: { scopeList: ['crm:write'] } } });
    const id = await hold(under, { platform: 'crm', scope: 'crm:write', endpoint: '/items/1' });
    expect((await correct(id, { endpoint: '/uploads/1' })).status).toBe(200);
    expect((await organisation.approve(id, { request_hash: (await shown(id)).request_hash })).status).toBe(200);
    await expect.poll(async () => (await mine(id, under)).result?.status).toBe(200);
    expect(world.upstream.seen.at(-1)?.target).toBe('/uploading/uploads/1');
  });

  test('of two corrections of the same request one wins', async () => {
    const id = await hold();
    const { request_hash: hash } = await shown(id);
    const both = await Promise.all([1, 2].map((amount) => correct(id, { data: { amount } }, hash)));
    expect(both.map(({ status }) => status).toSorted()).toEqual([200, 409]);
    expect(both.find(({ status }) => status === 409)!.body.error).toBe('request_changed');
  });

  test('a call can be corrected again; the agent’s original request stays unchanged', async () => {
    const id = await hold();
    await correct(id, { data: { amount: 1 } });
    await correct(id, { endpoint: '/items?dry=1', data: { amount: 2 } });
    const { request, asked, path } = await shown(id);
    expect([request.endpoint, request.body, path]).toEqual(['/items?dry=1', { amount: 2 }, '/items']);
    expect(asked.body).toEqual({ title: 'x', amount: 500 });
    // Restoring the original request is a correction as any other.
    await expectStatus(200, correct(id, { endpoint: '/items', data: { title: 'x', amount: 500 } }));
    const same = await correct(id, { data: { title: 'x', amount: 500 } });
    expect([same.status, same.body.error]).toEqual([400, 'invalid_request']);
  });

  test('a correction that the rules would deny is refused, and nothing is changed or counted', async () => {
    await organisation.guardrails([
      { name: 'small', effect: 'suspend', when: 'has(request.body.amount) && request.body.amount > 1000' },
    ]);
    const id = await hold();
    const before = await shown(id);
    const wrongs: [object, number, string, RegExp][] = [
      [{ data: { amount: 5000 } }, 409, 'conflict', /would be refused: guardrail small/],
      [{ endpoint: '/admin' }, 409, 'conflict', /would be refused/],
      [{ endpoint: 'items' }, 400, 'invalid_endpoint', /endpoint/],
      [{ endpoint: '/items/../admin' }, 400, 'invalid_endpoint', /endpoint/],
      [{ data: [1] }, 400, 'invalid_request', /data/],
      [{}, 400, 'invalid_request', /already/],
    ];
    for (const [change, status, error, detail] of wrongs) {
      const refused = await correct(id, change);
      expect([refused.status, refused.body.error], refused.text).toEqual([status, error]);
      expect(refused.text).toMatch(detail);
    }
    expect(await shown(id)).toEqual({ ...before, expires_in_seconds: expect.any(Number) });
    // An owner's correction does not count as a strike of the agent.
    expect((await organisation.ask('GET', `/owner/agents/${agent.agentId}`)).body.status).toBe('active');
  });

  test('a call that is corrected so that no rule holds it still waits for a decision', async () => {
    const few = await organisation.agent({
      rules: [
        { effect: 'allow' },
        { effect: 'require_approval', when: 'has(request.body.amount) && request.body.amount > 100' },
      ],
    });
    const id = await hold(few);
    const seen = world.upstream.seen.length;
    const corrected = await correct(id, { data: { amount: 5 } });
    expect([corrected.status, corrected.body.status]).toEqual([200, 'pending']);
    expect(world.upstream.seen.length).toBe(seen);
    await organisation.approve(id, { request_hash: corrected.body.request_hash });
    await expect.poll(async () => (await mine(id, few)).executed_at).toEqual(expect.any(String));
    expect(JSON.parse(world.upstream.seen.at(-1)!.body)).toEqual({ amount: 5 });
  });

  test('only owners who may decide can correct, only calls of their own organisation, and only pending ones', async () => {
    const id = await hold();
    const { request_hash: hash } = await shown(id);
    const change = { request_hash: hash, data: { amount: 1 } };
    const viewer = await organisation.addOwner('viewer');
    const looked = await organisation.ask('POST', `/owner/approvals/${id}/correct`, change, viewer);
    expect([looked.status, looked.body.error]).toEqual([403, 'forbidden']);
    const elsewhere = await world.demoOrganisation();
    expect((await elsewhere.ask('POST', `/owner/approvals/${id}/correct`, change)).status).toBe(404);
    await organisation.deny(id);
    const late = await organisation.ask('POST', `/owner/approvals/${id}/correct`, change);
    expect([late.status, late.body.error, late.body.status]).toEqual([409, 'already_decided', 'denied']);
    expect((await shown(id)).correctable).toBe(false);
  });

  test('a raw body cannot be corrected, and the refusal says so', async () => {
    const answer = await rawClient(() => agent)('POST', '/proxy/demo-main/items', {
      body: '{"amount":500}',
      headers: { 'content-type': 'application/json', 'x-svc-wait': '0' },
    });
    const id = JSON.parse(answer.text).approval_id;
    expect(id, answer.text).toEqual(expect.any(String));
    expect((await shown(id)).correctable).toBe(false);
    const refused = await correct(id, { data: { amount: 1 } });
    expect([refused.status, refused.body.error]).toEqual([409, 'conflict']);
    expect(refused.body.detail).toBe(
      'A request that came through /proxy is sent as its client wrote it, and cannot be corrected. Deny this call, and say in the note what it should be.',
    );
  });

  test('no standing approval can be made with a corrected call, and the owner reads that the correction is why', async () => {
    const id = await hold();
    expect((await shown(id)).standing).toMatchObject({ possible: true, why: null });
    await correct(id, { data: { title: 'x', amount: 50 } });
    const { request_hash, standing } = await shown(id);
    const why = 'No standing approval is possible for this call: it was corrected. Approve it by itself.';
    expect(standing).toMatchObject({ possible: false, why });
    const refused = await organisation.approve(id, { request_hash, standing: { count: 3, for_seconds: 600 } });
    expect([refused.status, refused.body.detail]).toEqual([400, why]);
    expect(await shown(id)).toMatchObject({ status: 'pending' });
  });

  test('corrections are stored sealed', async () => {
    const id = await hold(agent, { data: { text: 'CANARY-of-a-correction' } });
    await correct(id, { data: { text: 'CANARY-corrected' } });
    const stored = (await findApproval(world.db, organisation.id, id))!;
    for (const column of [stored.action, stored.asked!]) expect(Buffer.from(column).includes('CANARY')).toBe(false);
    expect(stored.basis).toBeNull();
  });

  test('at /mcp the agent is shown the corrected request that was made', async () => {
    const id = await hold();
    await correct(id, { data: { amount: 5 } });
    await organisation.approve(id, { request_hash: (await shown(id)).request_hash });
    await made(id);
    const message = { method: 'tools/call', params: { name: 'check_approval', arguments: { approval_id: id } } };
    const text = (await callMcp(world.running.baseUrl, agent.token(), message)).text;
    const { result } = JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text);
    expect(result.structuredContent).toMatchObject({
      status: 'answered',
      corrected: { endpoint: '/items', data: { amount: 5 } },
    });
  });
});
