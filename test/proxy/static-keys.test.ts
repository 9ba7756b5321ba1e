/** Static keys: a bearer token of an agent for one connection, for /proxy only, until it expires. */
import { sql } from 'kysely';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Answer, expectStatus, jsonRequest, send, type TestAgent } from '../world/agent.ts';
import { evidenceOf } from '../world/evidence.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { CANARY, type Organisation, startWorld, type World } from '../world/world.ts';
import { rawClient } from './raw-client.ts';

const DAY_S = 24 * 3600;

describe.each(ONE_STORE)(`static keys on %s${postgresNote}`, (store) => {
  let world: World;
  let organisation: Organisation;
  let agent: TestAgent;
  beforeAll(async () => {
    world = await startWorld(store);
    organisation = await world.organisation();
    await organisation.platform();
    await organisation.platform({ id: 'other' });
    await organisation.platform({ id: 'keyed', manifest: { auth: { type: 'header', name: 'X-Api-Key' } } });
    await organisation.platform({
      id: 'stored',
      manifest: { auth: { type: 'aws_sigv4', region: 'us-east-1', service: 's3' } },
      secret: JSON.stringify({ access_key_id: 'AKIACANARY0123456789', secret_access_key: CANARY }),
    });
    agent = await organisation.agent({ grants: { demo: {}, other: {}, keyed: {}, stored: {} } });
  });
  const issue = (wanted: Record<string, unknown> = {}, by = agent): Promise<Answer> =>
    organisation.ask('POST', `/owner/agents/${by.agentId}/static-keys`, {
      label: 'old client',
      connection: 'demo-main',
      ...wanted,
    });
  const issued = async (wanted: Record<string, unknown> = {}, by = agent): Promise<{ id: string; key: string }> => {
    const answer = await expectStatus(200, issue(wanted, by));
    return answer.body;
  };
  const revoke = ({ id }: { id: string }) =>
    organisation.ask('DELETE', `/owner/agents/${agent.agentId}/static-keys/${id}`);
  const listed = async () =>
    (await organisation.ask('GET', `/owner/agents/${agent.agentId}/static-keys`)).body.static_keys;
  const bearer = ({ key }: { key: string }) => ({ authorization: `Bearer ${key}` });
  const ask = (key: { key: string }, path = '/proxy/demo-main/items', by = agent) =>
    rawClient(() => by)('GET', path, { bare: true, headers: bearer(key) });

  test('is shown once, stored as a hash, listed without the secret, and recorded', async () => {
    const made = await issue({ connection: await connectionId('demo-main'), expires_in_seconds: 90 * DAY_S });
    expect(made.body).toMatchObject({
      key: expect.stringMatching(/^abk_[\w-]{43}$/),
      url: `${world.running.baseUrl}/proxy/demo-main`,
      status: 'live',
      label: 'old client',
      connection: { label: 'demo-main' },
      owner_id: organisation.owner.id,
      last_used_at: null,
    });
    const { id, key, created_at, expires_at } = made.body;
    expect(Date.parse(expires_at) - Date.parse(created_at)).toBe(90 * DAY_S * 1000);
    const rows = await world.db.selectFrom('static_keys').selectAll().execute();
    expect(JSON.stringify(rows)).not.toContain(key.slice(4));
    const all = await organisation.ask('GET', `/owner/agents/${agent.agentId}/static-keys`);
    expect(all.text).not.toContain(key.slice(4));
    expect(all.body.static_keys).toContainEqual(expect.objectContaining({ id, status: 'live' }));
    const { body } = await organisation.ask('GET', '/owner/audit?reason=static_key_issued');
    expect(body.rows[0]).toMatchObject({
      agent_public_id: agent.agentId,
      connection_id: await connectionId('demo-main'),
      flags: { change: { static_key: id, label: 'old client', expires_at, by: organisation.owner.id } },
    });
    expect(JSON.stringify(body)).not.toContain(key.slice(4));
  });

  const connectionId = async (label: string): Promise<string> =>
    (await organisation.ask('GET', '/owner/connections')).body.connections.find(
      (one: { label: string }) => one.label === label,
    ).id;

  test('is not accepted in a pre-signed URL, and the refusal says so', async () => {
    const made = await issued({ connection: 'stored-main' });
    const query = `X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=${made.key}%2F20261130%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Signature=00`;
    const answer = await rawClient(() => agent)('GET', `/proxy/stored-main/bucket/a.txt?${query}`, { bare: true });
    expect(answer.status, answer.text).toBe(401);
    expect(answer.text).toContain('Pre-signed URLs are not accepted');
    expect(answer.text).not.toContain(made.key);
  });

  test('authenticates the agent on its connection, in every place of a token, and is never forwarded; row and receipt name it', async () => {
    const made = await issued();
    const keyed = await issued({ connection: 'keyed-main' });
    const places: [string, Record<string, string>, { key: string }?][] = [
      ['/proxy/demo-main/items', { 'x-svc-authorization': `Bearer ${made.key}`, authorization: 'Bearer sk_any' }],
      ['/proxy/demo-main/items', bearer(made)],
      ['/proxy/demo-main/items', { authorization: `token ${made.key}` }],
      ['/proxy/demo-main/items', { authorization: `Basic ${btoa(`x:${made.key}`)}` }],
      ['/proxy/demo-main/items', { authorization: `Basic ${btoa(`${made.key}:`)}` }],
      [`/proxy/${await connectionId('demo-main')}/items`, bearer(made)],
      ['/proxy/keyed-main/items', { 'x-api-key': keyed.key }, keyed],
    ];
    for (const [path, headers, { key } = made] of places) {
      const answer = await rawClient(() => agent)('GET', path, { bare: true, headers });
      expect(answer.status, `${path} ${answer.text}`).toBe(200);
      expect(JSON.stringify(world.upstream.seen.at(-1)?.rawHeaders)).not.toContain(key);
    }
    const answer = await ask(made);
    const { row, payload } = await evidenceOf(world, agent, answer.headers.get('x-svc-audit-id') ?? '');
    expect(row).toMatchObject({ receipt_format: 4, result: 'allowed', flags: expect.stringContaining(made.id) });
    expect(payload).toMatchObject({ agent: agent.agentId, static_key: made.id });
    const signed = await rawClient(() => agent)('GET', '/proxy/demo-main/items');
    const own = await evidenceOf(world, agent, signed.headers.get('x-svc-audit-id') ?? '');
    expect(own.payload).not.toHaveProperty('static_key');
    const unused = (await listed()).find((one: { id: string }) => one.id === made.id);
    expect(unused).toMatchObject({ last_used_at: null });
    await world.running.services.staticKeyUses.write();
    const used = (await listed()).find((one: { id: string }) => one.id === made.id);
    expect(Date.now() - Date.parse(used.last_used_at)).toBeLessThan(60_000);
  });

  /** Signs like clients of AWS: with a secret that belongs to nobody. */
  const signedBy = (id: string) =>
    `AWS4-HMAC-SHA256 Credential=${id}/20260101/us-east-1/s3/aws4_request, SignedHeaders=host;x-amz-date, Signature=${'0'.repeat(64)}`;

  test('is accepted as an access key id when the platform uses AWS signatures, in the header only', async () => {
    const made = await issued({ connection: 'stored-main' });
    const asked = (path: string, headers: Record<string, string> = {}) =>
      rawClient(() => agent)('GET', path, { bare: true, headers });
    const path = '/proxy/stored-main/items';
    const signature = signedBy(made.key);
    for (const authorization of [signature, signature.replaceAll(', ', ','), signature.replace('AWS4', 'aws4')]) {
      const answer = await asked(path, {
        authorization,
        'x-amz-security-token': 'any',
        'x-amz-date': '20260101T000000Z',
      });
      expect(answer.status, answer.text).toBe(200);
      const { headers, rawHeaders } = world.upstream.seen.at(-1)!;
      expect(headers.authorization).toContain('Credential=AKIACANARY0123456789/');
      expect(headers).not.toHaveProperty('x-amz-security-token');
      expect(JSON.stringify(rawHeaders)).not.toContain(made.key);
      const { payload } = await evidenceOf(world, agent, answer.headers.get('x-svc-audit-id') ?? '');
      expect(payload).toMatchObject({ agent: agent.agentId, static_key: made.id });
    }

    const before = world.upstream.seen.length;
    const ofDemo = await issued();
    const flipped = made.key.slice(0, -2) + (made.key.at(-2) === 'A' ? 'B' : 'A') + made.key.at(-1);
    const [scheme, , ...rest] = signature.split(' ');
    const refused: [string, string, string][] = [
      [path, signedBy('AKIACANARY0123456789'), 'needs a static key'],
      [path, signedBy(agent.token()), 'needs a static key'],
      [path, signedBy(`${made.key}x`), 'needs a static key'],
      [path, `${scheme} ${rest.join(' ')}`, 'needs a static key'],
      [path, `${signature}, Credential=${made.key}/20260101/us-east-1/s3/aws4_request`, 'needs a static key'],
      [path, signature.replace('AWS4-HMAC-SHA256', 'AWS'), 'must be'],
      [path, signedBy(flipped), 'unknown'],
      ['/proxy/demo-main/items', signedBy(ofDemo.key), 'only on platforms of AWS Signature Version 4'],
    ];
    for (const [at, authorization, words] of refused) {
      const answer = await asked(at, { authorization });
      expect(answer, authorization).toMatchObject({ status: 401, text: expect.stringContaining(words) });
    }
    const elsewhere = await asked('/proxy/demo-main/items', { authorization: signature });
    expect(elsewhere).toMatchObject({ status: 404, text: expect.stringContaining('one connection only') });
    const query = new URLSearchParams({
      'X-Amz-Algorithm': 'AWS4-HMAC-SHA256',
      'X-Amz-Credential': `${made.key}/20260101/us-east-1/s3/aws4_request`,
      'X-Amz-Signature': '0'.repeat(64),
    });
    expect(await asked(`${path}?${query}`)).toMatchObject({ status: 401, body: { error: 'missing_token' } });
    expect(await asked(`${path}?${query}`, { authorization: signature })).toMatchObject({ status: 400 });
    expect(await asked(path, { authorization: signature, 'x-amz-security-token': made.key })).toMatchObject({
      status: 400,
    });
    expect(world.upstream.seen.length).toBe(before);
    expect((await asked(path, { authorization: signedBy(made.key) })).status).toBe(200);
    await organisation.ask('DELETE', `/owner/agents/${agent.agentId}/static-keys/${made.id}`);
    const revoked = await asked(path, { authorization: signature });
    expect(revoked).toMatchObject({ status: 401, text: expect.stringContaining('was revoked') });
    await world.forgive();
  });

  test('is refused everywhere else', async () => {
    const made = await issued();
    const before = world.upstream.seen.length;
    const action = { platform: 'demo', endpoint: '/items', method: 'GET', scope: 'demo:read' };
    const elsewhere: [string, string, unknown?][] = [
      ['POST', '/v1/actions', action],
      ['GET', '/v1/agents/me'],
      ['POST', '/v1/agents/children', { grants: [] }],
      ['GET', '/v1/agent/permissions'],
      ['GET', '/v1/agents/me/pending-actions'],
      ['POST', '/access/v1/evaluation', {}],
      ['GET', '/owner/agents'],
      ['POST', `/owner/agents/${agent.agentId}/static-keys`, { label: 'more', connection: 'demo-main' }],
      ['POST', '/mcp', {}],
    ];
    for (const [method, path, body] of elsewhere) {
      const answer = await send(world.running.baseUrl + path, jsonRequest(method, body, bearer(made)));
      expect(answer, `${method} ${path}`).toMatchObject({ status: 401 });
      expect(answer.text, path).toContain('A static key is valid only below /proxy/');
    }
    const git = await send(`${world.running.baseUrl}/git/acme/app.git/info/refs?service=git-upload-pack`, {
      headers: { authorization: `Basic ${btoa(`x:${made.key}`)}` },
    });
    expect(git).toMatchObject({ status: 401, text: expect.stringContaining('static key') });

    const elsewhereOnTheBroker: [string, string][] = [
      ['/proxy/other-main/items', 'one connection only: use /proxy/demo-main/'],
      [`/proxy/${await connectionId('other-main')}/items`, 'one connection only'],
      ['/proxy/nothing/items', 'one connection only'],
    ];
    for (const [path, words] of elsewhereOnTheBroker) {
      const answer = await ask(made, path);
      expect(answer, path).toMatchObject({ status: 404, text: expect.stringContaining(words) });
      const { row } = await evidenceOf(world, agent, answer.headers.get('x-svc-audit-id') ?? answer.body.audit_id);
      expect(row.flags).toContain(made.id);
      expect(answer.text).not.toContain('keyed-main');
    }
    const inAddress = await rawClient(() => agent)('GET', `/proxy/demo-main/items?key=${made.key}`, { bare: true });
    expect(inAddress).toMatchObject({ status: 401, body: { error: 'missing_token' } });
    for (const twice of [{ 'x-other': made.key }, { cookie: `k=${made.key}` }])
      expect(
        await rawClient(() => agent)('GET', '/proxy/demo-main/items', {
          bare: true,
          headers: { ...bearer(made), ...twice },
        }),
      ).toMatchObject({ status: 400 });
    // A place where this platform accepts no key.
    const misplaced = await rawClient(() => agent)('GET', '/proxy/demo-main/items', {
      bare: true,
      headers: { 'x-api-key': made.key },
    });
    expect(misplaced).toMatchObject({ status: 401, text: expect.stringContaining('does not accept keys') });
    expect(world.upstream.seen.length).toBe(before);
    await world.forgive();
  });

  test('answers 401 at the next request when it is unknown, malformed, revoked or expired', async () => {
    const before = world.upstream.seen.length;
    const made = await issued({ expires_in_seconds: 3600 });
    const flipped = made.key.slice(0, -2) + (made.key.at(-2) === 'A' ? 'B' : 'A') + made.key.at(-1);
    for (const key of [flipped, 'abk_', 'abk_short', `${made.key}x`])
      expect(await ask({ key }), key).toMatchObject({ status: 401, body: { error: 'invalid_token' } });
    expect(world.upstream.seen.length).toBe(before);
    expect((await ask(made)).status).toBe(200);
    world.clock.skewMs = 3600 * 1000 + 1;
    const expired = await ask(made);
    expect((await listed()).find((one: { id: string }) => one.id === made.id)).toMatchObject({ status: 'expired' });
    expect(await revoke(made)).toMatchObject({ status: 409 });
    world.clock.skewMs = 0;
    expect(expired).toMatchObject({ status: 401, body: { error: 'token_expired' } });
    expect(expired.headers.get('www-authenticate')).toMatch(/^Bearer/);
    const revoked = await revoke(made);
    expect(revoked.body).toMatchObject({ id: made.id, status: 'ended', ended_because: 'owner' });
    expect(await ask(made)).toMatchObject({ status: 401, text: expect.stringContaining('was revoked') });
    expect(await revoke(made)).toMatchObject({ status: 409 });
    const { body } = await organisation.ask('GET', '/owner/audit?reason=static_key_revoked');
    expect(body.rows[0].flags.change).toMatchObject({ static_key: made.id, label: 'old client' });
  });

  test('everything that halts the agent halts its keys', async () => {
    const stopped = await organisation.agent({ name: 'stopped' });
    const made = await issued({}, stopped);
    const moves: [string, number, string | undefined][] = [
      ['suspend', 403, 'agent_halted'],
      ['resume', 200, undefined],
      ['revoke', 401, 'invalid_token'],
    ];
    for (const [verb, status, error] of moves) {
      await organisation.ask('POST', `/owner/agents/${stopped.agentId}/${verb}`, {});
      const answer = await ask(made, undefined, stopped);
      expect([answer.status, answer.body.error], verb).toEqual([status, error]);
    }
    const keys = await organisation.ask('GET', `/owner/agents/${stopped.agentId}/static-keys`);
    expect(keys.body.static_keys[0]).toMatchObject({ status: 'ended', ended_because: 'agent' });
    expect(await issue({}, stopped)).toMatchObject({ status: 409 });

    const gone = await organisation.agent({ name: 'gone' });
    const orphan = await issued({}, gone);
    await world.db.updateTable('agents').set({ status: 'deleted' }).where('id', '=', gone.id).execute();
    expect(await ask(orphan, undefined, gone)).toMatchObject({ status: 401, body: { error: 'invalid_token' } });

    const lapsed = await organisation.agent({ name: 'lapsed', grants: { demo: { expires_at: Date.now() - 1 } } });
    const late = await ask(await issued({}, lapsed), undefined, lapsed);
    expect(late).toMatchObject({ status: 403 });
    const bare = await organisation.agent({ name: 'bare', grants: {} });
    const nothing = await ask(await issued({}, bare), undefined, bare);
    expect(nothing).toMatchObject({ status: 404, text: expect.stringContaining('has no grant on its connection') });
  });

  test('ends with its connection, even when another one gets the same name', async () => {
    await organisation.platform({ id: 'passing' });
    const passing = await organisation.agent({ name: 'passing', grants: { passing: {} } });
    const made = await issued({ connection: 'passing-main' }, passing);
    expect((await ask(made, '/proxy/passing-main/items', passing)).status).toBe(200);
    await expectStatus(200, organisation.ask('DELETE', `/owner/connections/${await connectionId('passing-main')}`));
    await organisation.connection('passing');
    expect(await ask(made, '/proxy/passing-main/items', passing)).toMatchObject({ status: 401 });
    const keys = await organisation.ask('GET', `/owner/agents/${passing.agentId}/static-keys`);
    expect(keys.body.static_keys[0]).toMatchObject({ ended_because: 'connection', connection: { label: null } });
    const { body } = await organisation.ask('GET', '/owner/audit?reason=connection_removed');
    expect(body.rows[0].flags.change).toMatchObject({ label: 'passing-main', static_keys: 1 });
  });

  test('ends when a file moves its connection to another platform', async () => {
    const other = await world.organisation();
    for (const id of ['first', 'second']) await other.platform({ id });
    const both = await other.agent({ name: 'both', grants: { first: {}, second: {} } });
    const keys = `/owner/agents/${both.agentId}/static-keys`;
    const made = await other.ask('POST', keys, { label: 'old client', connection: 'first-main' });
    expect((await ask(made.body, '/proxy/first-main/items', both)).status).toBe(200);
    const second = { platform: 'second', default: true };
    const text = JSON.stringify({ connections: { 'first-main': { platform: 'second' }, 'second-main': second } });
    const moved = await expectStatus(200, other.ask('POST', '/owner/governance/apply', { text, values: {} }));
    const change = moved.body.changes.find(({ name }: { name: string }) => name === 'first-main');
    expect(change.details).toContainEqual(expect.stringContaining('static keys for it end'));
    expect(await ask(made.body, '/proxy/first-main/items', both)).toMatchObject({ status: 401 });
    const { body } = await other.ask('GET', keys);
    expect(body.static_keys[0]).toMatchObject({ status: 'ended', ended_because: 'connection' });
    // The connection's secret is moved with it.
    const { connections } = (await other.ask('GET', '/owner/connections')).body;
    const first = connections.find(({ label }: { label: string }) => label === 'first-main');
    expect(first).toMatchObject({ platform: 'second', state: 'connected' });
    const tested = await other.ask('POST', `/owner/connections/${first.id}/test`, {});
    expect(tested.body, tested.text).toMatchObject({ ok: true, upstream_status: 200 });
  });

  test('returns the result of a held call, and none once the key has ended', async () => {
    const made = await issued();
    const write = (body: string, wait: string) =>
      rawClient(() => agent)('POST', '/proxy/demo-main/items', {
        body,
        bare: true,
        headers: { ...bearer(made), 'x-svc-wait': wait },
      });
    const held = await write('{"held":1}', '0');
    expect(held).toMatchObject({ status: 403, body: { error: 'approval_pending' } });
    await organisation.approve(held.body.approval_id);
    expect(await write('{"held":1}', '0')).toMatchObject({ status: 200, body: { body: '{"held":1}' } });
    const waiting = write('{"held":2}', '20');
    const joined = await write('{"held":2}', '0');
    await revoke(made);
    await organisation.approve(joined.body.approval_id);
    expect(await waiting).toMatchObject({ status: 401, text: expect.stringContaining('ended while') });
  });

  test('while the store cannot be read, its client is not told that the key has ended', async () => {
    const made = await issued();
    const write = (wait: string) =>
      rawClient(() => agent)('POST', '/proxy/demo-main/items', {
        body: '{"held":3}',
        bare: true,
        headers: { ...bearer(made), 'x-svc-wait': wait },
      });
    const waiting = write('20');
    const joined = await write('0');
    await sql`alter table static_keys rename to static_keys_away`.execute(world.db);
    try {
      await organisation.approve(joined.body.approval_id);
      const { status, body } = await waiting;
      expect([status, body.error]).toEqual(store === 'sqlite' ? [503, 'store_unavailable'] : [500, 'internal_error']);
    } finally {
      await sql`alter table static_keys_away rename to static_keys`.execute(world.db);
    }
    expect(await write('0')).toMatchObject({ status: 200, body: { body: '{"held":3}' } });
  });

  test('is issued by admins only, within bounds', async () => {
    const refused: [Record<string, unknown>, number][] = [
      [{ expires_in_seconds: 90 * DAY_S + 1 }, 400],
      [{ expires_in_seconds: 0 }, 400],
      [{ expires_in_seconds: 3600.5 }, 400],
      [{ expires_in_seconds: null }, 400],
      [{ label: '' }, 400],
      [{ label: 'x'.repeat(101) }, 400],
      [{ connection: 'demo-mein' }, 400],
      [{ connection: '' }, 400],
      [{ scope: 'all' }, 400],
    ];
    for (const [wanted, status] of refused)
      expect(await issue(wanted), JSON.stringify(wanted)).toMatchObject({ status });
    expect((await issue({ connection: 'demo-mein' })).body.detail).toContain('Did you mean "demo-main"?');
    const path = `/owner/agents/${agent.agentId}/static-keys`;
    const wanted = { label: 'x', connection: 'demo-main' };
    for (const role of ['viewer', 'approver'] as const) {
      const owner = await organisation.addOwner(role);
      expect(await organisation.ask('POST', path, wanted, owner)).toMatchObject({ status: 403 });
      expect(await organisation.ask('GET', path, undefined, owner)).toMatchObject({ status: 200 });
    }
    const other = await world.organisation();
    expect(await other.ask('POST', path, wanted)).toMatchObject({ status: 404 });
    expect(await other.ask('GET', path)).toMatchObject({ status: 404 });
    const client = await organisation.agent({ name: 'client', agent: { agent_type: 'mcp_client' } });
    expect(await issue({}, client)).toMatchObject({ status: 409 });
    const busy = await organisation.agent({ name: 'busy' });
    for (let i = 0; i < 20; i++) await issued({}, busy);
    expect(await issue({}, busy)).toMatchObject({ status: 409, text: expect.stringContaining('20 static keys') });
  });
});

test('a valid key is not blocked by other keys refused from the same address', async () => {
  const world = await startWorld('sqlite', { AGENT_BROKER_LIMIT_FACTOR: '0.05' });
  const organisation = await world.demoOrganisation();
  const agent = await organisation.agent();
  const { body } = await organisation.ask('POST', `/owner/agents/${agent.agentId}/static-keys`, {
    label: 'steady',
    connection: 'demo-main',
  });
  const ask = (key: string) =>
    rawClient(() => agent)('GET', '/proxy/demo-main/items', {
      bare: true,
      headers: { authorization: `Bearer ${key}` },
    });
  expect((await ask(body.key)).status).toBe(200);
  const wrong = `abk_${'A'.repeat(43)}`;
  const statuses = new Set<number>();
  for (let i = 0; i < 20; i++) statuses.add((await ask(wrong)).status);
  expect([...statuses]).toEqual([401, 429]);
  expect((await ask(body.key)).status).toBe(200);
});
