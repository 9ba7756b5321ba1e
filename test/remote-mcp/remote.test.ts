/** Remote MCP clients: the whole flow from the address alone to a tool's answer, with the clients of both SDK generations. */
import { Client, UnauthorizedError as NotAuthorized } from '@modelcontextprotocol/client';
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js';
import { describe, expect, test } from 'vitest';
import { expectStatus, jsonPost, send } from '../world/agent.ts';
import { browserOf, ClientMemory, connectClient, connectFirstClient } from '../world/mcp/person.ts';
import { callMcp, OAuthClient } from '../world/oauth-client.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { DEMO_RULES, DEMO_SCOPES, givenWorld, shared } from '../world/world.ts';

const EVERYTHING = [{ platformId: 'demo', scopes: Object.keys(DEMO_SCOPES) }];
const READ = { platform: 'demo', scope: 'demo:read', endpoint: '/items' };
const WRITE = { platform: 'demo', scope: 'demo:write', endpoint: '/items', data: { name: 'x' }, reason: 'to see' };

// biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came.
type Json = any;

describe.each(ONE_STORE)(`a remote MCP client on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation({ rules: DEMO_RULES }));
  const browser = () => browserOf(world, organisation.owner);
  const agentNamed = async (name: string) =>
    (await organisation.ask('GET', '/owner/agents')).body.agents.find((one: Json) => one.name === name);
  const structured = (answer: unknown): Json => (answer as Json).structuredContent;

  describe.each([
    ['that shakes hands', undefined],
    ['of 2026-07-28', { mode: { pin: '2026-07-28' } }],
  ] as const)('of the second SDK generation %s', (era, versionNegotiation) => {
    const make = (capabilities = {}) =>
      new Client({ name: 'test', version: '1' }, { capabilities, ...(versionNegotiation && { versionNegotiation }) });

    test('starts with only the address, reads, and writes after an approval', async () => {
      const name = `Claude ${era}`;
      const { client } = await connectClient(world, browser(), {
        client: make(),
        decision: { name, grants: EVERYTHING },
      });
      const { tools } = await client.listTools();
      expect(tools.map((one) => one.name)).toEqual([
        'read_platform',
        'write_platform',
        'delete_platform',
        'check_approval',
        'list_permissions',
        'request_access',
      ]);
      const permissions = structured(await client.callTool({ name: 'list_permissions', arguments: {} }));
      expect(permissions.permissions.agent.name).toBe(name);
      expect(permissions.permissions.platforms[0]).toMatchObject({
        platformId: 'demo',
        scopes: Object.keys(DEMO_SCOPES).toSorted(),
      });

      const read = structured(await client.callTool({ name: 'read_platform', arguments: READ }));
      expect(read).toMatchObject({ status: 'answered', upstream_status: 200, data: { method: 'GET' } });

      const before = world.upstream.seen.length;
      const writing = client.callTool({ name: 'write_platform', arguments: WRITE });
      const held = await waitingOf(name);
      expect(world.upstream.seen.length).toBe(before);
      expect((await organisation.approve(held)).status).toBe(200);
      expect(structured(await writing)).toMatchObject({ status: 'answered', data: { method: 'POST' } });
      expect(world.upstream.seen.length).toBe(before + 1);
      await client.close();
    });

    test('repeats a held call without creating another, and gets the result by check_approval', async () => {
      const name = `Repeating ${era}`;
      const { client, memory } = await connectClient(world, browser(), {
        client: make(),
        decision: { name, grants: EVERYTHING },
      });
      const leaving = new AbortController();
      const first = client
        .callTool({ name: 'write_platform', arguments: WRITE }, { signal: leaving.signal })
        .catch(() => {});
      const held = await waitingOf(name);
      leaving.abort();
      await first;
      // Another process of the same client makes the same call with another reason.
      const waits = Promise.withResolvers<void>();
      const again = client.callTool(
        { name: 'write_platform', arguments: { ...WRITE, reason: 'once more' } },
        { onprogress: () => waits.resolve() },
      );
      await waits.promise;
      await organisation.deny(held, { note: 'not today' });
      expect(structured(await again)).toMatchObject({ status: 'denied', note: 'not today' });
      const checked = await client.callTool({ name: 'check_approval', arguments: { approval_id: held } });
      expect(structured(checked).status).toBe('denied');
      expect(memory.saved?.refresh_token).toBeDefined();
      const { approvals } = (await organisation.ask('GET', '/owner/approvals')).body;
      expect(approvals.filter((one: Json) => one.agent.name === name)).toHaveLength(1);
      await client.close();
    });
  });

  /** Returns the waiting approval of this agent, once there is one. */
  async function waitingOf(name: string): Promise<string> {
    for (let turn = 0; turn < 200; turn++) {
      const { approvals } = (await organisation.ask('GET', '/owner/approvals')).body;
      const found = approvals.find((one: Json) => one.agent.name === name && one.status === 'pending');
      if (found) return found.approval_id;
      await new Promise((next) => setTimeout(next, 25));
    }
    throw new Error('nothing was held');
  }

  test('of the first SDK generation can connect and read in the same way', async () => {
    const client = new FirstClient({ name: 'first', version: '1' });
    const decision = { name: 'First', grants: EVERYTHING };
    await connectFirstClient(world, browser(), { client, memory: new ClientMemory(), decision });
    const answer = structured(await client.callTool({ name: 'read_platform', arguments: READ }));
    expect(answer).toMatchObject({ status: 'answered', data: { method: 'GET' } });
    await client.close();
  });

  test('has an agent that an owner can suspend, resume and revoke with effect at the next call, and whose DID document has no key', async () => {
    const { client } = await connectClient(world, browser(), { decision: { name: 'Stopped', grants: EVERYTHING } });
    const { agent_id, id, agent_type } = await agentNamed('Stopped');
    expect(agent_type).toBe('mcp_client');
    await organisation.ask('POST', '/owner/organisation', { publish_identity_documents: true });
    const did = await send(`${world.running.baseUrl}/agents/${agent_id}/did.json`, {});
    const host = new URL(world.running.baseUrl).host.replace(':', '%3A');
    expect(did.body).toMatchObject({ controller: `did:web:${host}`, authentication: [], assertionMethod: [] });
    expect(did.body).not.toHaveProperty('verificationMethod');

    const read = async () => structured(await client.callTool({ name: 'read_platform', arguments: READ }));
    expect((await read()).status).toBe('answered');
    await organisation.ask('POST', `/owner/agents/${id}/suspend`, { reason: 'a look' });
    expect(await read()).toMatchObject({ status: 'halted', code: 'agent_suspended' });
    await organisation.ask('POST', `/owner/agents/${id}/resume`, {});
    expect((await read()).status).toBe('answered');
    await organisation.ask('POST', `/owner/agents/${id}/revoke`, {});
    await expect(read()).rejects.toThrow(NotAuthorized);
    const gone = await send(`${world.running.baseUrl}/agents/${agent_id}/did.json`, {});
    expect([gone.status, gone.body.deactivated]).toEqual([410, true]);
  });

  test('without permissions learns that, requests access, and can use the scope immediately after an owner grants it', async () => {
    const { client } = await connectClient(world, browser(), { decision: { name: 'Poor', grants: [] } });
    const listed = structured(await client.callTool({ name: 'list_permissions', arguments: {} }));
    expect(listed).toMatchObject({ status: 'permissions', next: expect.stringContaining('request_access') });
    const denied = structured(await client.callTool({ name: 'read_platform', arguments: READ }));
    expect(denied).toMatchObject({ status: 'refused', next: expect.stringContaining('request_access') });
    const asking = client.callTool({
      name: 'request_access',
      arguments: { platform: 'demo', scope: 'demo:read', reason: 'to read' },
    });
    const request = await (async () => {
      for (let turn = 0; turn < 200; turn++) {
        const { access_requests } = (await organisation.ask('GET', '/owner/access-requests')).body;
        const found = access_requests?.find((one: Json) => one.agent.name === 'Poor');
        if (found) return found;
        await new Promise((next) => setTimeout(next, 25));
      }
    })();
    await expectStatus(200, organisation.ask('POST', `/owner/access-requests/${request.request_id}/approve`, {}));
    expect(structured(await asking).status).toBe('granted');
    expect(structured(await client.callTool({ name: 'read_platform', arguments: READ })).status).toBe('answered');
    await client.close();
  });

  test('whose connection breaks during a write gets its result by repeating the call, which is made once', async () => {
    const grants = EVERYTHING;
    const { access_token: token } = await new OAuthClient(world).tokens(browser(), {}, { grants });
    const args = {
      platform: 'demo',
      scope: 'demo:write',
      endpoint: '/items/1',
      method: 'PATCH',
      data: { once: store },
    };
    const message = { method: 'tools/call', params: { name: 'write_platform', arguments: args } };
    const before = world.upstream.seen.length;
    const arrived = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    world.upstream.answer = async (_request, response) => {
      arrived.resolve();
      await release.promise;
      response.setHeader('content-type', 'application/json');
      response.end('{"made":true}');
    };
    const breaking = new AbortController();
    const broken = fetch(`${world.running.baseUrl}/mcp`, {
      ...jsonPost(
        { jsonrpc: '2.0', id: 1, ...message },
        { accept: 'application/json, text/event-stream', authorization: `Bearer ${token}` },
      ),
      signal: breaking.signal,
    })
      .then((response) => response.text())
      .catch(() => 'broken');
    await arrived.promise;
    breaking.abort();
    expect(await broken).toBe('broken');
    // The broker has noticed the disconnection once it has answered another request.
    for (let turn = 0; turn < 3; turn++) await callMcp(world.running.baseUrl, token);
    release.resolve();
    let again = await callMcp(world.running.baseUrl, token, message);
    for (let turn = 0; turn < 100 && !again.text.includes('answered'); turn++)
      again = await callMcp(world.running.baseUrl, token, message);
    world.upstream.answer = undefined;
    expect(again.text).toContain('"made":true');
    expect(world.upstream.seen.length).toBe(before + 1);
  });

  test('is refused at the next call after an owner revokes its authorisation, which is listed as ended', async () => {
    const { client } = await connectClient(world, browser(), { decision: { name: 'Ended', grants: EVERYTHING } });
    const list = async () => (await organisation.ask('GET', '/owner/mcp-authorisations')).body.authorisations;
    const mine = (await list()).find((one: Json) => one.agent.name === 'Ended');
    expect(mine).toMatchObject({
      status: 'live',
      client: { name: 'Test Client', redirect_host: '127.0.0.1' },
      owner_id: organisation.owner.id,
      scopes: ['mcp:read', 'mcp:write'],
    });
    expect((await client.listTools()).tools).toHaveLength(6);
    expect((await organisation.ask('DELETE', `/owner/mcp-authorisations/${mine.id}`)).body.status).toBe('ended');
    await expect(client.listTools()).rejects.toThrow();
    expect((await list()).find((one: Json) => one.id === mine.id)).toMatchObject({ ended_because: 'owner' });
    expect(await organisation.ask('DELETE', `/owner/mcp-authorisations/${mine.id}`)).toMatchObject({
      status: 409,
      body: { error: 'conflict' },
    });
    const { rows } = (await organisation.ask('GET', '/owner/audit?limit=20')).body;
    expect(rows.map((row: Json) => row.reason)).toContain('mcp_client_revoked');
  });
});
