/** Sealed secrets, sent with an owner's authorisation (specification, Registration and binding: bind-secret). */
import { createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { CompactEncrypt, importJWK, type JWK } from 'jose';
import { beforeAll, describe, expect, test } from 'vitest';
import { mintToken } from '../../broker/crypto/one-time-token.ts';
import { DECRYPTION_GRACE_MS, destroyOldSecretKeys } from '../../broker/secret-keys.ts';
import { listGrants } from '../../broker/store/agents.ts';
import { listConnections } from '../../broker/store/connections.ts';
import type { Db } from '../../broker/store/store.ts';
import { type Answer, expectStatus, send } from '../world/agent.ts';
import { expectDeclared } from '../world/declared-routes.ts';
import { expectEnvelope, verifyReceipt } from '../world/evidence.ts';
import { whileAuditRowsAreRefused } from '../world/faults.ts';
import { storedRows } from '../world/full-organisation.ts';
import { withLockContention } from '../world/lock-contention.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { HOUR_MS } from '../world/times.ts';
import { givenWorld, READ, shared } from '../world/world.ts';

const OWN = 'CANARY-own-secret-of-one-agent-0123456789';

describe.each(ONE_STORE)(`sealed secrets on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());
  beforeAll(() => organisation.platform({ id: 'bare', secret: null }));
  const published = async (): Promise<JWK & { kid: string }> => {
    const answer = await send(`${world.running.baseUrl}/.well-known/svc-secret-keys.json`, {});
    expect(answer.headers.get('cache-control')).toBe('public, max-age=300');
    expect(answer.body.keys).toHaveLength(1);
    return answer.body.keys[0];
  };
  const seal = async (
    content: unknown,
    { key, header = {} }: { key?: JWK | KeyObject; header?: Record<string, unknown> } = {},
  ): Promise<string> => {
    const ours = await published();
    const to = key ?? ours;
    const text = typeof content === 'string' ? content : JSON.stringify(content);
    return await new CompactEncrypt(Buffer.from(text))
      .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A256GCM', kid: ours.kid, ...header } as never)
      .encrypt('kty' in to ? await importJWK(to as JWK, 'ECDH-ES') : (to as KeyObject));
  };
  const post = async (body: unknown): Promise<Answer> => {
    const answer = await send(`${world.running.baseUrl}/v1/bind-secret`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
    expectDeclared('POST', '/v1/bind-secret', answer);
    return answer;
  };
  const authorize = async (agent: string, more: Record<string, unknown> = {}, of = organisation) => {
    const answer = await of.ask('POST', '/owner/secret-authorizations', { agent, platform: 'demo', ...more });
    expect(answer.status, answer.text).toBe(200);
    return answer.body;
  };
  const sendTo = async (agent_id: string, authorization: string, secret = OWN, platform_id = 'demo') =>
    post({ agent_id, platform_id, encrypted_secret: await seal({ authorization, secret }) });
  const expectRefused = (answer: Answer) => {
    expectEnvelope(answer, 400, 'invalid_request');
    expect(answer.body.detail).toContain('not a secret that was authorised');
  };
  const sentCredential = async (agent: { act(action: typeof READ): Promise<Answer> }, platform = 'demo') => {
    await expectStatus(200, agent.act({ ...READ, platform }));
    return world.upstream.seen.at(-1)!.headers.authorization;
  };
  const grantsOf = async (id: string) => await listGrants(world.db, organisation.id, id);
  const eventsOf = async (agentId: string, reason: string) => {
    const { rows } = (await organisation.ask('GET', `/owner/audit?limit=200&agent=${agentId}&reason=${reason}`)).body;
    return rows;
  };

  test('authorise → seal → send: only this agent’s calls use the secret, and everything is recorded', async () => {
    const [agent, other] = [await organisation.agent(), await organisation.agent({ name: 'other' })];
    const before = await sentCredential(agent);
    const made = await authorize(agent.agentId);
    expect(made).toMatchObject({
      status: 'open',
      agent: agent.id,
      agent_id: agent.agentId,
      platform: 'demo',
      scopes: null,
      bind_url: `${world.running.baseUrl}/v1/bind-secret`,
      keys_url: `${world.running.baseUrl}/.well-known/svc-secret-keys.json`,
    });
    expect(made.authorization).toMatch(/^sat_[\w-]{43}$/);
    expect(await sentCredential(agent), 'an authorisation alone changes nothing').toBe(before);
    const bound = await sendTo(agent.id, made.authorization);
    expect([bound.status, bound.body]).toEqual([
      200,
      { status: 'bound', agent_id: agent.agentId, platform_id: 'demo' },
    ]);
    expect(await sentCredential(agent)).toBe(`Bearer ${OWN}`);
    expect(await sentCredential(other)).toBe(before);
    const [listed] = (await organisation.ask('GET', '/owner/secret-authorizations')).body.authorizations;
    expect(listed).toMatchObject({ id: made.id, status: 'used', used_at: expect.any(String) });
    const connection = (await listConnections(world.db, organisation.id)).find(
      ({ id }) => id === listed.connection_id,
    )!;
    expect(connection).toMatchObject({ platform_id: 'demo', label: made.label, is_default: 0, status: 'active' });
    const [grant, ...more] = await grantsOf(agent.id);
    expect([grant!.connection_id, more]).toEqual([connection.id, []]);

    expect(await eventsOf(agent.agentId, 'secret_authorized')).toHaveLength(1);
    const [event] = await eventsOf(agent.agentId, 'secret_bound');
    const receipt = (await organisation.ask('GET', `/v1/audit/${event.id}/receipt`)).body.receipt;
    const { payload } = await verifyReceipt(world, receipt);
    expect(payload).toMatchObject({
      kind: 'event',
      reason: 'secret_bound',
      platform: 'demo',
      connection: connection.id,
    });
    expect(payload.change).toMatchObject({
      by: organisation.owner.id,
      how: 'token',
      authorization: made.id,
      label: made.label,
      before: { connection_id: null },
      after: { connection_id: connection.id },
    });
  });

  test('an agent without a grant gets the authorised one, on a platform without a connection', async () => {
    const agent = await organisation.agent({ grants: {} });
    const path = '/owner/secret-authorizations';
    const asked = { agent: agent.agentId, platform: 'bare' };
    const none = await organisation.ask('POST', path, asked);
    expectEnvelope(none, 400, 'invalid_request');
    expect(none.body.detail).toContain('has no grant');
    const unknown = await organisation.ask('POST', path, { ...asked, scopes: ['demo:nothing'] });
    expectEnvelope(unknown, 400, 'invalid_request');
    const made = await authorize(agent.agentId, { platform: 'bare', scopes: ['demo:read'], label: 'bare-own' });
    expect((await sendTo(agent.agentId, made.authorization, OWN, 'bare')).status).toBe(200);
    expect(await sentCredential(agent, 'bare')).toBe(`Bearer ${OWN}`);
    const written = await agent.act({
      ...READ,
      platform: 'bare',
      method: 'PATCH',
      endpoint: '/items/1',
      scope: 'demo:write',
    });
    expect([written.status, written.body.reason]).toEqual([403, 'scope_not_granted']);
    // Other agents' calls cannot use the connection.
    const other = await organisation.agent({ name: 'no secret', grants: { bare: {} } });
    expect((await other.act({ ...READ, platform: 'bare' })).body.error).toBe('platform_not_connected');
  });

  test('changes of the grant after the authorisation take precedence', async () => {
    const [narrowed, removed, given] = await Promise.all(
      ['narrowed', 'removed', 'given'].map((name) =>
        organisation.agent({ name, grants: name === 'given' ? {} : { demo: {} } }),
      ),
    );
    const [a, b] = [await authorize(narrowed!.id), await authorize(removed!.id)];
    const c = await authorize(given!.id, { scopes: ['demo:read', 'demo:write'] });
    await organisation.ask('POST', `/owner/agents/${narrowed!.id}/grants/demo`, { scopes: ['demo:read'] });
    await organisation.ask('DELETE', `/owner/agents/${removed!.id}/grants/demo`);
    await organisation.ask('POST', `/owner/agents/${given!.id}/grants/demo`, { scopes: ['demo:read'] });
    expect((await sendTo(narrowed!.id, a.authorization)).status).toBe(200);
    expectRefused(await sendTo(removed!.id, b.authorization));
    expect((await sendTo(given!.id, c.authorization)).status).toBe(200);
    for (const agent of [narrowed!, given!]) {
      const grants = await grantsOf(agent.id);
      expect(grants.map(({ scopes }) => JSON.parse(scopes))).toEqual([['demo:read']]);
      expect(await sentCredential(agent)).toBe(`Bearer ${OWN}`);
    }
    expect(await grantsOf(removed!.id)).toEqual([]);
  });

  test('RG-11 50 concurrent requests with one authorisation: one 200, 49 times the same 400, one connection, one event', async () => {
    const agent = await organisation.agent({ name: 'raced' });
    const { authorization, label } = await authorize(agent.agentId);
    const sealed = await Promise.all(
      Array.from({ length: 50 }, (_, i) => seal({ authorization, secret: `${OWN}-${i}` })),
    );
    const lock = (tx: Db) => tx.updateTable('organisations').set({ publish_identity_documents: 0 }).execute();
    const answers = await withLockContention(world, lock, () =>
      Promise.all(
        sealed.map((encrypted_secret) => post({ agent_id: agent.id, platform_id: 'demo', encrypted_secret })),
      ),
    );
    const won = answers.flatMap(({ status }, i) => (status === 200 ? [i] : []));
    expect(won).toHaveLength(1);
    for (const [i, answer] of answers.entries()) if (i !== won[0]) expectRefused(answer);
    expect(await sentCredential(agent)).toBe(`Bearer ${OWN}-${won[0]}`);
    const labels = (await listConnections(world.db, organisation.id)).map((one) => one.label);
    expect(labels.filter((one) => one.startsWith(label))).toEqual([label]);
    expect(await eventsOf(agent.agentId, 'secret_bound')).toHaveLength(1);
  });

  test('RG-11 a wrong key, a replay, another agent, another platform, an invented token: the same 400', async () => {
    const [agent, other] = [await organisation.agent({ name: 'mine' }), await organisation.agent({ name: 'not mine' })];
    const elsewhere = await world.organisation();
    await elsewhere.platform();
    const foreign = await elsewhere.agent();
    const theirs = await authorize(foreign.agentId, {}, elsewhere);
    const used = await authorize(agent.agentId);
    const usedOnce = await seal({ authorization: used.authorization, secret: OWN });
    expect((await post({ agent_id: agent.id, platform_id: 'demo', encrypted_secret: usedOnce })).status).toBe(200);
    const taken = await authorize(other.agentId, { label: 'taken-back' });
    expect((await organisation.ask('DELETE', `/owner/secret-authorizations/${taken.id}`)).status).toBe(200);
    const { authorization } = await authorize(agent.agentId, { label: 'open' });
    const good = { authorization, secret: OWN };
    const mine = { agent_id: agent.id, platform_id: 'demo' };
    const strangers = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey;
    const [head = '', ...rest] = (await seal(good)).split('.');
    const headed = (header: object) => [Buffer.from(JSON.stringify(header)).toString('base64url'), ...rest].join('.');
    const ours = JSON.parse(Buffer.from(head, 'base64url').toString());
    const cases: [string, Record<string, string>][] = [
      ['a key of ours that is none', { ...mine, encrypted_secret: await seal(good, { key: strangers }) }],
      ['an unknown kid', { ...mine, encrypted_secret: await seal(good, { header: { kid: 'x' } }) }],
      ['no kid', { ...mine, encrypted_secret: headed({ ...ours, kid: undefined }) }],
      ['alg dir', { ...mine, encrypted_secret: headed({ ...ours, alg: 'dir' }) }],
      ['alg none', { ...mine, encrypted_secret: headed({ ...ours, alg: 'none' }) }],
      [
        'a password',
        { ...mine, encrypted_secret: headed({ ...ours, alg: 'PBES2-HS256+A128KW', p2c: 1e9, p2s: 'AA' }) },
      ],
      ['another cipher', { ...mine, encrypted_secret: await seal(good, { header: { enc: 'A128CBC-HS256' } }) }],
      ['compressed', { ...mine, encrypted_secret: await seal(good, { header: { zip: 'DEF' } }).catch(() => 'x') }],
      ['a critical header', { ...mine, encrypted_secret: headed({ ...ours, crit: ['x'], x: 1 }) }],
      [
        'a point off the curve',
        { ...mine, encrypted_secret: headed({ ...ours, epk: { ...ours.epk, y: ours.epk.x } }) },
      ],
      ['an altered text', { ...mine, encrypted_secret: `${(await seal(good)).slice(0, -4)}AAAA` }],
      ['a plain text', { ...mine, encrypted_secret: JSON.stringify(good) }],
      ['no text', { ...mine, encrypted_secret: '....' }],
      ['not JSON inside', { ...mine, encrypted_secret: await seal('x') }],
      ['a list inside', { ...mine, encrypted_secret: await seal([good]) }],
      ['one more member inside', { ...mine, encrypted_secret: await seal({ ...good, scopes: ['*'] }) }],
      ['no secret inside', { ...mine, encrypted_secret: await seal({ authorization }) }],
      [
        'a member twice inside',
        { ...mine, encrypted_secret: await seal(`{"authorization":"${authorization}","secret":"a","secret":"b"}`) },
      ],
      ['a replay', { ...mine, encrypted_secret: usedOnce }],
      ['a used token', { ...mine, encrypted_secret: await seal({ ...good, authorization: used.authorization }) }],
      [
        'one that was taken back',
        { ...mine, agent_id: other.id, encrypted_secret: await seal({ ...good, authorization: taken.authorization }) },
      ],
      [
        'a made-up token',
        { ...mine, encrypted_secret: await seal({ ...good, authorization: mintToken('secret').token.reveal() }) },
      ],
      [
        'a token of another kind',
        { ...mine, encrypted_secret: await seal({ ...good, authorization: mintToken('invite').token.reveal() }) },
      ],
      ['another agent', { ...mine, agent_id: other.id, encrypted_secret: await seal(good) }],
      ['an agent of another organisation', { ...mine, agent_id: foreign.id, encrypted_secret: await seal(good) }],
      [
        'another organisation’s token',
        { ...mine, encrypted_secret: await seal({ ...good, authorization: theirs.authorization }) },
      ],
      ['no such agent', { ...mine, agent_id: crypto.randomUUID(), encrypted_secret: await seal(good) }],
      ['another platform', { ...mine, platform_id: 'bare', encrypted_secret: await seal(good) }],
      ['no such platform', { ...mine, platform_id: '__proto__', encrypted_secret: await seal(good) }],
    ];
    const said = new Set<string>();
    for (const [what, body] of cases) {
      const answer = await post(body);
      expect([what, answer.status]).toEqual([what, 400]);
      expectRefused(answer);
      said.add(JSON.stringify({ ...answer.body, correlation_id: '' }));
    }
    expect(said.size, 'one body for all').toBe(1);
    world.clock.skewMs = 24 * HOUR_MS + 1000;
    expectRefused(await sendTo(agent.id, authorization));
    // None of that consumed the authorisation.
    world.clock.skewMs = 23 * HOUR_MS;
    expect((await sendTo(agent.agentId.toUpperCase(), authorization)).status).toBe(200);
    expect((await sendTo(foreign.id, theirs.authorization)).status).toBe(200);
  });

  test('an invalid body is a 400 that quotes nothing; one that is too large a 413', async () => {
    const agent_id = crypto.randomUUID();
    const sealed = 'sealed-sealed';
    for (const body of [
      {},
      [],
      { agent_id, platform_id: 'demo' },
      { agent_id, encrypted_secret: sealed },
      { platform_id: 'demo', encrypted_secret: sealed },
      { agent_id, platform_id: 'demo', encrypted_secret: 1 },
      { agent_id: { $ne: 1 }, platform_id: 'demo', encrypted_secret: sealed },
      { agent_id, platform_id: 'demo\u0000', encrypted_secret: sealed },
      { agent_id, platform_id: 'demo', encrypted_secret: sealed, secret: sealed },
      `{"encrypted_secret":"${sealed}"`,
    ]) {
      const answer = await post(body);
      expectEnvelope(answer, 400, 'invalid_request');
      expect(answer.text).not.toContain(sealed);
    }
    const large = { agent_id, platform_id: 'demo', encrypted_secret: 'x'.repeat(65 * 1024) };
    expectEnvelope(await post(large), 413, 'payload_too_large');
  });

  test('a secret that no call could send is explained to the authorised sender, and consumes nothing', async () => {
    const agent = await organisation.agent({ name: 'careless' });
    const { authorization } = await authorize(agent.agentId);
    for (const [secret, words] of [
      ['short', 'fewer than 8 characters'],
      ['', 'is empty'],
      ['line\r\nbreak: 123', 'no header can carry'],
    ] as const) {
      const answer = await sendTo(agent.id, authorization, secret);
      expectEnvelope(answer, 400, 'invalid_request');
      expect(answer.body.detail).toContain(words);
      if (secret !== '') expect(answer.text).not.toContain(secret);
    }
    expect((await sendTo(agent.id, authorization)).status).toBe(200);
  });

  test('an agent that was revoked meanwhile gets no secret; a suspended one does, and stays suspended', async () => {
    const [revoked, suspended] = [
      await organisation.agent({ name: 'to be revoked' }),
      await organisation.agent({ name: 'to be suspended' }),
    ];
    const [a, b] = [await authorize(revoked.agentId), await authorize(suspended.agentId)];
    await organisation.ask('POST', `/owner/agents/${revoked.id}/revoke`, {});
    await organisation.ask('POST', `/owner/agents/${suspended.id}/suspend`, {});
    expectRefused(await sendTo(revoked.id, a.authorization));
    expect((await sendTo(suspended.id, b.authorization)).status).toBe(200);
    expect((await suspended.act(READ)).body.reason).toBe('agent_suspended');
    const again = await organisation.ask('POST', '/owner/secret-authorizations', {
      agent: revoked.id,
      platform: 'demo',
    });
    expectEnvelope(again, 409, 'conflict');
  });

  test('an authorisation ends with its agent, also where a governance file creates one of the same name', async () => {
    const of = await world.demoOrganisation();
    const apply = async (agents: object) => {
      await expectStatus(200, of.ask('POST', '/owner/governance/apply', { text: JSON.stringify({ agents }) }));
    };
    await apply({ filed: { grants: { demo: { scopes: ['demo:read'] } } } });
    const [agent] = (await of.ask('GET', '/owner/agents')).body.agents;
    const { authorization, id } = await authorize(agent.id, {}, of);
    await apply({});
    const [listed] = (await of.ask('GET', '/owner/secret-authorizations')).body.authorizations;
    expect(listed).toMatchObject({ id, status: 'expired' });
    await apply({ filed: { grants: { demo: { scopes: ['demo:read'] } } } });
    expectRefused(await sendTo(agent.id, authorization));
  });

  test('KEY-01 a key that was altered in the store opens nothing, and nothing is consumed', async () => {
    const agent = await organisation.agent({ name: 'altered' });
    const { authorization } = await authorize(agent.agentId);
    const { kid } = await published();
    const key = () => world.db.updateTable('secret_keys').where('kid', '=', kid);
    const { private_key } = await world.db
      .selectFrom('secret_keys')
      .selectAll()
      .where('kid', '=', kid)
      .executeTakeFirstOrThrow();
    const altered = Buffer.from(private_key!);
    altered[altered.length - 1]! ^= 1;
    const encrypted_secret = await seal({ authorization, secret: OWN });
    await key().set({ private_key: altered }).execute();
    const refused = await post({ agent_id: agent.id, platform_id: 'demo', encrypted_secret });
    // It is not published either: the public half could be a foreign one.
    const asked = await send(`${world.running.baseUrl}/.well-known/svc-secret-keys.json`, {});
    await key().set({ private_key }).execute();
    expectEnvelope(refused, 503, 'credential_unreadable');
    expectEnvelope(asked, 503, 'credential_unreadable');
    expect((await sendTo(agent.id, authorization)).status).toBe(200);
  });

  test('neither the secret nor the authorisation is stored or shown in plain text', async () => {
    const agent = await organisation.agent({ name: 'kept dark' });
    const { authorization } = await authorize(agent.agentId);
    expect((await sendTo(agent.id, authorization)).status).toBe(200);
    await sentCredential(agent);
    const stored = (await storedRows(world.db))
      .flatMap(({ row }) => Object.values(row))
      .filter((value) => value !== null);
    const texts = stored.map((value) =>
      value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : String(value),
    );
    for (const path of ['secret-authorizations', 'connections', 'audit?limit=200', 'governance'])
      texts.push((await organisation.ask('GET', `/owner/${path}`)).text);
    for (const text of texts) {
      expect(text.includes(OWN)).toBe(false);
      expect(text.includes(authorization.slice(0, 30))).toBe(false);
    }
  });

  test('a secret that cannot be recorded is not bound, and nothing is consumed', async () => {
    const agent = await organisation.agent({ name: 'unrecorded' });
    const { authorization } = await authorize(agent.agentId);
    const before = await sentCredential(agent);
    await whileAuditRowsAreRefused(world, async () => {
      expectEnvelope(await sendTo(agent.id, authorization), 503, 'audit_unavailable');
      const asked = await organisation.ask('POST', '/owner/secret-authorizations', {
        agent: agent.id,
        platform: 'demo',
        label: 'never',
      });
      expectEnvelope(asked, 503, 'audit_unavailable');
    });
    expect(await sentCredential(agent)).toBe(before);
    expect((await organisation.ask('GET', '/owner/secret-authorizations')).text).not.toContain('never');
    expect((await sendTo(agent.id, authorization)).status).toBe(200);
  });

  test('authorisations are for admins, in their own organisation; a used one cannot be revoked', async () => {
    const agent = await organisation.agent({ name: 'authorised' });
    const path = '/owner/secret-authorizations';
    const asked = { agent: agent.agentId, platform: 'demo' };
    for (const role of ['viewer', 'approver'] as const) {
      const by = await organisation.addOwner(role);
      expectEnvelope(await organisation.ask('POST', path, asked, by), 403, 'forbidden');
      expect((await organisation.ask('GET', path, undefined, by)).status).toBe(200);
    }
    const other = await world.organisation();
    await other.platform();
    expectEnvelope(await other.ask('POST', path, asked), 404, 'not_found');
    expectEnvelope(await organisation.ask('POST', path, { ...asked, platform: 'x' }), 400, 'invalid_request');
    const conflicting = await organisation.ask('POST', path, { ...asked, scopes: ['demo:read'] });
    expectEnvelope(conflicting, 409, 'conflict');
    expectEnvelope(await organisation.ask('POST', path, { ...asked, label: 'demo-main' }), 409, 'conflict');
    const made = await authorize(agent.agentId);
    expectEnvelope(await other.ask('DELETE', `${path}/${made.id}`), 404, 'not_found');
    expect((await other.ask('GET', path)).body.authorizations).toEqual([]);
    // The label was taken meanwhile: the secret is stored under another one.
    const label = { platform: 'demo', label: made.label, secret: 'somebody-elses' };
    expect((await organisation.ask('POST', '/owner/connections', label)).status).toBe(201);
    expect((await sendTo(agent.id, made.authorization)).status).toBe(200);
    const labels = (await listConnections(world.db, organisation.id)).map((one) => one.label);
    expect(labels.filter((one) => one.startsWith(made.label))).toEqual([made.label, `${made.label}-2`]);
    expectEnvelope(await organisation.ask('DELETE', `${path}/${made.id}`), 409, 'conflict');
  });

  test('a rotated key is published immediately; the former key opens secrets for a day, then it is destroyed', async () => {
    const agent = await organisation.agent({ name: 'rotating' });
    const [a, b] = [await authorize(agent.agentId), await authorize(agent.agentId, { label: 'later' })];
    const before = await published();
    const [first, second] = [
      await seal({ authorization: a.authorization, secret: OWN }),
      await seal({ authorization: b.authorization, secret: OWN }),
    ];
    const body = { agent_id: agent.id, platform_id: 'demo' };
    const rotated = await send(`${world.running.baseUrl}/owner/keys/rotate`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${world.running.services.local.token.reveal()}`,
        'content-type': 'application/json',
      },
      body: '{"use":"secrets"}',
    });
    expect([rotated.status, rotated.body.use]).toEqual([200, 'secrets']);
    const after = await published();
    expect(after.kid).toBe(rotated.body.kid);
    expect(after.kid).not.toBe(before.kid);
    expect(after).toMatchObject({ kty: 'EC', crv: 'P-256', alg: 'ECDH-ES', use: 'enc' });
    expect(createPublicKey({ key: after as never, format: 'jwk' }).asymmetricKeyType).toBe('ec');
    expect(after).not.toHaveProperty('d');
    expect((await post({ ...body, encrypted_secret: first })).status).toBe(200);
    world.clock.skewMs = DECRYPTION_GRACE_MS + 1000;
    await destroyOldSecretKeys(world.running.broker, world.running.broker.clock());
    world.clock.skewMs = 0;
    expectRefused(await post({ ...body, encrypted_secret: second }));
    expect((await sendTo(agent.id, b.authorization)).status).toBe(200);
    await world.restart();
    expect((await published()).kid).toBe(after.kid);
  });
});
