/** Binding an agent's own key: bootstrap tokens and invites (specification, Registration and binding). */
import { execFileSync } from 'node:child_process';
import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { mintBootstrapToken } from '../../broker/auth/bootstrap-token.ts';
import { mintToken } from '../../broker/crypto/one-time-token.ts';
import { findAgent, moveAgent } from '../../broker/store/agents.ts';
import type { Db } from '../../broker/store/store.ts';
import { type Answer, expectStatus, type KeyPair, makeKeyPair, send, TestAgent } from '../world/agent.ts';
import { expectDeclared } from '../world/declared-routes.ts';
import { expectEnvelope, verifyReceipt } from '../world/evidence.ts';
import { whileAuditRowsAreRefused } from '../world/faults.ts';
import { withLockContention } from '../world/lock-contention.ts';
import { newFolder, ONE_STORE, postgresNote } from '../world/stores.ts';
import { HOUR_MS } from '../world/times.ts';
import { CANARY, givenWorld, READ, shared, startWorld } from '../world/world.ts';

const spki = (type: 'rsa' | 'rsa-pss' | 'ec' | 'ed25519', options: object = {}): string =>
  generateKeyPairSync(type as 'rsa', options as { modulusLength: number })
    .publicKey.export({ type: 'spki', format: 'pem' })
    .toString();

/** Generates a key pair with the openssl commands of the documentation. */
function opensslKeys(): KeyPair {
  const key = join(newFolder(), 'agent.key');
  const openssl = (...words: string[]) => execFileSync('openssl', words, { stdio: ['ignore', 'pipe', 'ignore'] });
  openssl('genpkey', '-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048', '-out', key);
  const publicPem = openssl('pkey', '-in', key, '-pubout').toString();
  return { publicPem, privateKey: createPrivateKey(readFileSync(key, 'utf8')) };
}

describe.each(ONE_STORE)(`binding on %s${postgresNote}`, (store) => {
  let spare: KeyPair[];
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());
  beforeAll(() => {
    spare = Array.from({ length: 4 }, () => makeKeyPair());
  });

  const post = async (path: string, body: unknown): Promise<Answer> => {
    const answer = await send(world.running.baseUrl + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
    expectDeclared('POST', path, answer);
    return answer;
  };
  const bind = (bootstrap_token: string, { publicPem }: KeyPair) =>
    post('/v1/agents/bind', { bootstrap_token, public_key_pem: publicPem });
  const bindInvite = (bind_secret: string, { publicPem }: KeyPair) =>
    post('/v1/invites/bind', { bind_secret, public_key_pem: publicPem });
  const newToken = async (id: string, options?: { rotate: true }): Promise<string> => {
    const { body } = await expectStatus(200, organisation.ask('POST', `/owner/agents/${id}/bootstrap-token`, options));
    return body.bootstrap_token;
  };
  const invite = async (body: Record<string, unknown>) => {
    const answer = await expectStatus(200, organisation.ask('POST', '/owner/invites', { ...body }));
    return answer.body;
  };
  /** Returns the agent of a bind's answer, with the bound key. */
  const agentOf = ({ body }: Answer, keys: KeyPair): TestAgent => {
    const made = new TestAgent({
      baseUrl: body.proxy_url,
      id: '',
      agentId: body.agent_id,
      ownerId: body.owner_id,
      keys,
    });
    made.clock = () => Date.now() + world.clock.skewMs;
    return made;
  };
  const waitingAgent = () =>
    organisation.agent({
      name: `waiting-${Math.random()}`,
      agent: { status: 'pending_bind', public_key_pem: null, key_fingerprint: null },
    });
  const lockOrganisations = (db: Db) =>
    db.updateTable('organisations').set({ publish_identity_documents: 0 }).execute();
  const rowOf = async (id: string) => (await findAgent(world.db, organisation.id, id))!;
  const events = async (agentId: string) => {
    const { rows } = (await organisation.ask('GET', '/owner/audit?limit=200')).body;
    return rows.filter((row: { agent_public_id: string }) => row.agent_public_id === agentId);
  };

  test('governance.yaml → apply → bootstrap token → bind → a governed call, with a key from openssl', async () => {
    const file = [
      'platforms:',
      '  demo:',
      '    kind: rest',
      `    base_url: ${world.upstream.url}/v1`,
      '    auth: { type: bearer }',
      '    scopes: { "demo:read": ["GET /items", "GET /items/*"] }',
      'connections:',
      '  demo-main: { platform: demo, secret: { env: DEMO } }',
      'agents:',
      '  by-file: { grants: { demo: { scopes: ["demo:read"] } } }',
      'policies: { default: { rules: [{ effect: allow, methods: [GET] }] } }',
    ].join('\n');
    const fresh = await world.organisation();
    const applied = await fresh.ask('POST', '/owner/governance/apply', { text: file, values: { 'env:DEMO': CANARY } });
    expect(applied.status, applied.text).toBe(200);
    const [made] = applied.body.bootstrap_tokens;
    const keys = opensslKeys();
    const bound = await expectStatus(200, bind(made.bootstrap_token ?? made.token, keys));
    expect(bound.body).toEqual({
      agent_id: made.agent_id,
      owner_id: fresh.owner.id,
      status: 'active',
      proxy_url: world.running.baseUrl,
    });
    await expectStatus(200, agentOf(bound, keys).act(READ));
    // Applying the same file again keeps the key.
    const again = await fresh.ask('POST', '/owner/governance/apply', { text: file, values: { 'env:DEMO': CANARY } });
    expect(again.body.changes).toEqual([]);
    expect((await agentOf(bound, keys).act(READ)).status).toBe(200);
  });

  test('JW-27 a rotation token replaces the key; the old key is refused from the next call, the token after its first use', async () => {
    const agent = await organisation.agent({ keys: spare[0]! });
    expect((await agent.act(READ)).status).toBe(200);
    const token = await newToken(agent.agentId, { rotate: true });
    expect((await agent.act(READ)).status, 'the old key goes on until another is bound').toBe(200);
    const bound = await bind(token, spare[1]!);
    expect(bound.body).toMatchObject({ agent_id: agent.agentId, status: 'active' });
    expectEnvelope(await agent.act(READ), 401, 'invalid_signature');
    agent.keys = spare[1]!;
    expect((await agent.act(READ)).status).toBe(200);
    expectEnvelope(await bind(token, spare[2]!), 410, 'token_used');
    expect((await agent.act(READ)).status).toBe(200);
    // Somebody else may have the former key, which is a reason to rotate.
    const next = await newToken(agent.agentId, { rotate: true });
    const former = await bind(next, spare[0]!);
    expectEnvelope(former, 400, 'invalid_request');
    expect(former.body.detail).toContain('was replaced by another one');
    const { bind_secret } = await invite({ agent_name: `former ${store}` });
    expect((await bindInvite(bind_secret, spare[0]!)).body.detail).toContain('was replaced by another one');
    expect((await bind(next, spare[1]!)).status, 'the key that it has is no other').toBe(200);
    expect((await agent.act(READ)).status).toBe(200);
    const event = (await events(agent.agentId)).findLast(({ reason }: { reason: string }) => reason === 'agent_bound');
    const receipt = await organisation.ask('GET', `/v1/audit/${event.id}/receipt`);
    const { payload } = await verifyReceipt(world, receipt.body.receipt);
    expect(payload).toMatchObject({ kind: 'event', reason: 'agent_bound', agent: agent.agentId });
    expect(payload.change).toMatchObject({ by: agent.agentId, how: 'token' });
    expect(payload.change.before).not.toBe(payload.change.fingerprint);
    await world.forgive();
  });

  test('RG-09 50 parallel binds with one token: one 200, 49 times 410, and the stored key is the winner’s', async () => {
    const agent = await waitingAgent();
    const token = await newToken(agent.id);
    const four = Array.from({ length: 4 }, () => makeKeyPair());
    const mine = Array.from({ length: 50 }, (_, i) => four[i % 4]!);
    const answers = await withLockContention(world, lockOrganisations, () =>
      Promise.all(mine.map((keys) => bind(token, keys))),
    );
    const won = answers.flatMap(({ status }, i) => (status === 200 ? [i] : []));
    expect(won).toHaveLength(1);
    for (const answer of answers.filter(({ status }) => status !== 200)) expectEnvelope(answer, 410, 'token_used');
    for (const keys of four) {
      agent.keys = keys;
      const { status } = await agent.act(READ);
      expect(status).toBe(keys === mine[won[0]!] ? 200 : 401);
    }
    const bound = (await events(agent.agentId)).filter(({ reason }: { reason: string }) => reason === 'agent_bound');
    expect(bound, 'on record once').toHaveLength(1);
    await world.forgive();
  });

  test('an agent with a key can be given another one only by a token that was made for rotation', async () => {
    const agent = await waitingAgent();
    const path = `/owner/agents/${agent.id}/bootstrap-token`;
    const plain = async () =>
      (await mintBootstrapToken(world.db, await rowOf(agent.id), Date.now(), { madeBy: null })).token.reveal();
    const first = makeKeyPair();
    expect((await bind(await newToken(agent.id), first)).status).toBe(200);
    agent.keys = first;
    for (const body of [undefined, {}, { rotate: false }])
      expectEnvelope(await organisation.ask('POST', path, body), 410, 'agent_has_key');
    // A token that is older than the key.
    expectEnvelope(await bind(await plain(), makeKeyPair()), 410, 'token_used');
    expect((await agent.act(READ)).status).toBe(200);
    const second = makeKeyPair();
    expect((await bind(await newToken(agent.id, { rotate: true }), second)).status).toBe(200);
    expect(await agent.act(READ)).toMatchObject({ status: 401, body: { error: 'invalid_signature' } });
    agent.keys = second;
    expect((await agent.act(READ)).status).toBe(200);
    const rotated = [];
    for (const { id, reason } of await events(agent.agentId)) {
      if (reason !== 'bootstrap_token_made' && reason !== 'agent_bound') continue;
      const { receipt } = (await organisation.ask('GET', `/v1/audit/${id}/receipt`)).body;
      rotated.push((await verifyReceipt(world, receipt)).payload.change.rotate ?? false);
    }
    // Newest first.
    expect(rotated).toEqual([true, true, false, false]);
  });

  test('a newer token revokes the earlier one; a token expires after a day', async () => {
    const agent = await waitingAgent();
    const first = await newToken(agent.id);
    const second = await newToken(agent.id);
    expectEnvelope(await bind(first, makeKeyPair()), 410, 'token_used');
    // A second valid token: binding with one revokes the other.
    const twin = (await mintBootstrapToken(world.db, await rowOf(agent.id), Date.now(), { madeBy: null })).token;
    world.clock.skewMs = 24 * HOUR_MS + 1_000;
    expectEnvelope(await bind(second, makeKeyPair()), 410, 'token_used');
    world.clock.skewMs = 23 * HOUR_MS;
    expect((await bind(second, makeKeyPair())).status).toBe(200);
    expectEnvelope(await bind(twin.reveal(), makeKeyPair()), 410, 'token_used');
  });

  test('a token of an agent that was revoked meanwhile is refused; a suspended agent stays suspended', async () => {
    const [revoked, suspended] = [await waitingAgent(), await organisation.agent()];
    const [of, other] = [await newToken(revoked.id), await newToken(suspended.id, { rotate: true })];
    await organisation.ask('POST', `/owner/agents/${revoked.id}/revoke`, {});
    expectEnvelope(await bind(of, makeKeyPair()), 410, 'token_used');
    await organisation.ask('POST', `/owner/agents/${suspended.id}/suspend`, {});
    const keys = makeKeyPair();
    const bound = await bind(other, keys);
    expect(bound.body.status).toBe('suspended');
    expect((await agentOf(bound, keys).act(READ)).body.reason).toBe('agent_suspended');
    await organisation.ask('POST', `/owner/agents/${suspended.id}/resume`, {});
    expect((await agentOf(bound, keys).act(READ)).status).toBe(200);
  });

  test('an agent that is revoked during a bind gets no key', async () => {
    const agent = await organisation.agent();
    const token = await newToken(agent.id, { rotate: true });
    const revoke = async (db: Db) => {
      const move = { from: ['active' as const], to: 'revoked' as const, cause: 'owner_manual' as const, detail: null };
      expect(await moveAgent(db, { organisationId: organisation.id, id: agent.id }, move, Date.now())).toBe(true);
    };
    if (store === 'sqlite') await revoke(world.db);
    expectEnvelope(
      await withLockContention(world, revoke, () => bind(token, makeKeyPair()), { waiters: 1 }),
      410,
      'token_used',
    );
    const after = await findAgent(world.db, organisation.id, agent.id);
    expect([after?.status, after?.public_key_pem]).toEqual(['revoked', agent.keys.publicPem]);
  });

  test('a key of another agent, even a revoked or deleted one, is refused with an explanation, and the token is not consumed', async () => {
    const keys = makeKeyPair();
    const other = await organisation.agent({ name: 'has it', keys });
    const agent = await waitingAgent();
    const token = await newToken(agent.id);
    const refused = await bind(token, keys);
    expectEnvelope(refused, 400, 'invalid_request');
    expect(refused.body.detail).toContain('bound to another agent already');
    const { bind_secret } = await invite({ agent_name: `has it too ${store}` });
    expect((await bindInvite(bind_secret, keys)).body.detail).toContain('bound to another agent already');
    await organisation.ask('POST', `/owner/agents/${other.id}/revoke`, {});
    expectEnvelope(await bind(token, keys), 400, 'invalid_request');
    await organisation.ask('POST', `/owner/agents/${other.id}/delete`, {});
    expectEnvelope(await bind(token, keys), 400, 'invalid_request');
    expectEnvelope(await bindInvite(bind_secret, keys), 400, 'invalid_request');
    expect((await bind(token, makeKeyPair())).status).toBe(200);
    expect((await bindInvite(bind_secret, makeKeyPair())).status).toBe(200);
    // A public key that is registered in another organisation does not block its owner.
    const elsewhere = await world.organisation();
    const theirs = await elsewhere.ask('POST', '/owner/invites', { agent_name: 'theirs' });
    expect((await bindInvite(theirs.body.bind_secret, keys)).status).toBe(200);
  });

  test.each<[string, () => string, RegExp]>([
    ['1024 bits', () => spki('rsa', { modulusLength: 1024 }), /2048 to 4096 bits/],
    ['the exponent 3', () => spki('rsa', { modulusLength: 2048, publicExponent: 3 }), /65537/],
    ['an elliptic curve', () => spki('ec', { namedCurve: 'P-256' }), /RSA/],
    ['Ed25519', () => spki('ed25519'), /RSA/],
    ['RSA restricted to PSS', () => spki('rsa-pss', { modulusLength: 2048 }), /PSS/],
    ['the older PKCS#1', () => PKCS1, /PKCS#1/],
    ['a private key', () => PRIVATE_PEM, /private key/],
    ['a text that is not PEM', () => 'ssh-rsa AAAA', /PEM/],
    ['an empty text', () => '', /PEM/],
    ['two PEM blocks', () => `${makeKeyPair().publicPem}${makeKeyPair().publicPem}`, /several/],
  ])('JW-26 a key of %s is a 400 that says what to do; nothing is consumed or quoted', async (_what, pem, words) => {
    const agent = await waitingAgent();
    const token = await newToken(agent.id);
    const given = pem();
    const { bind_secret } = await invite({ agent_name: `wrong key ${Math.random()}` });
    for (const answer of [
      await post('/v1/agents/bind', { bootstrap_token: token, public_key_pem: given }),
      await post('/v1/invites/bind', { bind_secret, public_key_pem: given }),
    ]) {
      expectEnvelope(answer, 400, 'invalid_request');
      expect(answer.body.detail).toMatch(words);
      if (given.length > 100) expect(answer.text).not.toContain(given.split('\n')[1]);
    }
    expect((await bind(token, makeKeyPair())).status).toBe(200);
    expect((await bindInvite(bind_secret, makeKeyPair())).status).toBe(200);
  });

  test('an invalid body is a 400, and nothing of it is quoted', async () => {
    const pem = spare[0]!.publicPem;
    const secret = 'abt_secretsecret';
    for (const path of ['/v1/agents/bind', '/v1/invites/bind'])
      for (const body of [
        {},
        [],
        { bootstrap_token: secret },
        { bind_secret: secret },
        { public_key_pem: pem },
        { bootstrap_token: 1, public_key_pem: pem },
        { bootstrap_token: secret, bind_secret: secret, public_key_pem: pem },
        { bootstrap_token: secret, bind_secret: secret, public_key_pem: 'x'.repeat(17 * 1024) },
        `{"bootstrap_token":"${secret}"`,
        `{"bind_secret":"${secret}","bind_secret":"${secret}"}`,
      ]) {
        const answer = await post(path, body);
        expectEnvelope(answer, 400, 'invalid_request');
        expect(answer.text).not.toContain(secret);
      }
    for (const path of ['/v1/agents/bind', '/v1/invites/bind'])
      expectEnvelope(await post(path, { public_key_pem: 'x'.repeat(70 * 1024) }), 413, 'payload_too_large');
  });

  test('RG-02 tokens of another kind, unknown and invalid ones all get the same 410', async () => {
    const { bind_secret } = await invite({ agent_name: `kinds ${store}` });
    const agent = await waitingAgent();
    const token = await newToken(agent.id);
    const wrong = ['', 'x', `${token}x`, token.toUpperCase(), bind_secret, mintToken('bootstrap').token.reveal()];
    const said = new Set<string>();
    for (const one of wrong) {
      const answer = await bind(one, spare[3]!);
      expectEnvelope(answer, 410, 'token_used');
      said.add(answer.body.detail);
    }
    expect(said.size).toBe(1);
    for (const one of ['', token, mintToken('invite').token.reveal()])
      expectEnvelope(await bindInvite(one, spare[3]!), 410, 'token_used');
    expect((await bind(token, makeKeyPair())).status).toBe(200);
    expect((await bindInvite(bind_secret, makeKeyPair())).status).toBe(200);
  });

  test('a bind that cannot be recorded is not made, and the token is not consumed', async () => {
    const agent = await waitingAgent();
    const token = await newToken(agent.id);
    const { bind_secret, id } = await invite({ agent_name: `unrecorded ${store}` });
    const keys = makeKeyPair();
    await whileAuditRowsAreRefused(world, async () => {
      expectEnvelope(await bind(token, keys), 503, 'audit_unavailable');
      expectEnvelope(await bindInvite(bind_secret, makeKeyPair()), 503, 'audit_unavailable');
      const asked = await organisation.ask('POST', `/owner/agents/${agent.id}/bootstrap-token`);
      expectEnvelope(asked, 503, 'audit_unavailable');
      const inviting = await organisation.ask('POST', '/owner/invites', { agent_name: 'never' });
      expectEnvelope(inviting, 503, 'audit_unavailable');
      expectEnvelope(await organisation.ask('DELETE', `/owner/invites/${id}`), 503, 'audit_unavailable');
    });
    agent.keys = keys;
    expect(await agent.act(READ)).toMatchObject({ status: 401, body: { error: 'invalid_signature' } });
    expect((await bind(token, keys)).status).toBe(200);
    expect((await bindInvite(bind_secret, makeKeyPair())).status).toBe(200);
    expect((await organisation.ask('GET', '/owner/invites')).text).not.toContain('never');
  });

  test('bootstrap tokens are for admins, for agents with a key of their own, in their own organisation', async () => {
    const agent = await waitingAgent();
    const path = `/owner/agents/${agent.id}/bootstrap-token`;
    for (const role of ['viewer', 'approver'] as const)
      expectEnvelope(
        await organisation.ask('POST', path, undefined, await organisation.addOwner(role)),
        403,
        'forbidden',
      );
    const other = await world.organisation();
    expectEnvelope(await other.ask('POST', path), 404, 'not_found');
    expectEnvelope(await organisation.ask('POST', '/owner/agents/x/bootstrap-token'), 404, 'not_found');
    expectEnvelope(await organisation.ask('POST', path, { x: 1 }), 400, 'invalid_request');
    for (const wrong of [{ status: 'revoked' }, { agent_type: 'child' }, { agent_type: 'mcp_client' }]) {
      const keyless = await organisation.agent({ agent: wrong as object, grants: {} });
      expectEnvelope(await organisation.ask('POST', `/owner/agents/${keyless.id}/bootstrap-token`), 409, 'conflict');
    }
    const deleted = await organisation.agent({ agent: { status: 'deleted' }, grants: {} });
    expectEnvelope(await organisation.ask('POST', `/owner/agents/${deleted.id}/bootstrap-token`), 404, 'not_found');
  });

  test('invite → bind → a governed call, under the policy and with the grants of the invite', async () => {
    const policy = await organisation.policy([{ effect: 'allow', methods: ['GET'] }], `invited-${store}`);
    const name = `invited ${store}`;
    const grants = [{ platformId: 'demo', scopes: ['demo:read'] }];
    const made = await invite({ agent_name: name, policy: `invited-${store}`, grants });
    expect(made).toMatchObject({ status: 'open', agent_name: name, policy_id: policy, grants, agent: null });
    expect(made.bind_secret).toMatch(/^inv_[\w-]{43}$/);
    const keys = opensslKeys();
    const bound = await expectStatus(200, bindInvite(made.bind_secret, keys));
    expect(bound.body).toMatchObject({ owner_id: organisation.owner.id, status: 'active' });
    const agent = agentOf(bound, keys);
    expect((await agent.act(READ)).status).toBe(200);
    const denied = await agent.act({ ...READ, method: 'PATCH', endpoint: '/items/1', scope: 'demo:write', data: {} });
    expect(denied.body.reason).toBe('denied_by_policy');
    expectEnvelope(await bindInvite(made.bind_secret, makeKeyPair()), 410, 'token_used');
    const [listed] = (await organisation.ask('GET', '/owner/invites')).body.invites.filter(
      ({ id }: { id: string }) => id === made.id,
    );
    expect(listed).toMatchObject({ status: 'claimed' });
    const owned = (await organisation.ask('GET', '/owner/agents')).body.agents;
    expect(owned.find(({ id }: { id: string }) => id === listed.agent)).toMatchObject({ name, agent_type: 'key' });
    expect((await events(bound.body.agent_id)).map(({ reason }: { reason: string }) => reason)).toContain(
      'agent_invited',
    );
  });

  test('50 parallel binds with one invite create one agent', async () => {
    const { bind_secret } = await invite({ agent_name: `race ${store}` });
    const keys = Array.from({ length: 4 }, () => makeKeyPair());
    const answers = await withLockContention(world, lockOrganisations, () =>
      Promise.all(Array.from({ length: 50 }, (_, i) => bindInvite(bind_secret, keys[i % 4]!))),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    for (const answer of answers.filter(({ status }) => status !== 200)) expectEnvelope(answer, 410, 'token_used');
    const { agents } = (await organisation.ask('GET', '/owner/agents')).body;
    expect(agents.filter(({ name }: { name: string }) => name === `race ${store}`)).toHaveLength(1);
  });

  test('an invite ends after seven days, when it is removed, and with its owner', async () => {
    const late = await invite({ agent_name: `late ${store}` });
    world.clock.skewMs = 7 * 24 * HOUR_MS + 1_000;
    expectEnvelope(await bindInvite(late.bind_secret, makeKeyPair()), 410, 'token_used');
    const { invites } = (await organisation.ask('GET', '/owner/invites')).body;
    expect(invites.find(({ id }: { id: string }) => id === late.id)).toMatchObject({ status: 'expired' });
    world.clock.skewMs = 0;
    const taken = await invite({ agent_name: `taken ${store}` });
    expect((await organisation.ask('DELETE', `/owner/invites/${taken.id}`)).body).toEqual({
      id: taken.id,
      removed: true,
    });
    expectEnvelope(await bindInvite(taken.bind_secret, makeKeyPair()), 410, 'token_used');
    expectEnvelope(await organisation.ask('DELETE', `/owner/invites/${taken.id}`), 404, 'not_found');
    const leaving = await organisation.addOwner('admin');
    const theirs = await organisation.ask('POST', '/owner/invites', { agent_name: `theirs ${store}` }, leaving);
    expect((await organisation.ask('DELETE', `/owner/owners/${leaving.id}`)).status).toBe(200);
    expectEnvelope(await bindInvite(theirs.body.bind_secret, makeKeyPair()), 410, 'token_used');
  });

  test('an invite whose policy was removed creates no agent, and is not consumed', async () => {
    const other = await world.organisation();
    await other.ask('POST', '/owner/policies', { name: 'careful', rules: [{ effect: 'allow' }] });
    const made = await other.ask('POST', '/owner/invites', { agent_name: 'late', policy: 'careful' });
    expect(made.status, made.text).toBe(200);
    await expectStatus(200, other.ask('POST', '/owner/governance/apply', { text: 'policies: {}', values: {} }));
    const refused = await bindInvite(made.body.bind_secret, makeKeyPair());
    expectEnvelope(refused, 410, 'token_used');
    expect(refused.body.detail).toContain('policy');
    expect((await other.ask('GET', '/owner/agents')).body.agents).toEqual([]);
    expect((await other.ask('GET', '/owner/invites')).body.invites[0].status).toBe('open');
  });

  test('the content of an invite: names, existing policies and scopes; used invites cannot be removed', async () => {
    const ask = (body: unknown) => organisation.ask('POST', '/owner/invites', body);
    const demo = { platformId: 'demo', scopes: ['demo:read'] };
    for (const body of [
      {},
      { agent_name: '' },
      { agent_name: ' x' },
      { agent_name: 'a\nb' },
      { agent_name: 'a\u0000' },
      { agent_name: 'x'.repeat(101) },
      { agent_name: 'x', policy: 'none of this name' },
      { agent_name: 'x', grants: [{ platformId: 'nowhere', scopes: ['a'] }] },
      { agent_name: 'x', grants: [{ ...demo, scopes: ['demo:unknown'] }] },
      { agent_name: 'x', grants: [{ ...demo, more: 1 }] },
      { agent_name: 'x', owner: 'y' },
    ])
      expectEnvelope(await ask(body), 400, 'invalid_request');
    const name = `namesake ${store}`;
    const [first, second] = [await invite({ agent_name: name }), await invite({ agent_name: name })];
    expect((await bindInvite(first.bind_secret, makeKeyPair())).status).toBe(200);
    expectEnvelope(await ask({ agent_name: name }), 409, 'conflict');
    const refused = await bindInvite(second.bind_secret, makeKeyPair());
    expectEnvelope(refused, 410, 'token_used');
    expect(refused.body.detail).toContain('another name');
    expectEnvelope(await organisation.ask('DELETE', `/owner/invites/${first.id}`), 409, 'conflict');
    const other = await world.organisation();
    expectEnvelope(await other.ask('DELETE', `/owner/invites/${second.id}`), 404, 'not_found');
    expectEnvelope(await organisation.ask('DELETE', '/owner/invites/x'), 404, 'not_found');
    const viewer = await organisation.addOwner('viewer');
    expectEnvelope(await organisation.ask('POST', '/owner/invites', { agent_name: 'x' }, viewer), 403, 'forbidden');
    const asViewer = await organisation.ask('DELETE', `/owner/invites/${second.id}`, undefined, viewer);
    expectEnvelope(asViewer, 403, 'forbidden');
    const listed = await expectStatus(200, organisation.ask('GET', '/owner/invites', undefined, viewer));
    expect(listed.text).not.toMatch(/inv_|token_hash|bind_secret/);
    expect((await other.ask('GET', '/owner/invites')).body.invites).toEqual([]);
  });
});

describe('the limit of binding', () => {
  test('429 after 30 requests in a minute from one address, for both routes together', async () => {
    const world = await startWorld('sqlite', { AGENT_BROKER_LIMIT_FACTOR: '0.1' });
    const ask = (path: string, from?: string) =>
      send(world.running.baseUrl + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{}',
        ...(from !== undefined && { from }),
      });
    for (const path of ['/v1/agents/bind', '/v1/invites/bind', '/v1/agents/bind'])
      expect(await ask(path, '127.0.0.1')).toMatchObject({ status: 400, body: { error: 'invalid_request' } });
    const limited = await ask('/v1/invites/bind', '127.0.0.1');
    expectEnvelope(limited, 429, 'rate_limited');
    expect(Number(limited.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await ask('/v1/agents/bind', '127.0.0.2')).toMatchObject({
      status: 400,
      body: { error: 'invalid_request' },
    });
  });
});

const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const PRIVATE_PEM = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const PKCS1 = publicKey.export({ type: 'pkcs1', format: 'pem' }).toString();
