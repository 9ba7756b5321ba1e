import fc from 'fast-check';
import { decodeProtectedHeader } from 'jose';
import { beforeAll, describe, expect, test } from 'vitest';
import { retireFollowedKeys } from '../../broker/keys.ts';
import { expectStatus, send } from '../world/agent.ts';
import { auditIdOf, evidenceOf, expectEnvelope, verifyReceipt } from '../world/evidence.ts';
import { listAuditRows } from '../world/rows.ts';
import { sized } from '../world/runner/thorough.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { CANARY, givenWorld, READ, shared } from '../world/world.ts';

const MAY_CARRY = [
  ...[
    'iss',
    'jti',
    'iat',
    'sub',
    'agent',
    'organisation',
    'platform',
    'connection',
    'scope',
    'method',
    'path',
    'result',
  ],
  ...['reason', 'decision', 'approval', 'session_id', 'pii', 'upstream_status', 'agent_reason_hash', 'row_hash'],
];

describe.each(ONE_STORE)(`GET /v1/audit/{id}/receipt on %s${postgresNote}`, (store) => {
  let id: string;
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation({ manifest: { recipients: { 'POST /items': ['/to'] } } }));
  const agent = shared(() => organisation.agent());
  beforeAll(async () => {
    id = auditIdOf(await agent.act(READ));
  });

  test('by default the answer is JSON with the receipt, its key, and the URL for verifying it', async () => {
    const answer = await expectStatus(200, agent.get(`/v1/audit/${id}/receipt`));
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(answer.headers.get('ratelimit')).toMatch(/^"receipts";/);
    // The inclusion proof is added as soon as the row is in the receipt log.
    const { inclusion: _, ...body } = answer.body;
    expect(body).toEqual({
      audit_id: id,
      kid: decodeProtectedHeader(answer.body.receipt).kid,
      receipt: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
      jwks_url: `${world.running.baseUrl}/.well-known/svc-receipt-keys.json`,
      did: world.running.broker.did,
      verify_hint: expect.any(String),
    });
    expect(decodeProtectedHeader(answer.body.receipt)).toEqual({
      alg: 'ES256',
      typ: 'svc-receipt+jwt',
      kid: answer.body.kid,
    });
  });

  test.each<[string, string]>([
    ['application/jose', 'application/jose'],
    ['application/jose, application/json;q=0.5', 'application/jose'],
    ['*/*, application/jose', 'application/jose'],
    ['Application/JOSE; Q=0.9, application/json;q=0.5', 'application/jose'],
    ['application/json', 'application/json; charset=utf-8'],
    ['application/json, application/jose', 'application/json; charset=utf-8'],
    ['application/json, application/jose;q=0.9', 'application/json; charset=utf-8'],
    ['application/jose;q=0', 'application/json; charset=utf-8'],
    ['*/*', 'application/json; charset=utf-8'],
    ['text/html', 'application/json; charset=utf-8'],
    ['*/*;q=0.1, application/jose;q=0.05', 'application/json; charset=utf-8'],
    ['application/jose;q=0.5, application/*;q=0.8', 'application/json; charset=utf-8'],
    ['application/jose;q=0.5, application/*;q=0.1, */*', 'application/jose'],
    ['application/json;q=0, */*', 'application/jose'],
    ['application/*, */*;q=0.1', 'application/json; charset=utf-8'],
    ['*/*;q=0, application/jose;q=0', 'application/json; charset=utf-8'],
  ])('Accept: %s gives %s', async (accept, type) => {
    const answer = await agent.get(`/v1/audit/${id.toUpperCase()}/receipt`, { accept });
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, type]);
    expect(answer.headers.get('vary')).toBe('Accept');
    const receipt = type === 'application/jose' ? answer.text : answer.body.receipt;
    expect((await verifyReceipt(world, receipt)).payload.jti).toBe(id);
  });

  test('an owner reads all receipts of the organisation, an agent only its own, and no one those of another organisation', async () => {
    for (const role of ['viewer', 'approver'] as const) {
      const owner = await organisation.addOwner(role);
      expect((await organisation.ask('GET', `/v1/audit/${id}/receipt`, undefined, owner)).status).toBe(200);
    }
    const colleague = await organisation.agent();
    const notOwn = await colleague.get(`/v1/audit/${id}/receipt`);
    expectEnvelope(notOwn, 401, 'not_your_row');
    expect(notOwn.headers.get('www-authenticate')).toBe('Bearer realm="agent-broker"');
    const other = await world.organisation();
    await other.platform();
    for (const answer of [
      await (await other.agent()).get(`/v1/audit/${id}/receipt`),
      await other.ask('GET', `/v1/audit/${id}/receipt`),
    ])
      expectEnvelope(answer, 404, 'not_found');
  });

  test('a halted agent still reads its receipts', async () => {
    const halted = await organisation.agent();
    const own = auditIdOf(await halted.act(READ));
    await organisation.ask('POST', `/owner/agents/${halted.id}/revoke`, {});
    expect((await halted.get(`/v1/audit/${own}/receipt`)).status).toBe(200);
  });

  test('an unknown audit id, and a row without a receipt yet, answer 404', async () => {
    for (const unknown of [crypto.randomUUID(), 'x', `{${id}}`, '%00', '..%2f', `${id}%20`])
      expectEnvelope(await agent.get(`/v1/audit/${unknown}/receipt`), 404, 'not_found');
    let during: { status: number } | undefined;
    world.upstream.answer = (_request, response) => {
      void listAuditRows(world.db, organisation.id, { limit: 1 })
        .then(([row]) => agent.get(`/v1/audit/${row!.id}/receipt`))
        .then((answer) => {
          during = answer;
          response.end();
        });
    };
    const made = await agent.act({ ...READ, method: 'PATCH', endpoint: '/items/1', scope: 'demo:write' });
    expect([made.status, during?.status]).toEqual([200, 404]);
    expect((await agent.get(`/v1/audit/${auditIdOf(made)}/receipt`)).status).toBe(200);
  });

  test('DI-03 MR-07 a new key is published two hours before it signs, and the old key stays published forever', async () => {
    const before = await evidenceOf(world, agent, id);
    const local = world.running.services.local.token.reveal();
    const rotated = await send(`${world.running.baseUrl}/owner/keys/rotate`, {
      method: 'POST',
      headers: { authorization: `Bearer ${local}`, 'content-type': 'application/json' },
      body: '{"use":"evidence"}',
    });
    expect(rotated.status, rotated.text).toBe(200);
    const { kid, signs_from } = rotated.body;
    expect(Date.parse(signs_from) - Date.now()).toBeGreaterThan(7_190_000);
    const keys = await send(`${world.running.baseUrl}/.well-known/svc-receipt-keys.json`, {});
    const kids = keys.body.keys.map((key: { kid: string }) => key.kid);
    expect(kids).toEqual(expect.arrayContaining([kid, before.row.receipt_kid]));
    const meanwhile = await evidenceOf(world, agent, auditIdOf(await agent.act(READ)));
    expect(meanwhile.row.receipt_kid).toBe(before.row.receipt_kid);
    world.clock.skewMs = 7_201_000;
    const after = await evidenceOf(world, agent, auditIdOf(await agent.act(READ)));
    expect(after.row.receipt_kid).toBe(kid);
    world.clock.skewMs += 3_600_000;
    const { broker } = world.running;
    await retireFollowedKeys(broker.store, broker.keys, broker.clock());
    await broker.keys.refresh();
    await evidenceOf(world, agent, id);
    await world.restart();
    await evidenceOf(world, agent, id);
  });

  test('the receipt of any kind of call has the members that the specification lists, and none that it forbids', async () => {
    const free = await organisation.agent({
      policy: await organisation.policy([
        { effect: 'allow', methods: ['GET', 'POST'] },
        { effect: 'deny', methods: ['POST'], when: 'int(request.body.n) > 3 || request.headers["x-note"] == "n"' },
      ]),
      grants: { demo: { constraints: JSON.stringify({ recipients: ['@acme.example'] }) } },
    });
    const words = fc.stringMatching(/^[a-z0-9]{12}$/).map((text) => `canary${text}`);
    const calls = fc.record({
      reason: words,
      query: words,
      body: words,
      header: words,
      response: words,
      recipient: words.map((word) => `${word}@evil.example`),
      person: words,
      agentName: words,
      method: fc.constantFrom('GET', 'POST', 'DELETE'),
      status: fc.constantFrom(200, 404, 500),
      allowed: fc.boolean(),
      number: fc.constantFrom(1, 9, 'none'),
    });
    await fc.assert(
      fc.asyncProperty(calls, async (call) => {
        await world.forgive();
        world.upstream.answer = (_request, response) =>
          response
            .writeHead(call.status, { 'content-type': 'application/json', 'x-a': call.response })
            .end(`{"a":"${call.response}"}`);
        const to = call.allowed ? 'ann@acme.example' : call.recipient;
        const answer = await free.act(
          {
            ...READ,
            endpoint: `/items?q=${call.query}`,
            method: call.method,
            scope: call.method === 'GET' ? 'demo:read' : 'demo:write',
            ...(call.method !== 'GET' && { data: { to, text: call.body, n: call.number } }),
            headers: { 'x-note': call.header },
            reason: call.reason,
            caller: { source: 'slack', id: call.person },
          },
          { 'user-agent': call.agentName },
        );
        const { payload, receipt } = await evidenceOf(world, free, auditIdOf(answer));
        const text = JSON.stringify(payload);
        expect(text).not.toMatch(/canary|evil|ann@|127\.0\.0|CANARY|slack/);
        expect(Object.keys(payload).filter((name) => !MAY_CARRY.includes(name))).toEqual([]);
        expect(payload.path).toBe('/items');
        expect(payload.agent_reason_hash).toMatch(/^[0-9a-f]{64}$/);
        expect(receipt).not.toContain(CANARY);
      }),
      { numRuns: sized(20, 40) },
    );
  });

  test('the hash of the agent’s reason differs from call to call, so that a short sentence cannot be looked up', async () => {
    const hashes = await Promise.all(
      [1, 2].map(async () => {
        const answer = await agent.act({ ...READ, reason: 'the same' });
        return (await evidenceOf(world, agent, auditIdOf(answer))).payload.agent_reason_hash;
      }),
    );
    expect(hashes[0]).not.toBe(hashes[1]);
  });
});
