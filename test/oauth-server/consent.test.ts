/** The consent of an owner: in the browser that began the request, by that owner, and limited to what the page shows. */
import { decodeJwt } from 'jose';
import { beforeAll, describe, expect, test } from 'vitest';
import { consentOffer } from '../../broker/admin/people/consent-offer.ts';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { endSession } from '../../broker/store/ended-sessions.ts';
import { putMcpAuthorisation } from '../../broker/store/mcp-authorisations.ts';
import { expectStatus, jsonPost, send } from '../world/agent.ts';
import type { Browser } from '../world/browser/browser.ts';
import { askConsent, browserOf, CALLBACK, openConsent, signIn } from '../world/mcp/person.ts';
import { callMcp, OAuthClient } from '../world/oauth-client.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { DEMO_RULES, DEMO_SCOPES, givenWorld, shared } from '../world/world.ts';

const fresh = () => `client-${crypto.randomUUID().slice(0, 8)}`;

describe.each(ONE_STORE)(`the consent page on %s${postgresNote}`, (store) => {
  let baseUrl: string;
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation({ rules: DEMO_RULES }));
  beforeAll(async () => {
    baseUrl = world.running.baseUrl;
  });
  /** Returns a browser that has opened the consent page. */
  const asking = async (metadata: Record<string, unknown> = {}, owner = organisation.owner) => {
    const client = new OAuthClient(world);
    await client.register(metadata);
    const browser = browserOf(world, owner);
    const redirect = (metadata.redirect_uris as string[] | undefined)?.[0];
    const page = await openConsent(browser, client.address(redirect === undefined ? {} : { redirect_uri: redirect }));
    return { client, browser, page };
  };
  const allow = () => ({ allow: true, name: fresh(), grants: [] });
  const agents = async () => (await organisation.ask('GET', '/owner/agents')).body.agents.length;

  test('the page names the client, where the code goes, and what can be granted; the client’s name is its own claim', async () => {
    const name = 'Ev\u202eil <b>x</b>';
    const { browser, page, client } = await asking({ client_name: name, redirect_uris: ['https://app.example/cb'] });
    const { body } = await expectStatus(200, askConsent(browser, page, 'request'));
    expect(body.client).toEqual({
      id: client.id,
      name: 'Ev il <b>x</b>',
      published_by: null,
      redirect_host: 'app.example',
      redirect_uri: 'https://app.example/cb',
    });
    expect(body).toMatchObject({ scopes: ['mcp:read', 'mcp:write'], owner: { email: organisation.owner.email } });
    expect(body.offer.platforms).toEqual([
      { platform: 'demo', name: 'demo', connected: true, reads: ['demo:read'], all: expect.any(Array) },
    ]);
  });

  test('the page cannot be framed, and runs only the broker’s scripts', async () => {
    const { page } = await asking();
    const { headers, status } = await send(page, {});
    expect(status).toBe(200);
    expect(headers.get('x-frame-options')).toBe('DENY');
    expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
    expect(headers.get('content-security-policy')).toContain("script-src 'self'");
    expect(headers.get('referrer-policy')).toBe('no-referrer');
  });

  test('a person who is not signed in can neither decide nor see the request', async () => {
    const { browser, page } = await asking();
    const cookies = browser.cookies;
    browser.cookies = cookies.filter(({ name }) => !name.includes('owner'));
    for (const answer of [
      await askConsent(browser, page, 'request'),
      await askConsent(browser, page, 'decision', allow()),
    ])
      expect([answer.status, answer.body.error]).toEqual([401, 'missing_token']);
    browser.cookies = cookies;
    expect((await askConsent(browser, page, 'decision', allow())).status).toBe(200);
  });

  test('a session that was signed out meanwhile cannot decide', async () => {
    const { browser, page } = await asking();
    const { token, expiresAt } = mintOwnerSession(world.running.broker, organisation.owner);
    browser.cookies.find(({ name }) => name.includes('owner'))!.value = token;
    expect((await askConsent(browser, page, 'request')).status).toBe(200);
    await endSession(world.db, {
      organisation_id: organisation.id,
      session_id: String(decodeJwt(token).jti),
      expires_at: expiresAt * 1000,
    });
    expect((await askConsent(browser, page, 'decision', allow())).status).toBe(401);
  });

  test('another browser of the same owner cannot decide: the request is bound to the browser in which it began', async () => {
    const { browser, page } = await asking();
    const other = browserOf(world, organisation.owner);
    for (const answer of [await askConsent(other, page, 'request'), await askConsent(other, page, 'decision', allow())])
      expect([answer.status, answer.body.error]).toEqual([404, 'not_found']);
    // The cookie of another request of that browser does not help.
    const second = await asking();
    const id = (address: string) => address.slice(address.lastIndexOf('/') + 1);
    for (const cookie of second.browser.cookies) cookie.path = cookie.path.replace(id(second.page), id(page));
    expect((await askConsent(second.browser, page, 'decision', allow())).status).toBe(404);
    expect((await askConsent(browser, page, 'decision', allow())).status).toBe(200);
  });

  test('the library’s cookies, planted in another browser, do not allow a decision there', async () => {
    const client = new OAuthClient(world);
    await client.register();
    // An attacker who is not signed in, and wants an admin to allow their request.
    const thief = browserOf(world);
    const page = await openConsent(thief, client.address());
    const uid = page.slice(page.lastIndexOf('/') + 1);
    const { hostname: host } = new URL(page);
    const admin = browserOf(world, organisation.owner);
    const planted = ['svc_consent', 'svc_resume'].map((name) => ({ name, value: uid, host, path: '/' }));
    admin.cookies.push(...planted);
    const before = await agents();
    const nothing = async () => {
      for (const answer of [
        await askConsent(admin, page, 'request'),
        await askConsent(admin, page, 'decision', allow()),
        await askConsent(admin, page, 'decision', { allow: false }),
      ])
        expect([answer.status, answer.body.error], answer.text).toEqual([404, 'not_found']);
    };
    await nothing();
    // The admin's own cookie, set by another request, does not help.
    const own = await openConsent(admin, client.address());
    await nothing();
    admin.cookies = admin.cookies.filter(({ value }) => value !== uid);
    expect((await askConsent(admin, own, 'decision', { allow: false })).status).toBe(200);
    admin.cookies = admin.cookies.filter(({ name }) => name !== 'svc_resume').concat(planted);
    expect(await agents()).toBe(before);
    // In the attacker's browser an admin's decision counts, and only that browser continues.
    signIn(world, thief, organisation.owner);
    const decided = await expectStatus(200, askConsent(thief, page, 'decision', allow()));
    const elsewhere = await admin.get(decided.body.location);
    expect([elsewhere.status, new URL(elsewhere.url).searchParams.get('code')]).toEqual([400, null]);
    const back = await thief.get(decided.body.location);
    expect(new URL(back.url).searchParams.get('code')).toEqual(expect.any(String));
  });

  test('the code is sent only to the browser of the decision', async () => {
    const { browser, page } = await asking();
    const { location } = (await askConsent(browser, page, 'decision', allow())).body;
    const stolen = await expectStatus(400, browserOf(world).get(location));
    expect(stolen.url).toBe(location);
    expect(new URL((await browser.get(location)).url).searchParams.get('code')).not.toBeNull();
    // And only once. Opened again, the page does not say that nothing was granted.
    const again = await expectStatus(400, browser.get(location));
    expect(again.text).toContain('was answered already, has expired, or was started in another browser');
    expect(again.text).not.toMatch(/nothing was granted|not connected</i);
  });

  test.each([
    ['another site', { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }],
    ['another port of this machine', { 'sec-fetch-site': 'same-site', origin: 'http://localhost:1' }],
    ['nowhere', { 'sec-fetch-site': 'cross-site', origin: 'null' }],
  ])('a form of %s cannot decide (CSRF)', async (_what, headers) => {
    const { browser, page } = await asking();
    const count = await agents();
    const forged = await askConsent(browser, page, 'decision', allow(), headers);
    expect([forged.status, forged.body.error]).toEqual([403, 'forbidden']);
    const url = `${page}/decision`;
    const form = await send(url, jsonPost(allow(), { cookie: browser.cookieFor(url) }));
    expect([form.status, form.body.error]).toEqual([403, 'forbidden']);
    expect(await agents()).toBe(count);
    expect((await askConsent(browser, page, 'decision', allow())).status).toBe(200);
  });

  test.each(['viewer', 'approver'] as const)('a %s can refuse a client, but not allow it', async (role) => {
    const owner = await organisation.addOwner(role);
    const { browser, page } = await asking({}, owner);
    const count = await agents();
    const refused = await askConsent(browser, page, 'decision', allow());
    expect([refused.status, refused.body.error]).toEqual([403, 'forbidden']);
    expect(await agents()).toBe(count);
    const no = await askConsent(browser, page, 'decision', { allow: false });
    const back = new URL((await browser.get(no.body.location)).url);
    expect(back.href.split('?')[0]).toBe(CALLBACK);
    expect(Object.fromEntries(back.searchParams)).toMatchObject({
      error: 'access_denied',
      iss: baseUrl,
      state: 'state-1',
    });
  });

  test('after a lost response to the decision the page continues with it, in the same browser only', async () => {
    const { browser, page, client } = await asking();
    expect((await askConsent(browser, page, 'request')).body.decided).toBeNull();
    await askConsent(browser, page, 'decision', allow());
    const { decided } = (await askConsent(browser, page, 'request')).body;
    expect((await askConsent(browserOf(world, organisation.owner), page, 'request')).status).toBe(404);
    expect((await browserOf(world, organisation.owner).get(decided)).status).toBe(400);
    const code = new URL((await browser.get(decided)).url).searchParams.get('code')!;
    expect((await client.redeem(code)).status).toBe(200);
    expect((await askConsent(browser, page, 'request')).status).toBe(404);
  });

  test('repeated clicks create one agent', async () => {
    const { browser, page } = await asking();
    const count = await agents();
    const answers = await Promise.all([1, 2, 3].map(() => askConsent(browser, page, 'decision', allow())));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409, 409]);
    expect(await agents()).toBe(count + 1);
  });

  test('unknown platforms and scopes, taken names, and agents with a key or of another organisation are refused', async () => {
    const { browser, page } = await asking();
    const decide = (decision: Record<string, unknown>) =>
      askConsent(browser, page, 'decision', { allow: true, ...decision });
    const keyed = await organisation.agent({ name: fresh(), grants: {} });
    const beta = await world.organisation();
    const foreign = await beta.agent({ name: fresh(), grants: {}, policy: null });
    const refusals: [Record<string, unknown>, number][] = [
      [{ name: fresh(), grants: [{ platformId: 'demo', scopes: ['demo:all'] }] }, 400],
      [{ name: fresh(), grants: [{ platformId: 'none', scopes: ['demo:read'] }] }, 400],
      [{ name: fresh(), policy: 'none' }, 400],
      [{}, 400],
      [{ name: fresh(), agent: keyed.agentId }, 400],
      // An agent with a key of its own cannot be given to a client.
      [{ agent: keyed.agentId }, 400],
      [{ agent: foreign.agentId }, 400],
    ];
    const taken = fresh();
    await organisation.agent({ name: taken, grants: {} });
    refusals.push([{ name: taken }, 409]);
    const count = await agents();
    for (const [decision, status] of refusals) {
      const answer = await decide(decision);
      expect([decision, answer.status], answer.text).toEqual([decision, status]);
    }
    expect(await agents()).toBe(count);
    expect((await decide({ name: fresh(), grants: [{ platformId: 'demo', scopes: ['demo:read'] }] })).status).toBe(200);
  });

  test('a decision leaves the pending requests of other clients', async () => {
    const [one, other] = [await asking(), await asking()];
    const { location } = (await askConsent(one.browser, one.page, 'decision', allow())).body;
    expect(new URL((await one.browser.get(location)).url).searchParams.has('code')).toBe(true);
    expect((await askConsent(other.browser, other.page, 'decision', allow())).status).toBe(200);
  });

  describe('narrowing the request', () => {
    /** Completes the flow. Returns the client's tokens and authorisation. */
    const connected = async (decision: Record<string, unknown>, asked: Record<string, string> = {}) => {
      const client = new OAuthClient(world);
      const tokens = await client.tokens(browserOf(world, organisation.owner), asked, { name: fresh(), ...decision });
      const { authorisations } = (await organisation.ask('GET', '/owner/mcp-authorisations')).body;
      return {
        client,
        tokens,
        listed: authorisations.find((one: { client: { id: string } }) => one.client.id === client.id),
      };
    };
    const call = async (token: string, name: string, args: Record<string, unknown>) =>
      callMcp(baseUrl, token, { method: 'tools/call', params: { name, arguments: { platform: 'demo', ...args } } });

    test('an owner can grant reading without writing although both were requested, and a refresh does not change that', async () => {
      const grants = [{ platformId: 'demo', scopes: Object.keys(DEMO_SCOPES) }];
      const { client, tokens, listed } = await connected({ grants, scopes: ['mcp:read'] });
      expect(tokens.scope).toBe('mcp:read');
      expect(listed.scopes).toEqual(['mcp:read']);
      await expectStatus(200, call(tokens.access_token, 'read_platform', { scope: 'demo:read', endpoint: '/items' }));
      const write = await call(tokens.access_token, 'write_platform', { scope: 'demo:write', endpoint: '/items' });
      expect([write.status, write.body.error]).toEqual([403, 'insufficient_scope']);
      const more = await client.refresh(tokens.refresh_token, { scope: 'mcp:read mcp:write' });
      expect([more.status, more.body.error]).toEqual([400, 'invalid_scope']);
      expect((await client.refresh(tokens.refresh_token)).body.scope).toBe('mcp:read');
      const { rows } = (await organisation.ask('GET', '/owner/audit?limit=20')).body;
      const row = rows.find((one: { reason: string }) => one.reason === 'mcp_client_allowed');
      const { receipt } = (await organisation.ask('GET', `/v1/audit/${row.id}/receipt`)).body;
      expect(decodeJwt(receipt)).toMatchObject({ change: { client: client.id, scope: 'mcp:read', granted: grants } });
    });

    test('an owner can grant single scopes of a platform, and the client has only those', async () => {
      const { tokens, listed } = await connected({ grants: [{ platformId: 'demo', scopes: ['demo:delete'] }] });
      expect(listed.grants).toEqual([{ platformId: 'demo', scopes: ['demo:delete'] }]);
      const read = await call(tokens.access_token, 'read_platform', { scope: 'demo:read', endpoint: '/items' });
      expect(JSON.stringify(read.body)).toContain('scope_not_granted');
      const removed = await call(tokens.access_token, 'delete_platform', {
        scope: 'demo:delete',
        endpoint: '/items/1',
      });
      expect(JSON.stringify(removed.body)).not.toContain('scope_not_granted');
    });

    test.each([
      ['a scope that the client did not ask for', { scopes: ['mcp:read', 'mcp:write'] }],
      ['only one that it did not ask for', { scopes: ['mcp:write'] }],
      ['one that there is not', { scopes: ['mcp:admin'] }],
      ['none at all', { scopes: [] }],
      ['text', { scopes: 'mcp:read' }],
      [
        'a scope that no platform offers',
        { grants: [{ platformId: 'demo', scopes: ['demo:read', 'demo:everything'] }] },
      ],
      ['one that another platform offers', { grants: [{ platformId: 'demo', scopes: ['tools:search'] }] }],
      [
        'one that an MCP server may have, and the page did not show',
        { grants: [{ platformId: 'tools', scopes: ['tools:all'] }] },
      ],
      ['one that every object has', { grants: [{ platformId: 'demo', scopes: ['constructor'] }] }],
      ['a platform that every object has', { grants: [{ platformId: 'constructor', scopes: ['demo:read'] }] }],
    ])('a decision with scopes that were not offered is refused: %s', async (_what, given) => {
      const tools = {
        kind: 'mcp',
        base_url: 'https://tools.example/mcp',
        scopes: { 'tools:search': ['tool search_*'] },
      };
      await organisation.platform({ id: 'tools', manifest: tools, secret: null });
      const client = new OAuthClient(world);
      await client.register();
      const browser = browserOf(world, organisation.owner);
      const page = await openConsent(browser, client.address({ scope: 'mcp:read' }));
      const offer = (await askConsent(browser, page, 'request')).body;
      expect(offer.scopes).toEqual(['mcp:read']);
      expect(JSON.stringify(offer.offer.platforms)).toContain('tools:search');
      const count = await agents();
      const refused = await askConsent(browser, page, 'decision', { ...allow(), ...given });
      expect([refused.status, refused.body.error], refused.text).toEqual([400, 'invalid_request']);
      expect(await agents()).toBe(count);
      expect((await organisation.ask('GET', '/owner/mcp-authorisations')).text).not.toContain(client.id);
      // The refused decision consumed nothing: the offered scopes can still be granted.
      const good = { ...allow(), scopes: ['mcp:read'], grants: [{ platformId: 'tools', scopes: ['tools:search'] }] };
      expect((await askConsent(browser, page, 'decision', good)).status).toBe(200);
    });

    test('agents with further limits on their scopes are not offered as having equal scopes', async () => {
      const limits = {
        plain: {},
        receiving: { constraints: JSON.stringify({ recipients: ['@acme.example'] }) },
        held: { require_approval: 1 as const },
        ending: { expires_at: Date.now() + 86_400_000, expires_text: null },
      };
      const ids = new Map<string, string>();
      for (const [name, grant] of Object.entries(limits)) {
        const agent = await organisation.agent({
          name: `${name}-${fresh()}`,
          grants: { demo: { scopeList: ['demo:read'], ...grant } },
        });
        ids.set(agent.agentId, name);
      }
      const { browser, page } = await asking();
      const { alike } = (await askConsent(browser, page, 'request')).body.offer;
      const offered = alike.map((one: { agent_id: string }) => ids.get(one.agent_id)).filter((name: unknown) => name);
      expect(offered).toEqual(['plain']);
    });
  });

  test('a second client can be connected as the same agent, and each can be revoked separately', async () => {
    const name = fresh();
    const first = new OAuthClient(world);
    const one = await first.tokens(browserOf(world, organisation.owner), {}, { name });
    const { sub } = decodeJwt(one.access_token);
    const second = new OAuthClient(world);
    const two = await second.tokens(
      browserOf(world, organisation.owner),
      {},
      { name: undefined, grants: undefined, agent: sub },
    );
    expect(decodeJwt(two.access_token).sub).toBe(sub);
    await first.post('/oauth/revoke', { client_id: first.id, token: one.refresh_token });
    expect((await callMcp(baseUrl, one.access_token)).status).toBe(401);
    expect((await callMcp(baseUrl, two.access_token)).status).toBe(200);
  });

  test('a client that asks again is offered the agent that it was, only to the owner who connected it', async () => {
    const { client, browser, page } = await asking();
    const lastOn = async (address: string, of = browser) => {
      const { last, known } = (await askConsent(of, address, 'request')).body.offer;
      if (last !== null) expect(known.map(({ agent_id }: { agent_id: string }) => agent_id)).toContain(last);
      return last;
    };
    expect(await lastOn(page)).toBeNull();
    const { agent_id } = (await askConsent(browser, page, 'decision', allow())).body;
    expect(await lastOn(await openConsent(browser, client.address()))).toBe(agent_id);
    const another = browserOf(world, await organisation.addOwner('admin'));
    expect(await lastOn(await openConsent(another, client.address()), another)).toBeNull();
    const fromElsewhere = await asking();
    expect(await lastOn(fromElsewhere.page, fromElsewhere.browser)).toBeNull();
    await organisation.ask('POST', `/owner/agents/${agent_id}/revoke`, {});
    expect(await lastOn(await openConsent(browser, client.address()))).toBeNull();
  });

  test('a client with a metadata document is offered that agent only where the code goes to its site', async () => {
    const { broker } = world.running;
    const agent = await organisation.agent({ name: fresh() });
    const client_id = 'https://app.example/client.json';
    const client = { client_id, client_name: 'Documented', redirect_host: 'app.example', scope: 'mcp:read' };
    const [id, now] = [crypto.randomUUID(), broker.clock()];
    const by = { organisation_id: organisation.id, owner_id: organisation.owner.id, agent_id: agent.id };
    await putMcpAuthorisation(broker.store.db, { ...client, ...by, id, created_at: now, expires_at: now + 1_000 });
    const lastFor = async (redirectUri: string) =>
      (await consentOffer(broker, organisation.owner, { ...client, redirectUri })).last;
    expect(await lastFor('https://app.example/callback')).toBe(agent.agentId);
    for (const anybodys of ['http://127.0.0.1:1234/callback', 'https://localhost/callback', 'documented://callback'])
      expect(await lastFor(anybodys), anybodys).toBeNull();
  });

  test('a consent is recorded, with a receipt that names the owner and the client', async () => {
    const { browser, page, client } = await asking();
    const { agent_id } = (await askConsent(browser, page, 'decision', allow())).body;
    const { rows } = (await organisation.ask('GET', '/owner/audit?limit=5')).body;
    const row = rows.find((one: { reason: string }) => one.reason === 'mcp_client_allowed');
    expect(row.agent_public_id).toBe(agent_id);
    const { receipt } = (await organisation.ask('GET', `/v1/audit/${row.id}/receipt`)).body;
    expect(decodeJwt(receipt)).toMatchObject({
      change: { by: organisation.owner.id, how: 'console', client: client.id, redirect_host: '127.0.0.1' },
    });
  });

  test('a governance file can set the grants of a client’s agent, but not give it a key', async () => {
    const name = fresh();
    const { browser, page } = await asking();
    await askConsent(browser, page, 'decision', { allow: true, name, grants: [] });
    const file = (more: string) => ({ text: `agents:\n  ${name}:\n    policy: default\n${more}` });
    const pem = world.keys().publicPem.trim().replaceAll('\n', '\n        ');
    const keyed = await organisation.ask(
      'POST',
      '/owner/governance/plan',
      file(`    public_key:\n      pem: |\n        ${pem}\n`),
    );
    expect(keyed.status, keyed.text).toBe(400);
    expect(keyed.text).toContain('it cannot have a key');
    const granted = await organisation.ask(
      'POST',
      '/owner/governance/plan',
      file('    grants:\n      demo: { scopes: ["demo:read"] }\n'),
    );
    expect(granted.status, granted.text).toBe(200);
  });

  test('a decision is refused when the browser is signed in as another owner than the one who saw the page', async () => {
    const beta = await world.organisation();
    await beta.policy(DEMO_RULES, 'default');
    const { browser, page } = await asking();
    const seen = (await askConsent(browser, page, 'request')).body.owner;
    expect(seen).toEqual({ id: organisation.owner.id, email: organisation.owner.email, role: 'admin' });
    signIn(world, browser as Browser, beta.owner);
    const decision = { ...allow(), owner_id: seen.id };
    const refused = await askConsent(browser, page, 'decision', decision);
    expect([refused.status, refused.body.error]).toEqual([409, 'conflict']);
    expect(refused.body.detail).toContain(beta.owner.email);
    signIn(world, browser as Browser, organisation.owner);
    expect((await askConsent(browser, page, 'decision', decision)).status).toBe(200);
  });

  test('an owner of another organisation allows the client there, and nobody here sees that', async () => {
    const beta = await world.organisation();
    await beta.policy(DEMO_RULES, 'default');
    const { browser, page } = await asking();
    signIn(world, browser as Browser, beta.owner);
    expect((await askConsent(browser, page, 'request')).body.offer.platforms).toEqual([]);
    const { agent_id } = (await askConsent(browser, page, 'decision', allow())).body;
    const ours = (await organisation.ask('GET', '/owner/mcp-authorisations')).text;
    expect(ours).not.toContain(agent_id);
    expect((await beta.ask('GET', '/owner/mcp-authorisations')).text).toContain(agent_id);
  });
});
