/** Creating single platforms, testing credentials, and invites with limits. */
import { beforeEach, describe, expect, test } from 'vitest';
import { expectStatus, jsonPost, makeKeyPair, send } from '../world/agent.ts';
import { leaksOf } from '../world/canary.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { everythingStored } from '../world/store-contents.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL, givenWorld, shared } from '../world/world.ts';

const GOOD = 'ghp_CANARYgoodgoodgoodgoodgoodgoodgood12';
const BAD = 'ghp_CANARYbadbadbadbadbadbadbadbadbadbad1';

describe.each(ONE_STORE)(`creating platforms on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.organisation());
  const ask = (method: string, path: string, body?: unknown) => organisation.ask(method, path, body);

  beforeEach(() => {
    // GitHub's answer (REST API, "Get the authenticated user").
    world.upstream.answer = (request, response) => {
      const isGood = request.headers.authorization === `Bearer ${GOOD}`;
      response.writeHead(isGood ? 200 : 401, {
        'content-type': 'application/json',
        ...(isGood && {
          'x-oauth-scopes': 'repo:status, read:org, gist',
          'github-authentication-token-expiration': '2030-01-31 10:00:00 UTC',
        }),
      });
      response.end(JSON.stringify(isGood ? { login: 'ann' } : { message: 'Bad credentials' }));
    };
  });

  const entry = () => ({
    use: 'github',
    base_url: world.upstream.url,
    oauth: { account: { url: `${world.upstream.url}/user`, pointer: '/login' } },
  });

  test('a built-in platform is created once, and can be removed when nothing uses it', async () => {
    const made = await expectStatus(201, ask('POST', '/owner/platforms', { platform: 'codehost', entry: entry() }));
    expect(made.body).toMatchObject({ platform_id: 'codehost', name: 'GitHub', builtin: 'github', version: 1 });
    expect(made.body.presets.map(({ name }: { name: string }) => name)).toEqual([
      'read',
      'issues',
      'review',
      'code',
      'everything',
    ]);
    expect(made.body.presets[1].scopes).toContain('codehost:issues.write');
    expect(made.body.presets.at(-1).scopes).toHaveLength(made.body.scopes.length);
    const again = await ask('POST', '/owner/platforms', { platform: 'codehost', entry: { use: 'slack' } });
    expectEnvelope(again, 409, 'conflict');
    expect((await ask('GET', '/owner/platforms/codehost')).body.builtin).toBe('github');

    const connection = await ask('POST', '/owner/connections', { platform: 'codehost', label: 'gh', secret: GOOD });
    expectEnvelope(await ask('DELETE', '/owner/platforms/codehost'), 409, 'conflict');
    const tested = await ask('POST', `/owner/connections/${connection.body.id}/test`);
    expect(tested.body).toMatchObject({
      ok: true,
      upstream_status: 200,
      account: 'ann',
      expires_at: '2030-01-31T10:00:00.000Z',
      granted_scopes: ['repo:status', 'read:org', 'gist'],
    });
    const lacking = new Map(
      tested.body.lacking.map((one: { scope: string; needs: string[] }) => [one.scope, one.needs]),
    );
    expect(lacking.get('codehost:issues.write')).toEqual(['repo', 'public_repo']);
    expect([lacking.has('codehost:statuses.write'), lacking.has('codehost:gists.write')]).toEqual([false, false]);

    await ask('POST', `/owner/connections/${connection.body.id}/secret`, { secret: BAD });
    const refused = await ask('POST', `/owner/connections/${connection.body.id}/test`);
    expect(refused.body).toMatchObject({ ok: false, upstream_status: 401, account: null, granted_scopes: null });
    expect(refused.text).not.toContain('Bad credentials');

    await ask('DELETE', `/owner/connections/${connection.body.id}`);
    expect((await ask('DELETE', '/owner/platforms/codehost')).body).toEqual({ platform_id: 'codehost', removed: true });
    expectEnvelope(await ask('DELETE', '/owner/platforms/codehost'), 404, 'not_found');
    const { rows } = (await ask('GET', '/owner/audit')).body;
    expect(rows.map((row: { reason: string }) => row.reason)).toEqual(
      expect.arrayContaining(['platform_created', 'platform_removed']),
    );
  });

  test('a platform can be removed although a deleted agent and its child still have grants on it', async () => {
    const platform = 'passing';
    await expectStatus(201, ask('POST', '/owner/platforms', { platform, entry: entry() }));
    const scopes = ['codehost:issues.read'];
    const agent = await organisation.agent({ rules: ALLOW_ALL, grants: { [platform]: { scopeList: scopes } } });
    await expectStatus(201, agent.post('/v1/agents/children', { grants: [{ platform, scopes }] }));
    const refused = await ask('DELETE', `/owner/platforms/${platform}`);
    expectEnvelope(refused, 409, 'conflict');
    expect(refused.body.detail).toContain(agent.agentId);
    for (const verb of ['revoke', 'delete'])
      await expectStatus(200, ask('POST', `/owner/agents/${agent.id}/${verb}`, {}));
    expect((await ask('DELETE', `/owner/platforms/${platform}`)).body).toEqual({
      platform_id: platform,
      removed: true,
    });
  });

  test('the account is requested only from the host that gets the credential, and a refusal with status 200 is detected', async () => {
    const elsewhere = { url: 'http://127.0.0.1:1/user', pointer: '/login' };
    await ask('POST', '/owner/platforms', { platform: 'away', entry: { ...entry(), oauth: { account: elsewhere } } });
    const away = await ask('POST', '/owner/connections', { platform: 'away', label: 'away', secret: GOOD });
    const seen = world.upstream.seen.length;
    const tested = await ask('POST', `/owner/connections/${away.body.id}/test`);
    expect(tested.body).toMatchObject({ ok: true, account: null });
    expect(world.upstream.seen.slice(seen).map(({ target }) => target)).toEqual(['/']);
    // Slack's refusal (auth.test).
    world.upstream.answer = (_, response) => response.end('{"ok":false,"error":"invalid_auth"}');
    await ask('POST', '/owner/platforms', { platform: 'chat', entry: entry() });
    const chat = await ask('POST', '/owner/connections', { platform: 'chat', label: 'chat', secret: BAD });
    const refused = await ask('POST', `/owner/connections/${chat.body.id}/test`);
    expect(refused.body).toMatchObject({ ok: false, upstream_status: 200, account: null });
    expect(refused.body.detail).toContain('refused the credential');
    // An account need not have a name, as with Notion's workspaces.
    world.upstream.answer = (_, response) => response.end('{"login":null}');
    const nameless = await ask('POST', `/owner/connections/${chat.body.id}/test`);
    expect(nameless.body).toMatchObject({ ok: true, upstream_status: 200, account: null });
  });

  test('with OAuth: exactly the secrets that its auth references are required', async () => {
    const auth = { type: 'oauth2', client_id: 'abc', client_secret: { env: 'GH_SECRET' } };
    const body = { platform: 'oauth', entry: { use: 'github', auth } };
    const missing = await ask('POST', '/owner/platforms', body);
    expectEnvelope(missing, 400, 'invalid_request');
    expect(missing.body.detail).toContain('secrets.client_secret: is missing');
    const other = await ask('POST', '/owner/platforms', {
      ...body,
      secrets: { client_secret: GOOD, private_key: BAD },
    });
    expect(other.body.detail).toContain('secrets.private_key: is not referenced');
    const made = await ask('POST', '/owner/platforms', { ...body, secrets: { client_secret: GOOD } });
    expect([made.status, made.text.includes(GOOD)], made.text).toEqual([201, false]);
    expect((await ask('GET', '/owner/governance')).body.text).toContain('GH_SECRET');
    const app = { type: 'app', app_id: '1', private_key: { env: 'K' }, installation_id: '2' };
    const key = { platform: 'app', entry: { use: 'github', auth: app }, secrets: { private_key: 'no key' } };
    expectEnvelope(await ask('POST', '/owner/platforms', key), 400, 'invalid_request');
    for (const [place, bytes] of await everythingStored(world.environment))
      expect([place, leaksOf(GOOD, bytes)]).toEqual([place, []]);
  });

  test('an invalid platform is refused with its problems', async () => {
    for (const [entry, says] of [
      [{ use: 'gitlab' }, 'entry.use:'],
      [{ use: 'jira' }, 'entry.base_url:'],
      [{ kind: 'rest', auth: { type: 'bearer' }, scopes: {} }, 'entry.base_url: is missing: send a string.'],
      [{ use: 'github', base_url: 'http://github.example' }, 'entry.base_url: must begin with "https://"'],
      [{}, 'entry.kind:'],
    ] as const) {
      const refused = await ask('POST', '/owner/platforms', { platform: 'none', entry });
      expectEnvelope(refused, 400, 'invalid_request');
      expect([refused.body.detail, ...refused.body.problems].join('\n')).toContain(says);
      expect(refused.text).not.toContain('Invalid input');
    }
    expectEnvelope(await ask('POST', '/owner/platforms', { platform: '../x', entry: entry() }), 400, 'invalid_request');
    expectEnvelope(await ask('GET', '/owner/platforms/none'), 404, 'not_found');
  });

  test('an invite with limits creates a grant with them, whose duration starts at the binding', async () => {
    await ask('POST', '/owner/platforms', { platform: 'limited', entry: entry() });
    const terms = {
      repos: ['acme/*'],
      recipients: ['@acme.example'],
      expires_in_seconds: 3600,
      require_approval: true,
    };
    const grants = [
      { platformId: 'limited', scopes: ['codehost:issues.read'], ...terms },
      { platformId: 'limited', scopes: ['codehost:issues.write'], ...terms },
    ];
    const invite = await expectStatus(200, ask('POST', '/owner/invites', { agent_name: 'limited', grants }));
    const { recipients, ...others } = terms;
    expect(invite.body.grants).toEqual([
      {
        platformId: 'limited',
        scopes: ['codehost:issues.read', 'codehost:issues.write'],
        ...others,
        recipients,
        allow_repo_creation: false,
      },
    ]);
    const public_key_pem = makeKeyPair().publicPem;
    const bound = await send(
      `${world.running.baseUrl}/v1/invites/bind`,
      jsonPost({ bind_secret: invite.body.bind_secret, public_key_pem }),
    );
    expect(bound.status, bound.text).toBe(200);
    const granted = (await ask('GET', `/owner/agents/${bound.body.agent_id}/grants`)).body.grants;
    expect(granted).toHaveLength(1);
    expect(granted[0]).toMatchObject({ repos: ['acme/*'], recipients: ['@acme.example'], require_approval: true });
    const left = Date.parse(granted[0].expires_at) - world.running.broker.clock();
    expect(left).toBeGreaterThan(3500_000);
    expect(left).toBeLessThanOrEqual(3600_000);
    // Recipients are in no receipt.
    const { rows } = (await ask('GET', '/owner/audit')).body;
    const told = rows.filter(({ reason }: { reason: string }) => /^(invite_created|agent_invited)$/.test(reason));
    for (const { id } of told) expect((await ask('GET', `/v1/audit/${id}/receipt`)).text).not.toContain('acme.example');
    expect(told).toHaveLength(2);
  });

  test('an invite with invalid limits is refused', async () => {
    await ask('POST', '/owner/platforms', {
      platform: 'strict',
      entry: { use: 'gmail', base_url: world.upstream.url },
    });
    const scopes = ['gmail:messages.send'];
    for (const [terms, says] of [
      [{ repos: ['acme'] }, 'is no repository'],
      [{ expires_in_seconds: 1 }, '60'],
      [{ recipients: ['C024BE91L'] }, '"C024BE91L" is no e-mail address'],
    ] as const) {
      const grants = [{ platformId: 'strict', scopes, ...terms }];
      const refused = await ask('POST', '/owner/invites', { agent_name: 'strict', grants });
      expectEnvelope(refused, 400, 'invalid_request');
      expect(refused.body.detail).toContain(says);
    }
    const two = [
      { platformId: 'strict', scopes, repos: ['a/b'] },
      { platformId: 'strict', scopes: ['gmail:messages.read'] },
    ];
    const refused = await ask('POST', '/owner/invites', { agent_name: 'two', grants: two });
    expectEnvelope(refused, 400, 'invalid_request');
    expect(refused.body.detail).toContain('named twice');
  });
});
