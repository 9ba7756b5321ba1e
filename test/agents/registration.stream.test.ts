/** GET /v1/register/stream/{token}: the state of a registration, read by a third-party parser. */
import { createParser, type EventSourceMessage } from 'eventsource-parser';
import { Agent, fetch as undiciFetch } from 'undici';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { expireRegistrations } from '../../broker/admin/registrations/registration.ts';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { type Answer, expectStatus, jsonPost, send } from '../world/agent.ts';

import { readEvents } from '../world/event-stream.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { startReplica } from '../world/replica.ts';
import { sized } from '../world/runner/thorough.ts';
import { ONE_STORE, postgresNote, STORES } from '../world/stores.ts';
import { HOUR_MS } from '../world/times.ts';
import { givenWorld, shared, startWorld, type World } from '../world/world.ts';

const NOBODY = 'deadbeef-0000-4000-8000-000000000000';

type Stream = {
  status: number;
  headers: Headers;
  events: EventSourceMessage[];
  comments: string[];
  retry: number | undefined;
  text: string;
  ended: boolean;
  /** Waits until the predicate holds for what was received, 30 s at most. */
  until(is: (stream: Stream) => boolean): Promise<void>;
  close(): Promise<void>;
};

/** Clients that listen with one token: from 40 addresses in turn, so that no address reaches its own limit. */
const CROWD = sized(40, 200);

/** Opens a stream and reads it to its end. `from`: another loopback address, which stands in for another machine. */
async function open(
  url: string,
  options: { lastEventId?: string; from?: string; method?: string } = {},
): Promise<Stream> {
  const { lastEventId, from = '127.0.0.1', method = 'GET' } = options;
  const dispatcher = new Agent({ localAddress: from, pipelining: 0, bodyTimeout: 0 });
  const ending = new AbortController();
  const response = await undiciFetch(url.replace('//localhost:', '//127.0.0.1:'), {
    method,
    dispatcher,
    signal: ending.signal,
    headers: { accept: 'text/event-stream', ...(lastEventId !== undefined && { 'last-event-id': lastEventId }) },
  });
  const stream: Stream = {
    status: response.status,
    headers: response.headers as unknown as Headers,
    events: [],
    comments: [],
    retry: undefined,
    text: '',
    ended: false,
    until: (is) => vi.waitUntil(() => is(stream), { timeout: 30_000, interval: 20 }).then(() => {}),
    close: async () => {
      ending.abort();
      await dispatcher.destroy();
    },
  };
  const parser = createParser({
    onEvent: (event) => stream.events.push(event),
    onComment: (comment) => stream.comments.push(comment.trim()),
    onRetry: (retry) => {
      stream.retry = retry;
    },
    onError: (error) => {
      throw error;
    },
  });
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream');
  const read = async () => {
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      const text = decoder.decode(chunk as Uint8Array, { stream: true });
      stream.text += text;
      if (isStream) parser.feed(text);
    }
  };
  const done = read()
    .catch((error: Error) => {
      if (!ending.signal.aborted && !/terminated|closed|destroyed/.test(error.message)) throw error;
    })
    .finally(() => {
      stream.ended = true;
    });
  if (!isStream) await done;
  return stream;
}

const bodyOf = ({ text, status, headers }: Stream): Answer => ({ status, headers, text, body: JSON.parse(text) });

const registrar = (world: () => World) => async (ownerId: string) => {
  const answer = await send(
    `${world().running.baseUrl}/v1/register`,
    jsonPost({ owner_id: ownerId, agent_name: `streamed ${Math.random()}`, requested_scopes: [] }),
  );
  expect(answer.status, answer.text).toBe(202);
  return { token: answer.body.registration_token as string, agentId: answer.body.client_id as string };
};

describe.each(ONE_STORE)(`the registration stream on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.organisation());
  beforeEach(() => world.db.deleteFrom('registrations').execute());
  const register = (ownerId = organisation.owner.id) => registrar(() => world)(ownerId);
  const opened: Stream[] = [];
  const listen = async (token: string, options?: Parameters<typeof open>[1]) => {
    const stream = await open(`${world.running.baseUrl}/v1/register/stream/${token}`, options);
    opened.push(stream);
    return stream;
  };
  afterEach(() => Promise.all(opened.splice(0).map((stream) => stream.close())));
  const decide = (verb: string, token: string) => organisation.ask('POST', `/v1/register/${verb}/${token}`);
  const idOf = async () => (await organisation.ask('GET', '/owner/registrations')).body.registrations[0].id as string;

  test.each(['approve', 'reject'])(
    'pending immediately; then the decision, which ends the stream: %s',
    async (verb) => {
      const { token, agentId } = await register();
      const stream = await expectStatus(200, listen(token));
      expect(stream.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
      expect([stream.headers.get('cache-control'), stream.headers.get('referrer-policy')]).toEqual([
        'no-store',
        'no-referrer',
      ]);
      await stream.until(({ events }) => events.length === 1);
      expect(stream.retry).toBeGreaterThan(0);
      expect(stream.events[0]).toMatchObject({ id: '1', event: 'pending' });
      expect(JSON.parse(stream.events[0]!.data)).toEqual({
        status: 'pending',
        expires_at: expect.stringMatching(/^\d{4}-.*Z$/),
      });
      expect((await decide(verb, token)).status).toBe(200);
      await stream.until(({ ended }) => ended);
      const status = verb === 'approve' ? 'approved' : 'rejected';
      expect(stream.events).toHaveLength(2);
      expect(stream.events[1]).toMatchObject({ id: '2', event: status });
      // As in the status: omitted until there is one.
      expect(JSON.parse(stream.events[1]!.data)).toEqual({
        status,
        ...(verb === 'approve' && { agent_id: agentId, expires_at: expect.stringMatching(/^\d{4}-.*Z$/) }),
      });
      // RG-12: nothing of the key or the token.
      expect(stream.text).not.toMatch(/BEGIN|private|reg_/);
    },
  );

  test('approved: the deadline for collecting the key, while it has not been collected', async () => {
    const { token } = await register();
    world.clock.skewMs = 3 * HOUR_MS;
    const decided = world.running.broker.clock();
    expect((await decide('approve', token)).status).toBe(200);
    const told = async () => {
      const stream = await listen(token);
      await stream.until(({ ended }) => ended);
      return JSON.parse(stream.events.at(-1)!.data);
    };
    const { status, expires_at } = await told();
    expect(status).toBe('approved');
    expect(Date.parse(expires_at) - decided - HOUR_MS).toBeGreaterThanOrEqual(0);
    expect(Date.parse(expires_at) - decided - HOUR_MS).toBeLessThan(60_000);
    expect((await send(`${world.running.baseUrl}/v1/register/claim-key/${token}`, {})).status).toBe(200);
    expect(await told()).toEqual({ status: 'approved', agent_id: expect.any(String) });
  });

  test('expired at its deadline without any announcement; for an unknown owner’s registration just the same', async () => {
    const [mine, nobodys] = [await register(), await register(NOBODY)];
    // Both streams have to be open before the expiry.
    world.clock.skewMs = 24 * HOUR_MS - 5_000;
    const streams = [await listen(mine.token), await listen(nobodys.token)];
    for (const stream of streams) {
      await stream.until(({ ended }) => ended);
      expect(stream.events.map(({ id, event }) => [id, event])).toEqual([
        ['1', 'pending'],
        ['2', 'expired'],
      ]);
    }
  });

  test('Last-Event-ID: received events are not sent again; after the last one the stream is empty', async () => {
    const { token } = await register();
    const resumed = await listen(token, { lastEventId: '1' });
    const other = await listen(token, { lastEventId: 'of another stream' });
    await other.until(({ events }) => events.length === 1);
    expect(other.events[0]).toMatchObject({ id: '1', event: 'pending' });
    expect(resumed.events).toEqual([]);
    await decide('approve', token);
    await resumed.until(({ ended }) => ended);
    expect(resumed.events.map(({ id, event }) => [id, event])).toEqual([['2', 'approved']]);
    // Cut off before the end: the rest is sent.
    const late = await listen(token, { lastEventId: '1' });
    await late.until(({ ended }) => ended);
    expect(late.events.map(({ event }) => event)).toEqual(['approved']);
    const over = await listen(token, { lastEventId: '2' });
    expect([over.status, over.text]).toEqual([204, '']);
    const again = await listen(token);
    await again.until(({ ended }) => ended);
    expect(again.events.map(({ event }) => event)).toEqual(['approved']);
  });

  test(`RG-12 of ${CROWD} listeners with one token five are accepted; the others get 429, and disconnecting frees a slot`, async () => {
    const { token } = await register();
    const addresses = Array.from({ length: CROWD }, (_, i) => `127.0.0.${10 + (i % 40)}`);
    const streams = await Promise.all(addresses.map((from) => listen(token, { from })));
    const listening = streams.filter(({ status }) => status === 200);
    expect(listening).toHaveLength(5);
    for (const stream of streams.filter(({ status }) => status !== 200)) {
      expectEnvelope(bodyOf(stream), 429, 'too_many_streams');
      expect(Number(stream.headers.get('retry-after'))).toBeGreaterThan(0);
    }
    const another = await register();
    expect((await listen(another.token)).status).toBe(200);
    await listening[0]!.close();
    let again = await listen(token);
    await vi.waitUntil(
      async () => {
        if (again.status !== 200) again = await listen(token);
        return again.status === 200;
      },
      { timeout: 10_000, interval: 100 },
    );
    await Promise.all(opened.map((stream) => stream.close()));
    const id = (await organisation.ask('GET', '/owner/registrations?limit=200')).body.registrations.map(
      (one: { id: string }) => one.id,
    );
    await vi.waitUntil(() => world.running.services.changes.waiting(id.at(-1)) === 0, { timeout: 10_000 });
  });

  test('RG-12 an address has 20 streams, whatever the tokens; another address has its own limit', async () => {
    const from = '127.0.0.8';
    const tokens: string[] = [];
    for (let i = 0; i < 5; i++) tokens.push((await register()).token);
    const streams = await Promise.all(Array.from({ length: 20 }, (_, i) => listen(tokens[i % 4]!, { from })));
    expect(streams.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200));
    expectEnvelope(bodyOf(await listen(tokens[4]!, { from })), 429, 'too_many_streams');
    await expectStatus(200, listen(tokens[4]!, { from: '127.0.0.9' }));
  });

  test('HEAD is answered, and holds no slot', async () => {
    const { token } = await register();
    const head = await listen(token, { method: 'HEAD' });
    expect([head.status, head.text]).toEqual([200, '']);
    expect(world.running.services.changes.waiting(await idOf())).toBe(0);
  });

  test('the owners’ inbox counts pending registrations', async () => {
    const session = mintOwnerSession(world.running.broker, organisation.owner).token;
    const inbox = await readEvents(`${world.running.baseUrl}/owner/events`, { authorization: `Bearer ${session}` });
    const count = () => inbox.events.at(-1)?.data.waiting.registrations;
    await inbox.until(() => count() === 0);
    const { token } = await register();
    await register(NOBODY);
    await inbox.until(() => count() === 1);
    await decide('reject', token);
    await inbox.until(() => count() === 0);
    await register();
    await inbox.until(() => count() === 1);
    world.clock.skewMs = 24 * HOUR_MS + 1_000;
    const { broker, services } = world.running;
    await expireRegistrations(broker, services.changes, broker.clock());
    await inbox.until(() => count() === 0);
    inbox.close();
    const after = mintOwnerSession(world.running.broker, organisation.owner).token;
    const later = await readEvents(`${world.running.baseUrl}/owner/events`, { authorization: `Bearer ${after}` });
    await later.until(({ events }) => events.at(-1)?.data.waiting.registrations === 0);
    later.close();
  });

  test('a heartbeat is sent every 15 seconds; a stop of the broker ends the stream immediately', async () => {
    const { token } = await register();
    const stream = await listen(token);
    await stream.until(({ comments }) => comments.includes('heartbeat'));
    expect(stream.events.map(({ event }) => event)).toEqual(['pending']);
    const began = performance.now();
    await world.restart();
    await stream.until(({ ended }) => ended);
    expect(performance.now() - began).toBeLessThan(9_000);
    const again = await listen(token, { lastEventId: '1' });
    await decide('approve', token);
    await again.until(({ ended }) => ended);
    expect(again.events.map(({ event }) => event)).toEqual(['approved']);
  }, 180_000);
});

describe.runIf(STORES.includes('postgres'))(`registration and replicas on postgres${postgresNote}`, () => {
  test('an owner’s decision at one replica is sent by the other, and the key is collected there', async () => {
    const world = await startWorld('postgres');
    const organisation = await world.organisation();
    const there = (await startReplica(world)).baseUrl;
    const { token } = await registrar(() => world)(organisation.owner.id);
    const stream = await open(`${there}/v1/register/stream/${token}`);
    await stream.until(({ events }) => events.length === 1);
    expect((await organisation.ask('POST', `/v1/register/approve/${token}`)).status).toBe(200);
    await stream.until(({ ended }) => ended);
    expect(stream.events.map(({ event }) => event)).toEqual(['pending', 'approved']);
    const claims = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        send(`${i % 2 ? there : world.running.baseUrl}/v1/register/claim-key/${token}`, {}),
      ),
    );
    expect(claims.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 19 }, () => 410)]);
  });
});
