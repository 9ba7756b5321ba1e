/** Remote MCP clients with two replicas on one PostgreSQL: each request may be handled by either. */
import { readFileSync } from 'node:fs';
import { fetch } from 'undici';
import { beforeAll, describe, expect, test } from 'vitest';
import { REFRESH_LEEWAY_MS } from '../../broker/oauth-server/adapter.ts';
import { runFile } from '../../broker/process/run-file.ts';
import { expectStatus, jsonPost } from '../world/agent.ts';
import { type BrokerProcess, spawnBroker } from '../world/broker-process.ts';
import { writeWaiting } from '../world/mcp/held.ts';
import { envelope } from '../world/mcp/mcp.ts';
import { askConsent, browserOf, openConsent } from '../world/mcp/person.ts';
import { callMcp, OAuthClient } from '../world/oauth-client.ts';
import { newFolder, postgresNote, STORES } from '../world/stores.ts';
import { DEMO_RULES, DEMO_SCOPES, givenWorld, shared } from '../world/world.ts';

const EVERYTHING = [{ platformId: 'demo', scopes: Object.keys(DEMO_SCOPES) }];
const WRITE = { platform: 'demo', scope: 'demo:write', endpoint: '/items', data: { name: 'x' } };

describe.runIf(STORES.includes('postgres'))(`two replicas on postgres${postgresNote}`, () => {
  let second: BrokerProcess;
  /** Addresses of the two replicas of one broker, as behind a load balancer. */
  let here: string;
  let there: string;
  const world = givenWorld('postgres');
  const organisation = shared(() => world.demoOrganisation());
  beforeAll(async () => {
    await organisation.policy(DEMO_RULES, 'default');
    here = world.running.baseUrl;
    const folder = newFolder();
    second = spawnBroker({
      ...world.environment,
      PORT: '0',
      BASE_URL: here,
      AGENT_BROKER_DATA: folder,
      AGENT_BROKER_KEY_FILE: world.running.broker.config.keyFile,
    });
    // The public address differs from the one it listens on.
    await second.serve();
    const { port } = new URL(JSON.parse(readFileSync(runFile(folder), 'utf8')).url);
    there = `http://localhost:${port}`;
    return () => second.signal('SIGKILL');
  });
  const browser = () => browserOf(world, organisation.owner);
  const works = async (token: string) => [(await callMcp(here, token)).status, (await callMcp(there, token)).status];

  test('registration, consent page, decision, code and refresh may be handled by different replicas, and the token is valid on both', async () => {
    const person = browser();
    const client = new OAuthClient(world);
    await client.register();
    const elsewhere = (url: string) => url.replace(here, there);
    const page = await openConsent(person, client.address());
    expect((await askConsent(person, elsewhere(page), 'request')).body.client.id).toBe(client.id);
    const name = `client-${crypto.randomUUID().slice(0, 8)}`;
    const decided = await askConsent(person, elsewhere(page), 'decision', { allow: true, name, grants: EVERYTHING });
    expect(decided.status, decided.text).toBe(200);
    const back = new URL((await person.get(decided.body.location)).url);
    const other = new OAuthClient(world, there);
    Object.assign(other, { id: client.id, pair: client.pair });
    const tokens = (await other.redeem(back.searchParams.get('code')!)).body;
    expect(await works(tokens.access_token)).toEqual([200, 200]);
    const more = await client.refresh(tokens.refresh_token);
    expect(await works(more.body.access_token)).toEqual([200, 200]);
  });

  test('a token that a client revokes on one replica, access or refresh, is refused by the other', async () => {
    for (const which of ['access_token', 'refresh_token'] as const) {
      const client = new OAuthClient(world);
      const tokens = await client.tokens(browser());
      expect(await works(tokens.access_token)).toEqual([200, 200]);
      const other = new OAuthClient(world, there);
      Object.assign(other, { id: client.id });
      await expectStatus(200, other.post('/oauth/revoke', { client_id: client.id, token: tokens[which] }));
      expect(await works(tokens.access_token)).toEqual([401, 401]);
      expect((await client.refresh(tokens.refresh_token)).body.error).toBe('invalid_grant');
      expect((await other.refresh(tokens.refresh_token)).body.error).toBe('invalid_grant');
    }
  });

  test('a code that is redeemed on both replicas concurrently is accepted once at most', async () => {
    for (let turn = 0; turn < 3; turn++) {
      const client = new OAuthClient(world);
      const code = await client.code(browser());
      const other = new OAuthClient(world, there);
      Object.assign(other, { id: client.id, pair: client.pair });
      const both = await Promise.all([
        client.redeem(code),
        other.redeem(code),
        client.redeem(code),
        other.redeem(code),
      ]);
      expect(both.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(1);
    }
  });

  test('an authorisation ended on one replica, by an owner, the client or a replay, is refused by the other at the next call', async () => {
    const byOwner = await new OAuthClient(world).tokens(browser());
    const list = (await organisation.ask('GET', '/owner/mcp-authorisations')).body.authorisations;
    expect(await works(byOwner.access_token)).toEqual([200, 200]);
    await organisation.ask('DELETE', `/owner/mcp-authorisations/${list[0].id}`);
    expect(await works(byOwner.access_token)).toEqual([401, 401]);

    const client = new OAuthClient(world);
    const byClient = await client.tokens(browser());
    const other = new OAuthClient(world, there);
    other.id = client.id;
    await other.post('/oauth/revoke', { client_id: client.id, token: byClient.refresh_token });
    expect(await works(byClient.access_token)).toEqual([401, 401]);

    const replayed = new OAuthClient(world);
    const first = await replayed.tokens(browser());
    const next = (await replayed.refresh(first.refresh_token)).body;
    world.clock.skewMs = REFRESH_LEEWAY_MS + 1_000;
    expect(await replayed.refresh(first.refresh_token)).toMatchObject({
      status: 400,
      body: { error: 'invalid_grant' },
    });
    world.clock.skewMs = 0;
    expect(await works(next.access_token)).toEqual([401, 401]);
  });

  test('identical calls on both replicas are the same held call, which is approved once', async () => {
    const { access_token: token } = await new OAuthClient(world).tokens(browser(), {}, { grants: EVERYTHING });
    const write = (at: string, reason: string) => writeWaiting(at, token, { ...WRITE, reason });
    const pending = async () =>
      (await organisation.ask('GET', '/owner/approvals')).body.approvals.filter(
        (one: { status: string }) => one.status === 'pending',
      );
    const first = write(here, 'first');
    const held = await until(async () => (await pending())[0]);
    const again = write(there, 'in other words');
    // Both calls are waiting, so that neither arrives after the result was delivered.
    await Promise.all([first.waits, again.waits]);
    const before = world.upstream.seen.length;
    await organisation.approve(held.approval_id);
    const answers = await Promise.all([first.answer, again.answer]);
    for (const text of answers) expect(text).toContain('"status":"answered"');
    expect(world.upstream.seen.length).toBe(before + 1);
    expect(await pending()).toHaveLength(0);
  });

  test('a cancellation on one replica ends the wait on the other, and the call stays held', async () => {
    const grants = EVERYTHING;
    const name = `cancels-${crypto.randomUUID().slice(0, 8)}`;
    const { access_token: token } = await new OAuthClient(world).tokens(browser(), {}, { name, grants });
    const clientInfo = { name: 'raw', version: '1' };
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
    const greeted = await callMcp(here, token, { method: 'initialize', params });
    const session = { 'mcp-session-id': greeted.headers.get('mcp-session-id')! };
    for (const [waitsAt, cancelsAt] of [
      [here, there],
      [there, here],
    ] as const) {
      const waiting = writeWaiting(waitsAt, token, { ...WRITE, data: { waitsAt } }, session);
      await waiting.waits;
      const message = { id: undefined, method: 'notifications/cancelled', params: { requestId: 1 } };
      expect((await callMcp(cancelsAt, token, message, session)).status).toBe(202);
      const text = await waiting.answer;
      expect(text).toContain('notifications/progress');
      expect(text).not.toContain('"result"');
    }
    const { approvals } = (await organisation.ask('GET', '/owner/approvals?status=pending')).body;
    expect(approvals.filter((one: { agent: { name: string } }) => one.agent.name === name)).toHaveLength(2);
  });

  test('a client that got a link from one replica waits on the other, without another handshake', async () => {
    const grants = EVERYTHING;
    const { access_token: token } = await new OAuthClient(world).tokens(browser(), {}, { grants });
    const clientInfo = { name: 'raw', version: '1' };
    const params = { protocolVersion: '2025-11-25', capabilities: { elicitation: { url: {} } }, clientInfo };
    const greeted = await callMcp(here, token, { method: 'initialize', params });
    const session = { 'mcp-session-id': greeted.headers.get('mcp-session-id')! };
    const args = { ...WRITE, data: { linked: true } };
    const message = { method: 'tools/call', params: { name: 'write_platform', arguments: args } };
    const { text } = await callMcp(there, token, message, session);
    const [, id] = /"code":-32042.*"elicitationId":"([^"]+)"/.exec(text) ?? [];
    expect(id, text).toBeDefined();
    const waiting = writeWaiting(here, token, args, session);
    await waiting.waits;
    await organisation.approve(id);
    expect(await waiting.answer).toContain(`"approval_id":"${id}"`);
  });

  test('a task created by one replica can be polled on the other', async () => {
    const grants = EVERYTHING;
    const { access_token: token } = await new OAuthClient(world).tokens(browser(), {}, { grants });
    const _meta = envelope({ extensions: { 'io.modelcontextprotocol/tasks': {} } });
    const ask = async (at: string, method: string, name: string, params: object) => {
      const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method, 'mcp-name': name };
      const { text } = await callMcp(at, token, { method, params: { ...params, _meta } }, headers);
      return JSON.parse(text).result;
    };
    const args = { ...WRITE, data: { task: true } };
    const made = await ask(here, 'tools/call', 'write_platform', { name: 'write_platform', arguments: args });
    expect(made).toMatchObject({ resultType: 'task', status: 'working' });
    const { taskId } = made;
    expect(await ask(there, 'tasks/get', taskId, { taskId })).toMatchObject({ status: 'working' });
    await organisation.approve(taskId);
    for (const at of [there, here])
      expect(await ask(at, 'tasks/get', taskId, { taskId })).toMatchObject({
        status: 'completed',
        result: { resultType: 'complete', structuredContent: { status: 'answered', approval_id: taskId } },
      });
  });

  test('an owner’s change on one replica is notified to a client subscribed on the other', async () => {
    const name = `listens-${crypto.randomUUID().slice(0, 8)}`;
    const grants = [{ platformId: 'demo', scopes: ['demo:read'] }];
    const { access_token: token } = await new OAuthClient(world).tokens(browser(), {}, { name, grants });
    const _meta = envelope();
    const params = { _meta, notifications: { toolsListChanged: true } };
    const response = await fetch(
      `${there}/mcp`,
      jsonPost(
        { jsonrpc: '2.0', id: 'news', method: 'subscriptions/listen', params },
        {
          accept: 'application/json, text/event-stream',
          authorization: `Bearer ${token}`,
          'mcp-protocol-version': '2026-07-28',
          'mcp-method': 'subscriptions/listen',
        },
      ),
    );
    let text = '';
    for await (const chunk of response.body!) {
      const before = text;
      text += Buffer.from(chunk as Uint8Array).toString('utf8');
      if (text.includes('list_changed')) break;
      if (before.includes('acknowledged') || !text.includes('acknowledged')) continue;
      const { agents } = (await organisation.ask('GET', '/owner/agents')).body;
      const { id } = agents.find((one: { name: string }) => one.name === name);
      await organisation.ask('POST', `/owner/agents/${id}/grants/demo`, { scopes: ['demo:read', 'demo:write'] });
    }
    expect(text).toContain('notifications/tools/list_changed');
  });
});

async function until<T>(look: () => Promise<T | undefined>): Promise<T> {
  for (let turn = 0; turn < 400; turn++) {
    const found = await look();
    if (found !== undefined) return found;
    await new Promise((next) => setTimeout(next, 25));
  }
  throw new Error('it never came');
}
