/** Tokens whose server did not answer when they were to be revoked: the request is stored, and repeated until the server accepts it. */
import type { ServerResponse } from 'node:http';
import { beforeEach, describe, expect, test } from 'vitest';
import { expectStatus, jsonPost, send } from '../world/agent.ts';
import { everythingStored, placesOf } from '../world/store-contents.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { shared } from '../world/world.ts';
import { CLIENT_SECRET, HOLDERS, type Place, place } from './holders.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const JSON_TYPE = { 'content-type': 'application/json' };
const [CONNECTION, PERSON] = HOLDERS as [(typeof HOLDERS)[0], (typeof HOLDERS)[0]];

const hangUp = (response: ServerResponse) => response.socket?.destroy();
const fail =
  (status: number, body: string, type = JSON_TYPE) =>
  (response: ServerResponse) =>
    response.writeHead(status, type).end(body);

describe.each(STORES)(`repeated revocations on %s${postgresNote}`, (store) => {
  const common = shared(() => place(store));
  let here: Place;
  let revoked: string[];
  let attempts: number;
  let answer: ((response: ServerResponse) => unknown) | undefined;
  beforeEach(async () => {
    await common.world.db.deleteFrom('token_revocations').execute();
    await use(common);
  });
  const use = async (one: Place) => {
    here = one;
    here.server.beHonest();
    here.server.answers.set('/revoke', (_request, response, body) => {
      attempts++;
      if (answer) return answer(response);
      revoked.push(new URLSearchParams(body).get('token')!);
      return response.writeHead(200).end();
    });
    answer = undefined;
    await CONNECTION.give(here);
    [revoked, attempts] = [[], 0];
  };

  const disconnect = async () =>
    (await expectStatus(200, here.organisation.ask('POST', `/owner/connections/${here.connection}/oauth/disconnect`)))
      .body;
  const later = async (ms: number) => {
    here.world.clock.skewMs += ms;
    await here.world.running.services.oauth.retryRevocations(here.world.running.broker.clock());
  };
  const newest = (at = -1) => [here.server.given.refresh.at(at), here.server.given.access.at(at)];
  const waiting = () =>
    here.world.db.selectFrom('token_revocations').select(['connection_id', 'person_id', 'next_at']).execute();

  test.each([
    ['hangs up', hangUp],
    ['answers 503', fail(503, 'busy', { 'content-type': 'text/html' })],
    ['answers temporarily_unavailable', fail(503, '{"error":"temporarily_unavailable"}')],
  ])('a server that %s is asked again, with growing pauses, until it accepts', async (_what, failing) => {
    answer = failing;
    const { revoked: isRevoked, detail } = await disconnect();
    expect([isRevoked, detail]).toEqual([
      false,
      expect.stringMatching(/could not be revoked: .* tries again until 20/),
    ]);
    expect(attempts).toBe(1);
    await later(MINUTE_MS - 1_000);
    expect(attempts).toBe(1);
    await later(1_000);
    expect(attempts).toBe(2);
    // The pause is as long as the request has waited.
    await later(MINUTE_MS - 1_000);
    expect(attempts).toBe(2);
    await later(MINUTE_MS);
    expect(attempts).toBe(3);
    await later(MINUTE_MS);
    expect(attempts).toBe(3);
    answer = undefined;
    await later(2 * MINUTE_MS);
    expect(revoked).toEqual(newest());
    expect(await waiting()).toEqual([]);
    await later(HOUR_MS);
    expect(attempts).toBe(5);
  });

  test('what is stored is sealed, and re-encrypted with a new master key', async () => {
    answer = hangUp;
    await disconnect();
    const stored = await everythingStored(here.world.environment);
    for (const secret of [...newest(), CLIENT_SECRET]) expect(placesOf(secret!, stored)).toEqual([]);
    if (store === 'sqlite') await rotateMasterKey();
    answer = undefined;
    await later(MINUTE_MS);
    expect(revoked).toEqual(newest());
  });
  const rotateMasterKey = async () => {
    const { services, baseUrl } = here.world.running;
    const authorization = `Bearer ${services.local.token.reveal()}`;
    await expectStatus(200, send(`${baseUrl}/owner/keys/rotate`, jsonPost({ use: 'master' }, { authorization })));
  };

  test('it is repeated after the connection and the client’s secret were removed', async () => {
    await use(await place(store));
    answer = hangUp;
    await expectStatus(200, here.organisation.ask('DELETE', `/owner/connections/${here.connection}`));
    await here.world.db.deleteFrom('platform_secrets').execute();
    answer = undefined;
    await later(MINUTE_MS);
    expect(revoked).toEqual(newest());
  });

  test('it is repeated for three days, at most each hour', async () => {
    answer = hangUp;
    await disconnect();
    for (let hour = 0; hour < 71; hour++) await later(HOUR_MS);
    expect([attempts, (await waiting()).length]).toEqual([72, 1]);
    await later(HOUR_MS);
    expect([attempts, await waiting()]).toEqual([73, []]);
    answer = undefined;
    await later(HOUR_MS);
    expect(revoked).toEqual([]);
  });

  test.each([
    ['does not know the client', 401, 'invalid_client'],
    ['revokes no such tokens', 400, 'unsupported_token_type'],
  ])('a server that %s is not asked again', async (_what, status, error) => {
    answer = fail(status, JSON.stringify({ error }));
    const { detail } = await disconnect();
    expect(detail).toMatch(/could not be revoked: .* Revoke the access at the platform, too\.$/);
    expect(await waiting()).toEqual([]);
  });

  test('a process that is killed while the server does not answer: the next one repeats the request', async () => {
    const asked = Promise.withResolvers<ServerResponse>();
    answer = (response) => asked.resolve(response);
    const ended = disconnect();
    const response = await asked.promise;
    // As after a kill, only what is stored is left; nobody else asks while the request may still be under way.
    answer = undefined;
    await later(4 * MINUTE_MS);
    expect(revoked).toEqual([]);
    await later(MINUTE_MS);
    expect(revoked).toEqual(newest());
    response.writeHead(200).end();
    await ended;
  });

  test('of two replicas only one repeats a request', async () => {
    answer = hangUp;
    await disconnect();
    answer = undefined;
    here.world.clock.skewMs += MINUTE_MS;
    const { broker, services } = here.world.running;
    await Promise.all([1, 2, 3].map(() => services.oauth.retryRevocations(broker.clock())));
    expect(revoked).toEqual(newest());
  });

  test('tokens of an account that was connected again meanwhile are not revoked, those of another account are', async () => {
    let login = 'ann';
    const named = (path: string) => ({
      text: JSON.stringify({
        platforms: {
          docs: {
            kind: 'rest',
            base_url: `${here.server.issuer}/api`,
            auth: here.server.auth({ account: { url: `${here.server.issuer}${path}`, pointer: '/login' } }),
            scopes: { 'docs:read': ['GET /items'] },
          },
        },
        connections: { main: { platform: 'docs' } },
      }),
      values: {},
    });
    await expectStatus(200, here.organisation.ask('POST', '/owner/governance/apply', named('/who')));
    here.server.answers.set('/who', (_request, response) =>
      response.writeHead(200, JSON_TYPE).end(JSON.stringify({ login })),
    );
    await CONNECTION.give(here);
    answer = hangUp;
    await disconnect();
    await CONNECTION.give(here);
    answer = undefined;
    await later(MINUTE_MS);
    expect([revoked, await waiting()]).toEqual([[], []]);
    answer = hangUp;
    await disconnect();
    login = 'bob';
    await CONNECTION.give(here);
    answer = undefined;
    await later(MINUTE_MS);
    expect(revoked).toEqual(newest(-2));
  });

  test('nothing is sent from a restored store before its review', async () => {
    await use(await place(store));
    answer = hangUp;
    await disconnect();
    answer = undefined;
    const set = (restored: string | null) => here.world.db.updateTable('organisations').set({ restored }).execute();
    await set(JSON.stringify({ at: 1, madeAt: null, ended: {}, noted: true }));
    await later(MINUTE_MS);
    expect(revoked).toEqual([]);
    await set(null);
    await later(0);
    expect(revoked).toEqual(newest());
  });

  test('a request that was altered in the store is deleted, and does not stop the others', async () => {
    answer = hangUp;
    await disconnect();
    await here.world.db
      .updateTable('token_revocations')
      .set({ request: Buffer.alloc(64) })
      .execute();
    await CONNECTION.give(here);
    await disconnect();
    answer = undefined;
    await later(MINUTE_MS);
    expect([revoked, await waiting()]).toEqual([newest(), []]);
  });
});

describe.each(STORES)(`repeated revocations of people's tokens on %s${postgresNote}`, (store) => {
  const here = shared(() => place(store, {}, PERSON.perPerson));

  test('they are repeated, unless the same person has given the same account again', async () => {
    const { server, world, organisation } = here;
    const revoked: string[] = [];
    let isDown = true;
    server.answers.set('/revoke', (_request, response, body) => {
      if (isDown) return hangUp(response);
      revoked.push(new URLSearchParams(body).get('token')!);
      return response.writeHead(200).end();
    });
    const end = () => expectStatus(200, organisation.ask('POST', '/owner/people/end', { all: true }));
    const later = async () => {
      world.clock.skewMs += MINUTE_MS;
      isDown = false;
      await world.running.services.oauth.retryRevocations(world.running.broker.clock());
      isDown = true;
    };
    await PERSON.give(here);
    const first = [server.given.refresh.at(-1), server.given.access.at(-1)];
    expect((await end()).body).toEqual({ ended: 1, revoked: 0 });
    await later();
    expect(revoked).toEqual(first);
    await PERSON.give(here);
    await end();
    await PERSON.give(here);
    await later();
    expect(revoked).toEqual(first);
    expect(await world.db.selectFrom('token_revocations').select('id').execute()).toEqual([]);
  });

  test('a process that is killed before it has sent most of them: the next one sends them all', async () => {
    const { server, world, organisation, connection } = here;
    const revoked = new Set<string>();
    const asked = Promise.withResolvers<ServerResponse>();
    const held: ServerResponse[] = [];
    server.answers.set('/revoke', (_request, response) => {
      held.push(response);
      asked.resolve(response);
    });
    await world.db.deleteFrom('person_tokens').execute();
    await CONNECTION.give(here);
    const people = Array.from({ length: 11 }, (_, at) => `U-${at}`);
    for (const person of people) await PERSON.give(here, person);
    const removed = organisation.ask('DELETE', `/owner/connections/${connection}`);
    await asked.promise;
    // As after a kill, only what is stored is left.
    const stored = await world.db.selectFrom('token_revocations').select('person_id').execute();
    expect([stored.length, stored.filter(({ person_id }) => person_id === null).length]).toEqual([12, 1]);
    server.answers.set('/revoke', (_request, response, body) => {
      revoked.add(new URLSearchParams(body).get('token')!);
      response.writeHead(200).end();
    });
    world.clock.skewMs += 5 * MINUTE_MS;
    await world.running.services.oauth.retryRevocations(world.running.broker.clock());
    expect(revoked).toEqual(new Set([...server.given.refresh.slice(-12), ...server.given.access.slice(-12)]));
    for (const response of held) response.writeHead(200).end();
    await expectStatus(200, removed);
  });
});
