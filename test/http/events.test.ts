/** GET /owner/events: counts of pending items, updated on every change, for owners of the organisation only. */

import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import { makeInboxFeed } from '../../broker/approvals/inbox.ts';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import type { AgentPrincipal } from '../../broker/auth/principal.ts';
import { sessionCookieName } from '../../broker/auth/session-cookie.ts';
import { uuidv4 } from '../../broker/crypto/ids.ts';
import { eventStream } from '../../broker/http/event-stream.ts';
import { waitWithin } from '../../broker/http/proxy/held.ts';
import { makeRateLimits } from '../../broker/http/rate-limits.ts';
import { windowCounts } from '../../broker/runtime/window-counts.ts';
import type { OwnerTable } from '../../broker/store/tables/organisations.ts';
import { expectStatus, send, type TestAgent } from '../world/agent.ts';
import { type EventReader, readEvents } from '../world/event-stream.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { givenWorld, shared, type World, WRITE } from '../world/world.ts';

const session = (world: World, owner: OwnerTable) => mintOwnerSession(world.running.broker, owner).token;
const listen = (world: World, owner: OwnerTable, from?: string): Promise<EventReader> =>
  readEvents(`${world.running.baseUrl}/owner/events`, { authorization: `Bearer ${session(world, owner)}` }, from);
const waiting = (reader: EventReader) => reader.events.at(-1)?.data.waiting;

async function hold(agent: TestAgent): Promise<string> {
  return agent.hold(WRITE);
}

describe.each(ONE_STORE)(`events on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent());
  const decide = (id: string, verb: string) => organisation.ask('POST', `/owner/approvals/${id}/${verb}`);

  test('the counts are sent immediately, and after every change; a viewer may listen', async () => {
    const reader = await listen(world, await organisation.addOwner('viewer'));
    expect([reader.status, reader.headers['content-type']]).toEqual([200, 'text/event-stream; charset=utf-8']);
    expect(reader.headers['cache-control']).toBe('no-store');
    await reader.until(({ events }) => events.length === 1);
    expect(reader.events[0]).toMatchObject({
      event: 'inbox',
      data: { waiting: { approvals: 0, access_requests: 0, registrations: 0 } },
    });
    const id = await hold(agent);
    await reader.until(() => waiting(reader).approvals === 1);
    await decide(id, 'deny');
    await reader.until(() => waiting(reader).approvals === 0);
    reader.close();
  });

  test('expired items are not counted', async () => {
    const id = await hold(agent);
    const before = await listen(world, organisation.owner);
    await before.until(() => waiting(before)?.approvals === 1);
    world.clock.skewMs += 25 * 3600 * 1000;
    const after = await listen(world, organisation.owner);
    await after.until(() => waiting(after)?.approvals === 0);
    before.close();
    after.close();
    // The next test's clock is correct again, and the call would be pending again.
    world.clock.skewMs = 0;
    await decide(id, 'deny');
  });

  test('a burst of changes causes few events, the last of them with the final counts', async () => {
    const reader = await listen(world, organisation.owner);
    await reader.until(({ events }) => events.length === 1);
    const began = performance.now();
    const ids = await Promise.all(Array.from({ length: 20 }, () => hold(agent)));
    await reader.until(() => waiting(reader).approvals === ids.length);
    await pause(300);
    const most = Math.ceil((performance.now() - began) / 100) + 1;
    expect(reader.events.length - 1).toBeLessThanOrEqual(most);
    for (const id of ids) await decide(id, 'deny');
    await reader.until(() => waiting(reader).approvals === 0);
    reader.close();
  });

  test('no events of another organisation', async () => {
    const other = await world.organisation();
    const mine = await listen(world, organisation.owner);
    const theirs = await listen(world, other.owner);
    await theirs.until(({ events }) => events.length === 1);
    const id = await hold(agent);
    await mine.until(() => waiting(mine)?.approvals === 1);
    await decide(id, 'deny');
    await mine.until(() => waiting(mine).approvals === 0);
    await other.platform();
    await hold(await other.agent());
    await theirs.until(({ events }) => events.length > 1);
    expect(theirs.events.map(({ data }) => data.waiting.approvals)).toEqual([0, 1]);
    mine.close();
    theirs.close();
  });

  test('one query per change serves all listeners, and none runs while nothing changes', async () => {
    let asked = 0;
    const { broker, services } = world.running;
    const db = broker.store.db.withPlugin({
      transformQuery: ({ node }) => {
        asked++;
        return node;
      },
      transformResult: async ({ result }) => result,
    });
    const feed = makeInboxFeed({ ...broker, store: { ...broker.store, db } }, services.changes);
    const heard: number[] = [];
    const stops = Array.from({ length: 50 }, () =>
      feed.follow(organisation.id, { waiting: (now) => heard.push(now.approvals), over: () => {} }),
    );
    await vi.waitUntil(() => heard.length === 50, { timeout: 10_000 });
    // The first got its event before the others connected.
    expect(asked).toBeLessThanOrEqual(2);
    const before = asked;
    const ref = { organisation_id: organisation.id, id: uuidv4() };
    services.changes.tell(ref);
    await vi.waitUntil(() => heard.length === 100, { timeout: 10_000 });
    expect(asked - before).toBe(1);
    services.changes.tell({ ...ref, organisation_id: uuidv4() });
    for (const stop of stops) stop();
    services.changes.tell(ref);
    await pause(300);
    expect([asked - before, heard.length]).toEqual([1, 100]);
  });

  test('401 without a session, 401 with an agent’s token', async () => {
    const url = `${world.running.baseUrl}/owner/events`;
    expect(JSON.parse((await readEvents(url)).body).error).toBe('missing_token');
    const asAgent = await readEvents(url, { authorization: `Bearer ${agent.token()}` });
    expect([asAgent.status, JSON.parse(asAgent.body).error]).toEqual([401, 'invalid_token']);
  });

  test('a page of another site cannot listen with a user’s cookie; HEAD is answered and ends', async () => {
    const cookie = `${sessionCookieName(world.running.baseUrl)}=${session(world, organisation.owner)}`;
    const foreign = await readEvents(`${world.running.baseUrl}/owner/events`, {
      cookie,
      'sec-fetch-site': 'cross-site',
    });
    expect([foreign.status, JSON.parse(foreign.body).error]).toEqual([403, 'forbidden']);
    const own = await readEvents(`${world.running.baseUrl}/owner/events`, { cookie, 'sec-fetch-site': 'same-origin' });
    await own.until(({ events }) => events.length === 1);
    own.close();
    const head = await fetch(`${world.running.baseUrl}/owner/events`, { method: 'HEAD', headers: { cookie } });
    expect([head.status, head.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8']);
  });
});

describe('streams that end', () => {
  const world = givenWorld();
  const organisation = shared(() => world.organisation());

  test('each heartbeat checks the session again: ended sessions end the stream, valid ones keep it', async () => {
    const token = session(world, organisation.owner);
    const ending = await readEvents(`${world.running.baseUrl}/owner/events`, {
      cookie: `${sessionCookieName(world.running.baseUrl)}=${token}`,
    });
    const going = await listen(world, organisation.owner);
    const signedOut = await send(`${world.running.baseUrl}/owner/sign-out`, {
      method: 'POST',
      headers: {
        cookie: `${sessionCookieName(world.running.baseUrl)}=${token}`,
        'x-svc-csrf': '1',
        'content-type': 'application/json',
      },
      body: '{}',
    });
    expect(signedOut.status, signedOut.text).toBe(200);
    await going.until(({ comments }) => comments.includes('heartbeat'));
    await ending.until(({ ended }) => ended());
    expect([going.ended(), ending.comments]).toEqual([false, []]);
    going.close();
  }, 180_000);

  test('DOS-05 an address gets 100 streams and no more; another address, and another organisation there, has its own limit', async () => {
    const readers = await Promise.all(Array.from({ length: 100 }, () => listen(world, organisation.owner)));
    expect(new Set(readers.map(({ status }) => status))).toEqual(new Set([200]));
    const refused = await listen(world, organisation.owner);
    expect([refused.status, JSON.parse(refused.body).error]).toEqual([429, 'too_many_streams']);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
    const elsewhere = await expectStatus(200, listen(world, organisation.owner, '127.0.0.2'));
    const stranger = await expectStatus(200, listen(world, (await world.organisation()).owner));
    readers.pop()!.close();
    await vi.waitUntil(
      async () => {
        const again = await listen(world, organisation.owner);
        readers.push(again);
        return again.status === 200;
      },
      { timeout: 10_000, interval: 100 },
    );
    for (const reader of [...readers, elsewhere, stranger]) reader.close();
  });

  test('DOS-05 a client that disconnects before the store has answered occupies no slot', async () => {
    const { services } = world.running;
    const recognise = services.authenticateOwner;
    let asked = 0;
    let goOn = () => {};
    const gone = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const slow = vi.spyOn(services, 'authenticateOwner').mockImplementation(async (token) => {
      asked++;
      await gone;
      return await recognise(token);
    });
    const { port } = new URL(world.running.baseUrl);
    const sockets = Array.from({ length: 100 }, () => {
      const socket = connect(Number(port), '127.0.0.1').on('error', () => {});
      const bearer = `Authorization: Bearer ${session(world, organisation.owner)}`;
      socket.write(`GET /owner/events HTTP/1.1\r\nHost: localhost\r\n${bearer}\r\n\r\n`);
      return socket;
    });
    await vi.waitUntil(() => asked === 100, { timeout: 10_000 });
    for (const socket of sockets) socket.destroy();
    await pause(200);
    slow.mockRestore();
    goOn();
    await vi.waitUntil(
      async () => {
        const reader = await listen(world, organisation.owner);
        reader.close();
        return reader.status === 200;
      },
      { timeout: 5_000, interval: 100 },
    );
  });

  test('DOS-05 a limit applies to all streams together; disconnecting twice frees one slot', () => {
    const limits = makeRateLimits(1, windowCounts(60_000), { refused: () => {} });
    const slots = { perKey: 2, overall: 3 };
    const enter = (key: string) => limits.enter('x', slots, { key });
    const leave = enter('a')!;
    expect([enter('a'), enter('a')].map(Boolean)).toEqual([true, false]);
    expect([enter('b'), enter('b')].map(Boolean)).toEqual([true, false]);
    leave();
    leave();
    expect([enter('b'), enter('c')].map(Boolean)).toEqual([true, false]);
    expect(Boolean(limits.enter('y', slots, { key: 'c' }))).toBe(true);
  });

  test('DOS-05 the streams of one organisation leave a reserve to the others', () => {
    const limits = makeRateLimits(1, windowCounts(60_000), { refused: () => {} });
    const enter = (organisation: string) =>
      limits.enter('x', { perKey: 1_000, overall: 32 }, { key: 'address', organisation });
    const entered = (organisation: string, times: number) =>
      Array.from({ length: times }, () => enter(organisation)).filter(Boolean).length;
    const leave = enter('large')!;
    expect(entered('large', 40)).toBe(31);
    expect(['small', 'second', 'third', 'fourth', 'fifth'].map((one) => entered(one, 4))).toEqual([2, 2, 2, 2, 0]);
    leave();
    // The reserve is in use; what the large one has ended is not in it.
    expect([entered('fifth', 4), entered('large', 1)]).toEqual([1, 0]);
  });

  test('DOS-05 requests that wait for a person hold 32 MiB of bodies, and those of other organisations a reserve', () => {
    const limits = makeRateLimits(1, windowCounts(60_000), { refused: () => {} });
    const MIB = 1024 * 1024;
    const agentOf = (organisation_id: string, id: string) => ({ agent: { id, organisation_id } }) as AgentPrincipal;
    const waits = (who: AgentPrincipal, bytes: number, times: number) =>
      Array.from({ length: times }, () => waitWithin(limits, who, 1_000, bytes).enter(uuidv4())).filter(
        (leave) => leave !== undefined,
      );
    const large = waits(agentOf('large', 'a'), MIB, 40);
    expect(large).toHaveLength(32);
    expect(waits(agentOf('large', 'b'), MIB, 1)).toHaveLength(0);
    // Short ones wait, as many as an agent may have: those that were refused took no slot.
    expect(waits(agentOf('large', 'b'), 0, 101)).toHaveLength(100);
    expect(waits(agentOf('small', 'c'), MIB, 40)).toHaveLength(8);
    for (const leave of large) leave();
    expect(waits(agentOf('large', 'a'), MIB, 40)).toHaveLength(24);
  });

  test('DOS-05 a client that does not read is disconnected, and nothing is buffered for it', async () => {
    let undone = false;
    let unread = 0;
    const server = createServer((_request, response) => {
      const { stream } = eventStream(
        ({ send: say }) => {
          const talk = setInterval(() => {
            say('x', 'y'.repeat(32 * 1024));
            unread = Math.max(unread, response.writableLength);
          }, 1);
          return () => {
            clearInterval(talk);
            undone = true;
          };
        },
        async () => true,
      );
      response.writeHead(200);
      stream!(response);
    });
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.on('error', () => {}).write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    socket.pause();
    await vi.waitUntil(() => undone, { timeout: 15_000 });
    expect(unread).toBeGreaterThan(0);
    expect(unread).toBeLessThan(128 * 1024);
    socket.destroy();
    server.close();
  });

  test('the broker stops immediately despite listeners, and ends their streams', async () => {
    const readers = await Promise.all(Array.from({ length: 3 }, () => listen(world, organisation.owner)));
    const began = performance.now();
    await world.running.stop();
    expect(performance.now() - began).toBeLessThan(6_000);
    for (const reader of readers) await reader.until(({ ended }) => ended());
  });
});
