/** Refusals of /proxy say what the caller can do next, depending on its credential: not every caller can ask for access. */
import { describe, expect, test } from 'vitest';
import type { TestAgent } from '../world/agent.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { ALLOW_ALL, givenWorld, shared } from '../world/world.ts';
import { type Asked, rawClient } from './raw-client.ts';

describe.each(STORES)(`the next step in refusals of /proxy, on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());
  type Options = { rules?: readonly unknown[]; policy?: null; grant?: object };
  const agentWith = ({ rules = ALLOW_ALL, grant = {}, ...more }: Options) =>
    organisation.agent({
      ...('policy' in more ? more : { rules }),
      grants: { demo: { scopeList: ['demo:read'], ...grant } },
    });
  /** How each kind of caller authenticates. */
  const CALLERS = {
    token: async () => ({}),
    run: async () => ({ headers: { 'x-svc-via': 'run' } }),
    static_key: async ({ agentId }: TestAgent) => {
      const wanted = { label: 'old client', connection: 'demo-main' };
      const { key } = (await organisation.ask('POST', `/owner/agents/${agentId}/static-keys`, wanted)).body;
      // A caller with a static key has no sidecar, whatever it claims.
      return { bare: true, headers: { authorization: `Bearer ${key}`, 'x-svc-via': 'run' } };
    },
  } satisfies Record<string, (agent: TestAgent) => Promise<Asked>>;
  const tell = async (
    caller: keyof typeof CALLERS,
    agent: TestAgent,
    asked: Asked & { method?: string; path?: string } = {},
  ) => {
    const { method = 'POST', path = '/proxy/demo-main/items', ...more } = asked;
    const { headers, ...by }: Asked = await CALLERS[caller](agent);
    const answer = await rawClient(() => agent)(method, path, {
      ...by,
      ...more,
      headers: { ...headers, ...more.headers },
    });
    return answer.body.detail as string;
  };
  const WRITE = { body: '{}' };
  const RUN =
    'Ask with POST /v1/access-request at AGENT_BROKER_RUN_URL, with AGENT_BROKER_RUN_KEY as the bearer, or run: npx agent-broker request-access demo';
  const page = ({ agentId }: TestAgent) => `${world.running.baseUrl}/console/agents/${agentId}`;

  test('for a scope that is not granted', async () => {
    const agent = await agentWith({});
    const missing = 'the call needs the scope demo:write, which the grant does not include. An owner can grant it';
    expect(await tell('token', agent, WRITE)).toBe(
      `${missing}; ask with POST ${world.running.baseUrl}/v1/access-request (platform demo, scope demo:write).`,
    );
    expect(await tell('run', agent, WRITE)).toBe(`${missing}. ${RUN} demo:write`);
    expect(await tell('static_key', agent, WRITE)).toBe(
      `${missing}, at ${page(agent)}; a static key cannot ask for it.`,
    );
  });

  test.each([
    ['an expired grant', { grant: { expires_at: 1 } }, 'renew'],
    ['a policy without a matching rule', { rules: [] }, 'allow'],
    ['no policy', { policy: null }, 'allow'],
  ] as const)('for %s', async (_, options, verb) => {
    const read = { method: 'GET' };
    const agent = await agentWith(options);
    expect(await tell('run', agent, read)).toContain(` An owner can ${verb} it. ${RUN} demo:read`);
    expect(await tell('token', agent, read)).toMatch(
      new RegExp(`An owner can ${verb} it; ask with POST .*scope demo:read`),
    );
  });

  test('for a call denied by a rule, no caller is advised to ask for access', async () => {
    const agent = await agentWith({ rules: [{ effect: 'deny' }] });
    for (const caller of ['token', 'run', 'static_key'] as const)
      expect(await tell(caller, agent, { method: 'GET' })).toMatch(
        /Do not repeat it; an owner can change the policy\.$/,
      );
  });

  test('for a connection without a grant', async () => {
    const agent = await agentWith({});
    const path = '/proxy/other/items';
    expect(await tell('token', agent, { method: 'GET', path })).toBe(
      `This agent has no grant on a connection of this name. It has: demo-main. An owner can grant it; ask with POST ${world.running.baseUrl}/v1/access-request.`,
    );
    expect(await tell('static_key', agent, { method: 'GET', path })).toBe(
      'This static key is good for one connection only: use /proxy/demo-main/.',
    );
  });

  test('for a connection that has to be connected again, also in an error of the platform', async () => {
    const other = await world.organisation();
    await other.platform({ id: 'shaped', manifest: { error_body: { fault: '{code}', text: '{detail}' } } });
    const agent = await other.agent({ rules: ALLOW_ALL, grants: { shaped: {} } });
    const read = rawClient(() => agent);
    world.upstream.answer = (_request, response) => void response.writeHead(401).end();
    const { fault, text } = (await read('GET', '/proxy/shaped-main/items')).body;
    expect(fault).toBe('platform_reauth_needed');
    expect(text).toMatch(/has to connect it again, at http:\S+\/console\/connections\?connect=[0-9a-f-]{36};/);
  });

  test('for recipients that are not allowed: also an error of the platform names them', async () => {
    const other = await world.organisation();
    const error_body = { fault: '{code}', text: '{detail}' };
    await other.platform({ id: 'shaped', manifest: { error_body, recipients: { 'POST /items': ['/to/*'] } } });
    const constraints = JSON.stringify({ recipients: ['@acme.example'] });
    const agent = await other.agent({ rules: ALLOW_ALL, grants: { shaped: { constraints } } });
    const send = async (to: readonly string[]) => {
      const headers = { 'content-type': 'application/json' };
      return (
        await rawClient(() => agent)('POST', '/proxy/shaped-main/items', { headers, body: JSON.stringify({ to }) })
      ).body;
    };
    const refused = await send(['ann@acme.example', 'eve@evil.example']);
    expect(refused).toMatchObject({
      fault: 'recipient_not_allowed',
      text: expect.stringMatching(/^agent-broker: recip/),
    });
    expect(refused.text).toContain('the grant does not allow these recipients. They are: eve@evil.example.');
    const many = await send(Array.from({ length: 7 }, (_, at) => `${at}@evil.example`));
    expect(many.text).toContain('4@evil.example and 2 more.');
  });

  test('for a held read; the header X-Svc-Via gives no access by itself', async () => {
    const agent = await agentWith({ rules: [{ effect: 'require_approval' }] });
    const read = { method: 'GET', headers: { 'x-svc-wait': '0' } };
    expect(await tell('token', agent, read)).toContain(`The answer will be at ${world.running.baseUrl}/v1/approvals/`);
    expect(await tell('run', agent, read)).toMatch(
      /The answer will be at \/v1\/approvals\/\S+ of AGENT_BROKER_RUN_URL/,
    );
    expect(await tell('static_key', agent, read)).toMatch(
      /The response cannot be read later with a static key, .*: send the request with "X-Svc-Wait: 120"/,
    );
    const stranger = await rawClient(() => agent)('GET', '/proxy/demo-main/items', {
      bare: true,
      headers: { 'x-svc-via': 'run' },
    });
    expect(stranger).toMatchObject({ status: 401, body: { error: 'missing_token' } });
  });
});
