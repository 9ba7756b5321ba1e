/** Concurrency and interruptions: tokens of people are refreshed once, and calls end when the consent they depend on does. */
import { beforeEach, describe, expect, test } from 'vitest';
import type { Answer, TestAgent } from '../world/agent.ts';
import { consentAsserted, outlivePerson } from '../world/people.ts';
import { givenPeople, type PeopleWorld, slack } from '../world/people-world.ts';
import { givenReplica } from '../world/replica.ts';
import { sized } from '../world/runner/thorough.ts';
import { ONE_STORE, postgresNote, STORES } from '../world/stores.ts';

const ANN = slack('U-ANN');
const PEOPLE = sized(16, 50);
const CALLS = sized(20, 50);
const refreshes = ({ server }: PeopleWorld) =>
  server.asked.filter((form) => form.get('grant_type') === 'refresh_token').length;
const namesOf = (answers: Answer[]) => answers.map(({ body, text }) => body.data?.who ?? text);

/** Lets PEOPLE people consent concurrently, each in a browser of their own; then makes calls for all of them. */
async function manyPeople(people: PeopleWorld, agents: TestAgent[]): Promise<void> {
  const { server, world, organisation, act } = people;
  const ids = Array.from({ length: PEOPLE }, (_, at) => `u-${at}`);
  // Consent links lead to the broker that made them; the platform has only the first one's redirect URI.
  const here = agents.filter(({ baseUrl }) => baseUrl === world.running.baseUrl);
  const consents = await Promise.all(ids.map((id, at) => act(slack(id), {}, here[at % here.length])));
  await Promise.all(consents.map(({ body }, at) => consentAsserted(server, body.consent_url, ids[at]!)));
  for (const { id } of (await organisation.ask('GET', '/owner/people')).body.tokens)
    await organisation.ask('POST', `/owner/people/tokens/${id}/confirm`, {});
  const callAll = () => Promise.all(ids.map((id, at) => act(slack(id), {}, agents[(at + 1) % agents.length])));
  expect(namesOf(await callAll())).toEqual(ids);
  expect(refreshes(people)).toBe(0);
  for (const id of ids) await outlivePerson(world, organisation, `"${id}@docs.example"`);
  expect(namesOf(await callAll())).toEqual(ids);
  expect(refreshes(people)).toBe(PEOPLE);
}

describe.each(ONE_STORE)(`concurrent people on %s${postgresNote}`, (store) => {
  const people = givenPeople(store);
  const { server, world, organisation, agent, act, connected } = people;

  test(`${CALLS} concurrent calls of one person with an expired token cause one refresh`, async () => {
    await connected(ANN, 'ann');
    await outlivePerson(world, organisation, 'ann@docs.example');
    const answers = await Promise.all(Array.from({ length: CALLS }, () => act(ANN)));
    expect(namesOf(answers)).toEqual(Array(CALLS).fill('ann'));
    expect(refreshes(people)).toBe(1);
  });

  describe('a consent that ends during a call', () => {
    beforeEach(() => connected(ANN, 'ann'));
    const end = async () =>
      expect((await organisation.ask('POST', '/owner/people/end', { caller: ANN })).body.ended).toBe(1);
    const isGood = async (token: string) =>
      (await fetch(`${server.issuer}/api/items`, { headers: { authorization: `Bearer ${token}` } })).status === 200;

    test('the call that is at the platform ends without data, and no other is made', async () => {
      let release = () => {};
      const held = new Promise<void>((resolve) => {
        release = resolve;
      });
      const arrived = new Promise<void>((resolve) => {
        server.before = async (path) => {
          if (path !== '/api/items') return;
          resolve();
          await held;
        };
      });
      const calling = act(ANN);
      await arrived;
      server.before = undefined;
      await end();
      release();
      // The token was revoked before the platform checked it.
      const answer = await calling;
      expect(answer.body.data?.who).toBeUndefined();
      expect((await act(ANN)).body.reason).toBe('not_consented');
      expect(server.served).toEqual([]);
    });

    test('a late answer of the platform is not returned', async () => {
      const gate = Promise.withResolvers<void>();
      const arrived = Promise.withResolvers<void>();
      server.instead = (path) => (path === '/api/items' ? { status: 200, body: '{"who":"ann"}' } : undefined);
      server.before = async (path) => {
        if (path !== '/api/items') return;
        arrived.resolve();
        await gate.promise;
      };
      const calling = act(ANN);
      await arrived.promise;
      const { budget } = world.running.services;
      await expect.poll(() => budget.underWay(Number.POSITIVE_INFINITY).length).toBe(1);
      await end();
      await expect.poll(() => budget.underWay(Number.POSITIVE_INFINITY).length, { timeout: 3_500 }).toBe(0);
      gate.resolve();
      const answer = await calling;
      expect([answer.status, answer.body.reason, answer.body.detail], answer.text).toEqual([
        403,
        'no_permission_record',
        expect.stringContaining('the person whom the call is for has disconnected'),
      ]);
      expect(answer.text).not.toContain('"who"');
    });

    test('a call that waits for a refreshed token is not sent, and the new token is revoked', async () => {
      await outlivePerson(world, organisation, 'ann@docs.example');
      let release = () => {};
      const held = new Promise<void>((resolve) => {
        release = resolve;
      });
      const asked = new Promise<void>((resolve) => {
        server.issued = async () => {
          resolve();
          await held;
        };
      });
      const before = server.given.access.length;
      const calling = act(ANN);
      await asked;
      server.issued = undefined;
      // The token has been issued, but the broker has not received it yet.
      expect(server.given.access).toHaveLength(before + 1);
      await end();
      release();
      const answer = await calling;
      expect([answer.status, answer.body.data], answer.text).toEqual([409, undefined]);
      expect(server.bearers).toEqual([]);
      expect(await isGood(server.given.access.at(-1)!)).toBe(false);
    });

    test('when another consent is confirmed, calls continue with the new account', async () => {
      const { consent_url } = (await startAgain()).body;
      await consentAsserted(server, consent_url, 'ann-too');
      const before = server.given.access.length;
      expect((await act(ANN)).body.data.who).toBe('ann');
      const waiting = (await organisation.ask('GET', '/owner/people')).body.tokens.find(
        ({ state }: { state: string }) => state === 'unconfirmed',
      );
      const calls = Promise.all(Array.from({ length: 20 }, () => act(ANN)));
      await organisation.ask('POST', `/owner/people/tokens/${waiting.id}/confirm`, { caller: ANN });
      // At worst, the platform refuses a call in flight when the previous account is revoked.
      for (const { body } of await calls) expect(['ann', 'ann-too', undefined]).toContain(body.data?.who);
      expect((await act(ANN)).body.data.who).toBe('ann-too');
      expect(server.given.access).toHaveLength(before);
      // The previous account's token is revoked.
      expect(await isGood(server.given.access.at(-2)!)).toBe(false);
    });
  });

  const startAgain = () => agent.post('/v1/consent/caller/start', { platform: 'docs', caller: ANN });
});

const GRANTS = { docs: { scopeList: ['docs:read'] } };

describe('concurrent people on one broker', () => {
  const people = givenPeople('sqlite');
  const { organisation, agent } = people;

  test(`${PEOPLE} people consent and call concurrently, and each gets their own data`, async () => {
    const more = await Promise.all(
      [1, 2].map(() => organisation.agent({ rules: [{ effect: 'allow' }], grants: GRANTS })),
    );
    await manyPeople(people, [agent, ...more]);
  }, 270_000);
});

describe.runIf(STORES.includes('postgres'))(`concurrent people on replicas on postgres${postgresNote}`, () => {
  const people = givenPeople('postgres');
  const { world, organisation, agent, act, connected } = people;
  const replica = givenReplica(world);

  test(`CA-10 ${CALLS} concurrent calls of one person with an expired token cause one refresh, each time`, async () => {
    await connected(ANN, 'ann');
    const there = replica.asks(agent);
    for (let round = 1; round <= 3; round++) {
      await outlivePerson(world, organisation, 'ann@docs.example');
      const answers = await Promise.all(Array.from({ length: CALLS }, (_, i) => act(ANN, {}, i % 2 ? agent : there)));
      expect(namesOf(answers)).toEqual(Array(CALLS).fill('ann'));
      expect(refreshes(people)).toBe(round);
    }
  });

  test(`${PEOPLE} people consent and call concurrently, and each gets their own data`, async () => {
    const more = await Promise.all(
      [1, 2].map(() => organisation.agent({ rules: [{ effect: 'allow' }], grants: GRANTS })),
    );
    await manyPeople(
      people,
      [agent, ...more].flatMap((one) => [one, replica.asks(one)]),
    );
  }, 270_000);
});
