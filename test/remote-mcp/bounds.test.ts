/** Limits on the cost of one request to /mcp, and a client with all of its slots in use by waiting calls can still cancel. */
import { getEventListeners } from 'node:events';
import { request as httpRequest } from 'node:http';
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { AgentPrincipal } from '../../broker/auth/principal.ts';
import { whenCancelled } from '../../broker/http/mcp/cancel.ts';
import { expectStatus, jsonPost } from '../world/agent.ts';
import { deskOf, writeWaiting } from '../world/mcp/held.ts';
import { browserOf } from '../world/mcp/person.ts';
import { callMcp, OAuthClient } from '../world/oauth-client.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { DEMO_RULES, DEMO_SCOPES, givenWorld, shared, startWorld } from '../world/world.ts';

const TIMEOUT = { timeout: 15_000, interval: 5 };
const EVERYTHING = [{ platformId: 'demo', scopes: Object.keys(DEMO_SCOPES) }];
/** MAX_BATCH_SIZE of @modelcontextprotocol/server. */
const MAX_MESSAGES = 100;
/** docs/clients/remote.md, Limits. */
const MAX_OPEN = 32;

const restore = () => void vi.restoreAllMocks();

describe.each(ONE_STORE)(`a request of a remote client on %s${postgresNote}`, (store) => {
  let baseUrl: string;
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation({ rules: DEMO_RULES }));
  const desk = shared(() => deskOf(world, organisation));
  beforeAll(() => {
    baseUrl = world.running.baseUrl;
  });

  /** Returns a client with an agent of its own and a session. */
  async function connected() {
    const name = `bounded-${crypto.randomUUID().slice(0, 8)}`;
    const browser = browserOf(world, organisation.owner);
    const { access_token: token } = await new OAuthClient(world).tokens(browser, {}, { name, grants: EVERYTHING });
    const session = { 'mcp-session-id': crypto.randomUUID() };
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${token}`,
      ...session,
    };
    const post = async (body: unknown, signal?: AbortSignal) =>
      await fetch(`${baseUrl}/mcp`, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
        ...(signal && { signal }),
      });
    return { name, token, session, headers, post };
  }

  const message = (method: string, params?: object) => ({ jsonrpc: '2.0', method, ...(params && { params }) });
  const cancelled = (requestId: unknown) => message('notifications/cancelled', { requestId });

  describe('with many values', () => {
    test('two requests with the same id in one list are refused, and neither is made', async () => {
      const { post } = await connected();
      const before = world.upstream.seen.length;
      const refused = await expectStatus(400, post([1, 2].map((n) => ({ ...call({ n }), id: 7 }))));
      expect(await refused.json()).toEqual({
        jsonrpc: '2.0',
        id: 7,
        error: { code: -32600, message: expect.stringContaining('Two requests of the list have this id') },
      });
      expect(world.upstream.seen.length).toBe(before);
    });

    const call = (data: unknown, more: object = {}) => ({
      ...message('tools/call', {
        name: 'write_platform',
        arguments: { platform: 'demo', endpoint: '/items/1', method: 'PATCH', scope: 'demo:write', data },
        ...more,
      }),
      id: 1,
    });
    const numbers = (count: number) => ({ list: Array(count).fill(0) });
    const members = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`m${i}`, 0]));

    test('with more values than the SDK scans quickly is refused, and with as many as allowed it is made', async () => {
      const { post } = await connected();
      // Thirteen more values are in the message and the call.
      const made = await post(call(numbers(9_987)));
      expect([made.status, (await made.text()).includes('"structuredContent":{"status":"answered"')]).toEqual([
        200,
        true,
      ]);
      const before = world.upstream.seen.length;
      for (const body of [call(numbers(9_988)), call(numbers(300_000)), call([[], numbers(20_000)])]) {
        const refused = await post(body);
        expect([refused.status, await refused.json()]).toEqual([
          400,
          {
            jsonrpc: '2.0',
            error: { code: -32600, message: expect.stringContaining('more than 10,000 values') },
            id: null,
          },
        ]);
      }
      expect(world.upstream.seen.length).toBe(before);
    });

    test('with more than a hundred members in message, params or _meta is refused', async () => {
      const { post } = await connected();
      const listing = (meta: object) => ({ ...message('tools/list', { _meta: meta }), id: 7 });
      expect((await post(listing(members(100)))).status).toBe(200);
      for (const body of [
        listing(members(101)),
        { ...call({}), id: 7, ...members(101) },
        { ...call({}, members(101)), id: 7 },
      ]) {
        const refused = await post(body);
        expect([refused.status, await refused.json()]).toMatchObject([
          400,
          { error: { message: expect.stringContaining('more than 100 members') }, id: 7 },
        ]);
      }
    });
  });

  test('a tool call may stay open as long as a person and a platform may take, any other request two minutes', async () => {
    const { post } = await connected();
    const timers = vi.spyOn(globalThis, 'setTimeout');
    onTestFinished(restore);
    const listed = await post({ ...message('tools/list'), id: 1 });
    await listed.text();
    const minutes = (ms: number | undefined) => ms === 120_000 || ms === 720_000;
    const taken = () => timers.mock.calls.map(([, ms]) => ms).filter(minutes);
    expect([listed.status, taken()]).toEqual([200, [120_000]]);
    const read = { platform: 'demo', endpoint: '/items', scope: 'demo:read' };
    const called = await post({ ...message('tools/call', { name: 'read_platform', arguments: read }), id: 2 });
    expect([called.status, await called.text()]).toEqual([200, expect.stringContaining('"status":"answered"')]);
    expect(taken()).toEqual([120_000, 120_000, 720_000]);
  });

  describe('with a list of messages', () => {
    test('a list that is too long is refused as by the SDK, before its messages are inspected', async () => {
      const { post } = await connected();
      const watched = vi.spyOn(world.running.services.changes, 'watch');
      const told = vi.spyOn(world.running.services.changes, 'tell');
      onTestFinished(restore);
      for (const [count, one] of [
        [4_000, { method: 'tools/call' }],
        [MAX_MESSAGES + 1, cancelled(1)],
        [MAX_MESSAGES + 1, { ...message('ping'), id: 1 }],
      ] as const) {
        const refused = await post(Array.from({ length: count }, () => one));
        expect([count, refused.status]).toEqual([count, 400]);
        expect(await refused.json()).toEqual({
          jsonrpc: '2.0',
          error: { code: -32600, message: `Invalid Request: Batch must not exceed ${MAX_MESSAGES} messages` },
          id: null,
        });
      }
      expect([watched.mock.calls.length, told.mock.calls.length]).toEqual([0, 0]);
    }, 270_000);

    test('a list of the longest allowed length is answered, message by message', async () => {
      const { post } = await connected();
      const pings = Array.from({ length: MAX_MESSAGES }, (_, id) => ({ ...message('ping'), id }));
      const answered = await expectStatus(200, post(pings));
      expect((await answered.text()).match(/"result":\{/g)).toHaveLength(MAX_MESSAGES);
    });

    test('a list counts towards the rate limit as its messages one by one do', async () => {
      const strict = await startWorld(store, { AGENT_BROKER_LIMIT_FACTOR: '1' });
      const { owner } = await strict.organisation();
      const list = Array.from({ length: MAX_MESSAGES }, (_, id) => ({ ...message('ping'), id }));
      const poster = async () => {
        const { access_token } = await new OAuthClient(strict).tokens(browserOf(strict, owner));
        return async (body: unknown) => {
          const response = await fetch(
            `${strict.running.baseUrl}/mcp`,
            jsonPost(body, { accept: 'application/json, text/event-stream', authorization: `Bearer ${access_token}` }),
          );
          const text = await response.text();
          return response.status === 200 ? 200 : [response.status, JSON.parse(text).error];
        };
      };
      const REFUSED = [429, 'rate_limited'];
      // 600 messages a minute: once in lists only, and once with one message before, so that a whole list exceeds the limit.
      const lists = await poster();
      for (let turn = 0; turn < 6; turn++) expect([turn, await lists(list)]).toEqual([turn, 200]);
      expect(await lists(list[0])).toEqual(REFUSED);
      const mixed = await poster();
      expect(await mixed(list[0])).toBe(200);
      for (let turn = 0; turn < 5; turn++) expect([turn, await mixed(list)]).toEqual([turn, 200]);
      expect(await mixed(list)).toEqual(REFUSED);
    });

    test('a list of calls adds one listener for its end, and removes all cancellation watches afterwards', () => {
      const { services } = world.running;
      const who = { agent: { id: crypto.randomUUID() } } as AgentPrincipal;
      const session = { id: crypto.randomUUID(), opensLinks: false };
      const calls = Array.from({ length: MAX_MESSAGES }, (_, id) => ({ method: 'tools/call', id }));
      const watched = vi.spyOn(services.changes, 'watch');
      onTestFinished(restore);
      const over = new AbortController();
      whenCancelled(services, who, session, calls, over.signal, () => expect.unreachable('nobody cancelled'));
      expect(getEventListeners(over.signal, 'abort')).toHaveLength(1);
      const names = watched.mock.calls.map(([name]) => name);
      expect(new Set(names).size).toBe(MAX_MESSAGES);
      over.abort();
      expect(names.map(services.changes.waiting)).toEqual(names.map(() => 0));
    });

    test('cancelling one call of a list does not end the answers of the others', async () => {
      const { post, name } = await connected();
      const list = [1, 2].map((id) => ({
        ...message('tools/call', { name: 'write_platform', arguments: desk.held() }),
        id,
      }));
      const answering = post(list).then((answer) => answer.text());
      const waiting = await vi.waitUntil(async () => {
        const held = await desk.pending(name);
        return held.length === 2 && held;
      }, TIMEOUT);
      expect((await post(cancelled(1))).status).toBe(202);
      for (const id of waiting) await desk.decide(id, 'approve');
      expect(await answering).toContain('"id":2');
    });

    test('a list with members of wrong types is refused without an internal error', async () => {
      const { post, headers } = await connected();
      const odd = { toString: 1, valueOf: 1 };
      const params = [{ name: odd }, { name: 'check_approval', arguments: null }, null, 'text', [odd]];
      for (const one of params) {
        const { status } = await post({ ...message('tools/call'), id: 1, params: one });
        expect([one, status]).toEqual([one, status < 500 ? status : 'below 500']);
      }
      // Nested too deeply to be serialised.
      for (const method of ['notifications/cancelled', 'tools/call']) {
        const text = JSON.stringify({ ...message(method), id: 'ID', params: { requestId: 'ID' } });
        const depth = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
        const answer = await fetch(`${baseUrl}/mcp`, {
          method: 'POST',
          headers,
          body: text.replaceAll('"ID"', depth),
        });
        expect([method, answer.status]).toEqual([method, 400]);
      }
    });
  });

  describe.runIf(store === 'postgres')('that cancels other requests', () => {
    /** Records what is sent to the other replicas about requests, from now on. `first`: runs before the first notice is sent. */
    function countNotices(first?: () => Promise<void>) {
      const notices = world.running.broker.store.notices!;
      const { send } = notices;
      const sent: string[] = [];
      vi.spyOn(notices, 'send').mockImplementation(async (db, payload) => {
        if (payload.includes('mcp-request:') && sent.push(payload) === 1) await first?.();
        await send(db, payload);
      });
      onTestFinished(restore);
      return sent;
    }

    test('other replicas are notified once of each cancelled request, however often it is named', async () => {
      const { post } = await connected();
      const sent = countNotices();
      const ids = [1, 1, '1', 2, 1, '1', 2, 2, null, { id: 1 }, [1], true];
      const answer = await post([...ids, ...ids].map(cancelled));
      await answer.text();
      // Values that cannot be a request id are not sent.
      expect(new Set(sent).size).toBe(3);
      expect(sent).toHaveLength(3);
    });

    test('notices stop once the client has disconnected', async () => {
      const { post, token } = await connected();
      const leaving = new AbortController();
      const went = Promise.withResolvers<void>();
      const sent = countNotices(async () => {
        leaving.abort();
        // The broker has noticed the disconnection once it has answered other requests.
        for (let turn = 0; turn < 3; turn++) await callMcp(baseUrl, token);
        went.resolve();
      });
      const ids = Array.from({ length: MAX_MESSAGES }, (_, id) => id);
      await expect(post(ids.map(cancelled), leaving.signal)).rejects.toThrow();
      await went.promise;
      for (let turn = 0; turn < 10; turn++) await callMcp(baseUrl, token);
      expect(sent).toHaveLength(1);
    });
  });

  describe('of a client with the largest allowed number of open requests', () => {
    async function full() {
      const client = await connected();
      const held = Array.from({ length: MAX_OPEN }, (_, id) =>
        writeWaiting(baseUrl, client.token, desk.held(), client.session, id),
      );
      await Promise.all(held.map(({ waits }) => waits));
      return { ...client, held };
    }

    test('a further request is refused, but a cancellation is accepted, and ends the waiting request', async () => {
      const { post, held, name } = await full();
      const more = { ...message('tools/call', { name: 'write_platform', arguments: desk.held() }), id: 99 };
      for (const body of [more, [cancelled(98), more], { ...message('ping'), id: 99 }]) {
        const refused = await post(body);
        expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '30']);
        expect(await refused.json()).toMatchObject({
          error: 'too_many_streams',
          detail: expect.stringContaining('calls that wait for a person are among them. Nothing was done.'),
          correlation_id: refused.headers.get('x-correlation-id'),
        });
      }
      expect((await post(cancelled(7))).status).toBe(202);
      expect(await held[7]!.answer).not.toContain('"result"');
      expect(await desk.pending(name)).toHaveLength(MAX_OPEN);
      // A slot is free again. Concurrent cancellations of all others are accepted, too.
      await vi.waitFor(async () => expect((await post({ ...message('ping'), id: 99 })).status).toBe(200), TIMEOUT);
      const others = [...held.keys()].filter((id) => id !== 7);
      const answers = await Promise.all(others.map((id) => post(cancelled(id))));
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 202));
      for (const { answer } of held) expect(await answer).not.toContain('"result"');
    }, 180_000);

    test('a cancellation is refused while as many requests again are still being received', async () => {
      const { headers, post } = await connected();
      const begin = () => {
        const request = httpRequest(`${baseUrl}/mcp`, {
          method: 'POST',
          agent: false,
          headers: { ...headers, 'content-length': '100' },
        });
        request.on('error', () => {});
        request.flushHeaders();
        return request;
      };
      const begun = Array.from({ length: 2 * MAX_OPEN }, begin);
      const end = () => {
        for (const request of begun) request.destroy();
      };
      onTestFinished(end);
      await vi.waitFor(async () => {
        // Replaces one that arrived while a cancellation had its slot.
        begun.push(begin());
        expect((await post(cancelled(1))).status).toBe(429);
      }, TIMEOUT);
      end();
      await vi.waitFor(async () => expect((await post(cancelled(1))).status).toBe(202), TIMEOUT);
    });
  });
});
