/** `/mcp` with an agent's own token instead of an access token: signed by the agent, of a child, or issued for its workload. */
import { readFileSync } from 'node:fs';
import { Client, type ClientOptions, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { describe, expect, onTestFinished, test } from 'vitest';
import { runFile } from '../../broker/process/run-file.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { childOf } from '../world/child.ts';
import { browserOf } from '../world/mcp/person.ts';
import { callMcp, OAuthClient } from '../world/oauth-client.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { startLyingProvider } from '../world/servers/lying-provider.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { MINUTE_MS } from '../world/times.ts';
import { DEMO_RULES, fresh, shared, startWorld } from '../world/world.ts';

const READ = { platform: 'demo', scope: 'demo:read', endpoint: '/items' };
const WRITE = { platform: 'demo', scope: 'demo:write', endpoint: '/items', data: { name: 'x' }, reason: 'to see' };
const SUBJECT = 'system:serviceaccount:agents:triage';

// biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came.
type Json = any;

describe.each(ONE_STORE)(`an MCP client with the token of an agent on %s${postgresNote}`, (store) => {
  const issuer = shared(() => startLyingProvider());
  const world = shared(() =>
    startWorld(store, {}, { before: async () => ({ allowPrivate: [new URL(issuer.issuer).host] }) }),
  );
  const organisation = fresh(() => world.demoOrganisation());
  const agent = fresh(() => organisation.agent({ rules: DEMO_RULES }));

  /** Connects as agent frameworks do: with a header that is built for each request. */
  async function connect(token: () => string | Promise<string>, options: ClientOptions = {}): Promise<Client> {
    const client = new Client({ name: 'framework', version: '1' }, options);
    const withToken: typeof fetch = async (url, init) => {
      const headers = new Headers(init?.headers);
      headers.set('authorization', `Bearer ${await token()}`);
      return await fetch(url, { ...init, headers });
    };
    await client.connect(
      new StreamableHTTPClientTransport(new URL(`${world.running.baseUrl}/mcp`), { fetch: withToken }),
    );
    onTestFinished(() => client.close());
    return client;
  }
  const tool = async (client: Client, name: string, args: Record<string, unknown>): Promise<Json> =>
    (await client.callTool({ name, arguments: args }, { timeout: scaledTimeout(30_000) })).structuredContent;
  const audienceOf = async (one: TestAgent): Promise<string> => {
    const asked = { issuer: issuer.issuer, subject: SUBJECT };
    const answer = await expectStatus(200, organisation.ask('POST', `/owner/agents/${one.agentId}/workload`, asked));
    return answer.body.audience;
  };
  const pending = async (): Promise<Json[]> =>
    (await organisation.ask('GET', '/owner/approvals')).body.approvals.filter((one: Json) => one.status === 'pending');
  /** Returns the approval of the held call, once there is one. */
  const held = async (): Promise<string> => {
    await expect.poll(async () => (await pending()).length, { timeout: scaledTimeout(10_000) }).toBe(1);
    return (await pending())[0].approval_id;
  };

  test.each<[string, () => Promise<() => string | Promise<string>>, Json]>([
    ['that it signs for each request', async () => () => agent.token(), {}],
    [
      'of a child, which came once',
      async () => {
        const child = await childOf(world, organisation, agent);
        return () => child.bearer;
      },
      {},
    ],
    [
      'that its platform issued',
      async () => {
        const aud = await audienceOf(agent);
        return async () => await issuer.sign(issuer.honest({ aud, sub: SUBJECT }));
      },
      { workload: expect.any(String) },
    ],
  ])('by a token %s: a read is answered, and a write is made after the approval', async (_what, make, flags) => {
    const client = await connect(await make());
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('write_platform');
    const { permissions } = await tool(client, 'list_permissions', {});
    expect(permissions.platforms[0]).toMatchObject({ platformId: 'demo' });
    const read = await tool(client, 'read_platform', READ);
    expect(read).toMatchObject({ status: 'answered', upstream_status: 200 });
    const { rows } = (await organisation.ask('GET', '/owner/audit?kind=action')).body;
    expect(rows[0]).toMatchObject({ id: read.audit_id, flags });
    const before = world.upstream.seen.length;
    const writing = tool(client, 'write_platform', WRITE);
    const id = await held();
    expect((await organisation.approve(id)).status).toBe(200);
    expect(await writing).toMatchObject({ status: 'answered', data: { method: 'POST' } });
    expect(world.upstream.seen.length).toBe(before + 1);
  });

  test('a waiting tool call continues after its token has expired', async () => {
    const token = agent.token();
    const client = await connect(() => token);
    const writing = tool(client, 'write_platform', WRITE);
    const id = await held();
    world.clock.skewMs += 6 * MINUTE_MS;
    onTestFinished(() => {
      world.clock.skewMs = 0;
    });
    await expect(tool(client, 'read_platform', READ)).rejects.toThrow(/expired/);
    expect((await organisation.approve(id)).status).toBe(200);
    expect(await writing).toMatchObject({ status: 'answered', data: { method: 'POST' } });
  });

  test('the waiting tool call of a revoked agent ends with status expired', async () => {
    const client = await connect(() => agent.token());
    const writing = tool(client, 'write_platform', WRITE);
    await held();
    expect((await organisation.ask('POST', `/owner/agents/${agent.agentId}/revoke`, {})).status).toBe(200);
    expect(await writing).toMatchObject({ status: 'expired' });
  });

  test('removing the workload ends its client’s subscription, and refuses its next request', async () => {
    const aud = await audienceOf(agent);
    const client = await connect(async () => await issuer.sign(issuer.honest({ aud, sub: SUBJECT })), {
      versionNegotiation: { mode: { pin: '2026-07-28' } },
      listChanged: { tools: { onChanged: () => {} } },
    });
    expect((await organisation.ask('DELETE', `/owner/agents/${agent.agentId}/workload`)).status).toBe(200);
    expect(await client.autoOpenedSubscription!.closed).toBe('graceful');
    await expect(tool(client, 'read_platform', READ)).rejects.toThrow(/names no agent that trusts its issuer/);
  });

  test('a suspended agent gets the halt, and its child is refused for the same reason', async () => {
    const child = await childOf(world, organisation, agent);
    const [own, of] = [await connect(() => agent.token()), await connect(() => child.bearer)];
    await organisation.ask('POST', `/owner/agents/${agent.agentId}/suspend`, { reason: 'a look' });
    expect(await tool(own, 'read_platform', READ)).toMatchObject({ status: 'halted', code: 'agent_suspended' });
    expect(await tool(of, 'read_platform', READ)).toMatchObject({ status: 'refused', code: 'agent_suspended' });
  });

  test('an invalid token is refused with the reason; a request without one is pointed at the authorization server', async () => {
    const { baseUrl } = world.running;
    const forged = await callMcp(baseUrl, `${agent.token().slice(0, -20)}${'A'.repeat(20)}`);
    expect([forged.status, forged.body.error]).toEqual([401, 'invalid_signature']);
    const past = Math.floor(Date.now() / 1000) - 600;
    const expired = await callMcp(baseUrl, agent.token({ iat: past, exp: past + 60 }));
    expect([expired.status, expired.body.error]).toEqual([401, 'token_expired']);
    const none = await callMcp(baseUrl, undefined);
    expect([none.status, none.headers.get('www-authenticate')]).toEqual([
      401,
      expect.stringContaining('resource_metadata='),
    ]);
    const foreign = await callMcp(baseUrl, 'no.token.ofours');
    expect([foreign.status, foreign.body.detail]).toEqual([401, expect.stringContaining('not an access token')]);
    // An access token is valid at `/mcp` only, as before.
    const { access_token: access } = await new OAuthClient(world).tokens(browserOf(world, organisation.owner));
    expect((await callMcp(baseUrl, access)).status).toBe(200);
  });

  test('X-Svc-Session sets the session id in a child’s audit row', async () => {
    const child = await childOf(world, organisation, agent);
    const message = { method: 'tools/call', params: { name: 'read_platform', arguments: READ } };
    await expectStatus(200, callMcp(world.running.baseUrl, child.bearer, message, { 'x-svc-session': 'run-17' }));
    const { rows } = (await organisation.ask('GET', '/owner/audit?kind=action')).body;
    expect(rows[0]).toMatchObject({ session_id: 'run-17', agent_id: child.id });
  });
});

test('over plain http, where access tokens are refused, an agent’s own tokens are accepted as on /v1', async () => {
  const world = await startWorld('sqlite', { BASE_URL: 'http://broker.example' });
  const organisation = await world.demoOrganisation();
  const agent = await organisation.agent({ rules: DEMO_RULES });
  const { url: at } = JSON.parse(readFileSync(runFile(world.running.broker.config.dataFolder), 'utf8'));
  expect(await callMcp(at, undefined)).toMatchObject({ status: 403, body: { error: 'forbidden' } });
  expect((await callMcp(at, agent.token())).status).toBe(200);
});
