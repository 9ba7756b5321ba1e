/** A caller may lose its rights while the body of its request arrives: the state after the body decides. */
import { once } from 'node:events';
import { request } from 'node:http';
import { text as textOf } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { LONG_WAIT_MS, pause } from '../../broker/runtime/waits.ts';
import { jsonPost, makeKeyPair, send, type TestAgent } from '../world/agent.ts';
import { ALL_DEMO } from '../world/child.ts';
import { PROBE } from '../world/git-bytes.ts';
import { browserOf } from '../world/mcp/person.ts';
import { OAuthClient } from '../world/oauth-client.ts';
import { startLyingProvider } from '../world/servers/lying-provider.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL, fresh, READ, shared, startWorld, WRITE } from '../world/world.ts';

describe.each(ONE_STORE)(`slow bodies on %s${postgresNote}`, (store) => {
  const issuer = shared(() => startLyingProvider());
  const world = shared(() =>
    startWorld(store, {}, { before: async () => ({ allowPrivate: [new URL(issuer.issuer).host] }) }),
  );
  const organisation = fresh(() => world.demoOrganisation());
  const agent = fresh(() => organisation.agent({ rules: ALLOW_ALL }));

  /** Sends the head of a request and the first byte of its body, runs `meanwhile`, and sends the rest. */
  async function slowly(
    path: string,
    token: string,
    body: object | string,
    meanwhile: () => Promise<unknown>,
    more: Record<string, string> = {},
  ) {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const headers = {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      'content-length': text.length,
      ...more,
    };
    const asked = request(world.running.baseUrl + path, { method: 'POST', headers });
    const answered = once(asked, 'response');
    await new Promise((sent) => asked.write(text.slice(0, 1), sent));
    // When a later request is answered, the broker has begun with this one.
    await organisation.ask('GET', '/owner/me');
    await meanwhile();
    asked.end(text.slice(1));
    const [response] = await answered;
    return { status: response.statusCode, text: await textOf(response) };
  }
  const owners = async (): Promise<string[]> =>
    (await organisation.ask('GET', '/owner/owners')).body.owners.map(({ email }: { email: string }) => email);
  async function replaceKey({ id }: TestAgent): Promise<void> {
    const made = await organisation.ask('POST', `/owner/agents/${id}/bootstrap-token`, { rotate: true });
    const bound = await send(
      `${world.running.baseUrl}/v1/agents/bind`,
      jsonPost({
        bootstrap_token: made.body.bootstrap_token,
        public_key_pem: makeKeyPair().publicPem,
      }),
    );
    expect(bound.status, bound.text).toBe(200);
  }

  test.each<[string, (owner: { id: string; email: string }, token: string) => Promise<{ status: number }>, number]>([
    ['an admin who was removed', ({ id }) => organisation.ask('DELETE', `/owner/owners/${id}`), 401],
    [
      'an admin who was made a viewer',
      ({ email }) => organisation.ask('POST', '/owner/owners', { email, role: 'viewer' }),
      403,
    ],
    [
      'an admin who signed out',
      (_, token) =>
        send(`${world.running.baseUrl}/owner/sign-out`, {
          method: 'POST',
          headers: { authorization: `Bearer ${token}` },
        }),
      401,
    ],
    ['an admin of whom nothing changed', () => organisation.ask('GET', '/owner/me'), 200],
  ])('%s', async (_what, meanwhile, status) => {
    const admin = await organisation.addOwner('admin');
    const { token } = mintOwnerSession(world.running.broker, admin);
    const email = `${crypto.randomUUID()}@evil.example`;
    const answer = await slowly('/owner/owners', token, { email, role: 'admin' }, async () => {
      expect((await meanwhile(admin, token)).status).toBe(200);
    });
    expect(answer.status, answer.text).toBe(status);
    expect((await owners()).includes(email)).toBe(status === 200);
  });

  test('a pipeline that was removed', async () => {
    const trusted = { name: 'ci', role: 'admin', issuer: issuer.issuer, subject: 'job' };
    const { body: made } = await organisation.ask('POST', '/owner/pipelines', trusted);
    const token = await issuer.sign(issuer.honest({ aud: made.audience, sub: 'job' }));
    const apply = async (email: string, meanwhile: () => Promise<unknown>) => {
      const { text } = (await organisation.ask('GET', '/owner/governance')).body;
      const added = text.replace('owners:\n', `owners:\n  - { email: ${email}, role: admin }\n`);
      return await slowly('/owner/governance/apply', token, { text: added }, meanwhile);
    };
    expect(await apply('first@evil.example', async () => {})).toMatchObject({ status: 200 });
    const removed = await apply('second@evil.example', () => organisation.ask('DELETE', `/owner/pipelines/${made.id}`));
    expect(removed).toMatchObject({ status: 401, text: expect.stringContaining('invalid_token') });
    expect(await owners()).toContain('first@evil.example');
    expect(await owners()).not.toContain('second@evil.example');
  });

  test('a parent whose key was replaced', async () => {
    const issue = (meanwhile: () => Promise<unknown>) =>
      slowly('/v1/agents/children', agent.token(), { grants: ALL_DEMO }, meanwhile);
    expect(await issue(async () => {})).toMatchObject({ status: 201 });
    expect(await issue(() => replaceKey(agent))).toMatchObject({
      status: 401,
      text: expect.stringContaining('invalid_signature'),
    });
  });

  /** A body that arrives earlier is equivalent to one that arrives with the head. */
  const late = (meanwhile: () => Promise<unknown>) => async () => {
    await meanwhile();
    await pause(2 * LONG_WAIT_MS);
  };
  type EntryPoint = [string, (token: string, meanwhile: () => Promise<unknown>) => ReturnType<typeof slowly>];
  const MCP: EntryPoint = [
    '/mcp',
    (token, meanwhile) => {
      const params = { name: 'read_platform', arguments: { ...READ, method: undefined } };
      const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
      const headers = { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-11-25' };
      return slowly('/mcp', token, message, meanwhile, headers);
    },
  ];
  const ENTRY_POINTS: EntryPoint[] = [
    ['/v1/actions', (token, meanwhile) => slowly('/v1/actions', token, WRITE, meanwhile)],
    ['/proxy', (token, meanwhile) => slowly('/proxy/demo-main/items', token, WRITE.data, meanwhile)],
    MCP,
  ];
  const workload = async () => {
    const asked = { issuer: issuer.issuer, subject: 'job' };
    const { body } = await organisation.ask('POST', `/owner/agents/${agent.agentId}/workload`, asked);
    return await issuer.sign(issuer.honest({ aud: body.audience, sub: 'job' }));
  };
  const endWorkload = () => organisation.ask('DELETE', `/owner/agents/${agent.agentId}/workload`);
  const replaceWorkload = () =>
    organisation.ask('POST', `/owner/agents/${agent.agentId}/workload`, { issuer: issuer.issuer, subject: 'another' });

  test.each(ENTRY_POINTS)(
    '%s: an agent whose key or workload was removed or replaced makes no call',
    async (_path, ask) => {
      const { seen } = world.upstream;
      const [before, issued] = [seen.length, await workload()];
      for (const token of [agent.token(), issued]) await ask(token, async () => {});
      expect(seen.length).toBe(before + 2);
      const refused = [
        await ask(
          agent.token(),
          late(() => replaceKey(agent)),
        ),
        await ask(issued, late(endWorkload)),
        await ask(await workload(), late(replaceWorkload)),
      ];
      for (const { text } of refused) expect(text).toMatch(/invalid_(?:token|signature)/);
      expect(seen.length).toBe(before + 2);
    },
  );

  test('/git: an agent whose key or workload was removed or replaced makes no call', async () => {
    const ask: EntryPoint[1] = (token, meanwhile) =>
      slowly('/git/acme/app/git-receive-pack', '', PROBE, meanwhile, {
        authorization: `Basic ${btoa(`agent:${token}`)}`,
        'content-type': 'application/x-git-receive-pack-request',
      });
    const issued = await workload();
    // The agent has no grant for a code host.
    for (const token of [agent.token(), issued])
      expect(await ask(token, async () => {})).toMatchObject({ status: 403 });
    expect(
      await ask(
        agent.token(),
        late(() => replaceKey(agent)),
      ),
    ).toMatchObject({ status: 401 });
    expect(await ask(issued, late(endWorkload))).toMatchObject({ status: 401 });
    expect(await ask(await workload(), late(replaceWorkload))).toMatchObject({ status: 401 });
  });

  test('/mcp: a client whose access an owner revoked makes no call', async () => {
    const policy = (await organisation.ask('POST', '/owner/policies', { name: 'open', rules: ALLOW_ALL })).body.id;
    const granted = { policy, grants: [{ platformId: 'demo', scopes: [READ.scope] }] };
    const browser = browserOf(world, organisation.owner);
    const { access_token: token } = await new OAuthClient(world).tokens(browser, {}, granted);
    const [, ask] = MCP;
    const { seen } = world.upstream;
    const before = seen.length;
    await ask(token, async () => {});
    expect(seen.length).toBe(before + 1);
    const [{ id }] = (await organisation.ask('GET', '/owner/mcp-authorisations')).body.authorisations;
    const refused = await ask(token, () => organisation.ask('DELETE', `/owner/mcp-authorisations/${id}`));
    expect(refused.text).toContain('invalid_token');
    expect(seen.length).toBe(before + 1);
  });
});
