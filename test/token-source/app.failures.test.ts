/** Refusals and misbehaviour of an App's platform: each gives an error that says who can fix it, and nothing is sent. */
import { describe, expect, test } from 'vitest';
import type { TestAgent } from '../world/agent.ts';
import { auditIdOf, evidenceOf } from '../world/evidence.ts';
import { INSTALLATION } from '../world/servers/app-platform.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { callOf, givenAppWorld, READ, WRITE } from './app-world.ts';

const ISSUES = callOf('GET', '/repos/acme/app/issues', 'issues.read');

describe.each(ONE_STORE)(`failures of an App on %s${postgresNote}`, (store) => {
  const app = givenAppWorld(store);
  const { host, world, organisation } = app;

  const connection = async () => (await organisation.ask('GET', '/owner/connections')).body.connections[0];
  const test_ = async () =>
    (await organisation.ask('POST', `/owner/connections/${(await connection()).id}/test`, {})).body;
  /** Expects a 409 with this text and its row; nothing reached the API. */
  async function refused(agent: TestAgent, words: RegExp, call = READ): Promise<void> {
    const answer = await agent.act(call);
    expect([answer.status, answer.body.error], answer.text).toEqual([409, 'platform_reauth_needed']);
    expect(answer.body.message).toMatch(words);
    expect(answer.body.message).toContain('Nothing was sent');
    const { row } = await evidenceOf(world, agent, auditIdOf(answer));
    expect(row).toMatchObject({ result: 'errored', reason: 'platform_reauth_needed', upstream_status: null });
    expect(row.detail).toMatch(words);
    expect(host.calls).toEqual([]);
  }
  const told = (status: number, body: unknown, headers: Record<string, string> = {}) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    host.instead = (path) => (path.startsWith('/app/') ? { status, body: text, headers } : undefined);
  };
  /** Failures are cached for two seconds. */
  const later = () => {
    world.clock.skewMs += 3_000;
  };

  test('a suspended installation is reported to agent and owner and by the connection; after it is unsuspended calls succeed', async () => {
    const agent = await app.agent();
    host.installations.get(INSTALLATION)!.suspended = true;
    await refused(agent, /installation 42000001 of the App 4711 is suspended.*unsuspend/);
    expect((await connection()).state).toBe('reauth_needed');
    later();
    expect(await test_()).toMatchObject({
      ok: false,
      upstream_status: null,
      detail: expect.stringMatching(/suspended/),
    });
    host.installations.get(INSTALLATION)!.suspended = false;
    later();
    expect((await agent.act(READ)).status).toBe(200);
    expect((await connection()).state).toBe('connected');
    expect(await test_()).toMatchObject({ ok: true });
  });

  test('an uninstalled App and a deleted key are reported; with valid ones calls succeed', async () => {
    const agent = await app.agent();
    host.installations.clear();
    await refused(agent, /knows no installation 42000001/);
    host.reset();
    const old = host.pem;
    const pem = host.rotate();
    later();
    await refused(agent, /refused the signature of the App 4711/);
    expect((await app.apply({ pem: old })).body.changes).toEqual([]);
    const applied = await app.apply({ pem });
    expect(applied.body.changes.flatMap((change: { details: string[] }) => change.details)).toEqual([
      'auth.private_key: changed',
    ]);
    later();
    expect((await agent.act(READ)).status).toBe(200);
  });

  test('a permission or repository that the installation lacks fails that call only', async () => {
    const agent = await app.agent({ repos: ['acme/*', 'other/app'] });
    delete host.installations.get(INSTALLATION)!.permissions.issues;
    await refused(
      agent,
      /has not what this call needs: issues: read on acme\/app.*gives the App the permissions/,
      ISSUES,
    );
    await refused(agent, /contents: read on acme\/hidden/, { ...READ, endpoint: '/repos/acme/hidden/contents/a' });
    // The platform takes only the name of a repository: the token would be for acme/app.
    await refused(agent, /issued no token for other\/app alone/, { ...READ, endpoint: '/repos/other/app/contents/a' });
    expect((await connection()).state).toBe('connected');
    expect((await agent.act(READ)).status).toBe(200);
  });

  test.each<[string, number, unknown, Record<string, string>]>([
    ['is down', 503, 'down', {}],
    ['limits requests', 403, { message: 'API rate limit exceeded' }, { 'x-ratelimit-remaining': '0' }],
    ['limits requests for a while', 429, {}, { 'retry-after': '60' }],
    ['answers nothing', 201, '', {}],
    ['answers no JSON', 201, '<html>', {}],
    ['answers a list', 201, [], {}],
    ['answers no token', 201, { expires_at: '2126-01-01T00:00:00Z' }, {}],
    ['answers a short token', 201, { token: 'abc', expires_at: '2126-01-01T00:00:00Z' }, {}],
    [
      'answers a token that no header carries',
      201,
      { token: 'ghs_0123456789\r\nx: y', expires_at: '2126-01-01T00:00:00Z' },
      {},
    ],
    ['answers a token without an expiry', 201, { token: 'ghs_0123456789' }, {}],
    ['answers an expired token', 201, { token: 'ghs_0123456789', expires_at: '2001-01-01T00:00:00Z' }, {}],
    ['answers an invalid expiry', 201, { token: 'ghs_0123456789', expires_at: 'soon' }, {}],
    ['answers 10 MB', 201, { token: 'ghs_0123456789', expires_at: '2126-01-01T00:00:00Z', more: 'x'.repeat(1e7) }, {}],
  ])('a platform that %s: 502, nothing is sent, and the connection is unchanged', async (_, status, body, headers) => {
    // Without a list of repositories, so that the answer need not contain one.
    const agent = await app.agent({});
    told(status, body, headers);
    const answer = await agent.act(WRITE);
    expect([answer.status, answer.body.error], answer.text).toEqual([502, 'upstream_unreachable']);
    expect(answer.body).toMatchObject({ code: 'token_unavailable', outcome: 'not_sent' });
    const { row } = await evidenceOf(world, agent, auditIdOf(answer));
    expect(row).toMatchObject({ result: 'errored', reason: 'upstream_unreachable' });
    expect(host.calls).toEqual([]);
    expect((await connection()).state).toBe('connected');
    host.instead = undefined;
    later();
    expect((await agent.act(WRITE)).status).toBe(200);
  });

  test('a token for more than the requested repository is rejected', async () => {
    const agent = await app.agent();
    const token = { token: 'ghs_0123456789', expires_at: '2126-01-01T00:00:00Z' };
    for (const repositories of [
      undefined,
      [],
      [{ full_name: 'acme/web' }],
      [{ full_name: 'acme/app' }, { full_name: 'acme/web' }],
    ]) {
      told(201, { ...token, ...(repositories && { repositories }) });
      await refused(agent, /issued no token for acme\/app alone/);
      later();
    }
    told(201, { ...token, repositories: [{ full_name: 'Acme/App' }] });
    host.issued.set(token.token, {
      installation: INSTALLATION,
      permissions: { contents: 'read' },
      expiresAt: Infinity,
    });
    expect((await agent.act(READ)).status).toBe(200);
  });

  test.runIf(store === 'sqlite')(
    'a platform that is too slow to issue one: 502 after ten seconds',
    async () => {
      const agent = await app.agent();
      host.slowMs = 12_000;
      const answer = await agent.act(READ);
      expect([answer.status, answer.body.code], answer.text).toEqual([502, 'token_unavailable']);
      host.slowMs = 0;
      // The late token was not used.
      await new Promise((resolve) => setTimeout(resolve, 2_500));
      later();
      expect((await agent.act(READ)).status).toBe(200);
      expect(host.issued.size).toBe(2);
    },
    30_000,
  );

  test('a forbidden address is not asked for tokens', async () => {
    expect((await app.apply({ platform: { base_url: 'http://127.0.0.1:9' } })).status).toBe(200);
    const answer = await (await app.agent()).act(READ);
    expect([answer.status, answer.body.code], answer.text).toEqual([502, 'token_unavailable']);
    expect(answer.body.detail).toContain('is not one that this broker may connect to');
  });

  test('a redirect of the token request is not followed', async () => {
    told(302, '', { location: 'http://127.0.0.1:1/' });
    await refused(await app.agent(), /answered 302 .* Is base_url the address of its REST API/);
  });

  test('a failed token request is cached briefly: 100 concurrent calls make one request', async () => {
    host.installations.get(INSTALLATION)!.suspended = true;
    const agent = await app.agent();
    const answers = await Promise.all(Array.from({ length: 16 }, () => agent.act(READ)));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 409));
    await agent.act(READ);
    expect(host.exchanges).toHaveLength(1);
  });

  test('a token that the platform refuses is replaced, and the call is sent once more', async () => {
    const agent = await app.agent();
    expect((await agent.act(WRITE)).status).toBe(200);
    const [first] = host.issued.keys();
    host.issued.clear();
    world.clock.skewMs = 60_000;
    expect((await agent.act(WRITE)).status).toBe(200);
    expect(host.exchanges).toHaveLength(2);
    expect(host.calls.map(({ token }) => token === first)).toEqual([true, true, false]);
    expect((await agent.act(WRITE)).status).toBe(200);
    expect(host.exchanges).toHaveLength(2);
  });

  test('a platform that refuses every token gets two exchanges, then the connection needs an owner', async () => {
    const agent = await app.agent();
    expect((await agent.act(READ)).status).toBe(200);
    world.clock.skewMs = 60_000;
    host.instead = (path) => (path.startsWith('/repos/') ? { status: 401, body: '{}' } : undefined);
    const answer = await agent.act(READ);
    expect([answer.status, answer.body._meta?.upstream_status], answer.text).toEqual([200, 401]);
    expect(host.exchanges).toHaveLength(2);
    const second = await agent.act({ ...READ, endpoint: '/repos/acme/app/contents/other' });
    expect([second.status, second.body.error]).toEqual([409, 'platform_reauth_needed']);
    expect(host.exchanges).toHaveLength(2);
    expect((await connection()).state).toBe('reauth_needed');
  });

  test('a stored token that was altered, or belongs to another organisation, is replaced', async () => {
    const agent = await app.agent();
    expect((await agent.act(READ)).status).toBe(200);
    const row = () =>
      world.db
        .selectFrom('upstream_tokens')
        .selectAll()
        .where('organisation_id', '=', organisation.id)
        .executeTakeFirstOrThrow();
    const altered = Buffer.from((await row()).token!);
    altered[altered.length - 1]! ^= 1;
    await world.db
      .updateTable('upstream_tokens')
      .set({ token: altered })
      .where('id', '=', (await row()).id)
      .execute();
    await world.restart();
    host.now = () => world.running.broker.clock();
    expect((await agent.act(READ)).status).toBe(200);
    expect(host.exchanges).toHaveLength(2);
    const { vault } = world.running.broker;
    const { id, token } = await row();
    expect(() => vault.open({ table: 'upstream_tokens', organisationId: 'another', rowId: id }, token!)).toThrow();
  });

  test('a key that cannot be opened is reported as missing', async () => {
    const agent = await app.agent();
    await world.db
      .updateTable('platform_secrets')
      .set({ value: Buffer.alloc(200, 1) })
      .where('organisation_id', '=', organisation.id)
      .execute();
    await refused(agent, /private key is not stored, or cannot be opened/);
  });
});
