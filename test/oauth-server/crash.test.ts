/** A consent is atomic: no authorisation is listed that no client can use, whatever fails or is killed. */
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { startHousekeeping } from '../../broker/process/housekeeping.ts';
import { expectStatus } from '../world/agent.ts';
import { spawnBroker } from '../world/broker-process.ts';
import type { Browser } from '../world/browser/browser.ts';
import { refuseOAuthRecords } from '../world/faults.ts';
import { askConsent, browserOf, openConsent } from '../world/mcp/person.ts';
import { callMcp, OAuthClient } from '../world/oauth-client.ts';
import { makeRandom } from '../world/random.ts';
import { sized } from '../world/runner/thorough.ts';
import { query } from '../world/store-contents.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { DEMO_RULES, type Organisation, startWorld, type World } from '../world/world.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** In all rounds except the last one the decision is interrupted at a random moment. */
const ROUNDS = sized(2, 6);

const allow = () => ({ allow: true, name: `client-${crypto.randomUUID().slice(0, 8)}`, grants: [] });

/** The URL with which the library continues after the decision, when the response to it was lost. */
const onward = (page: string) => page.replace('/oauth/consent/', '/oauth/authorize/');

describe.each(ONE_STORE)(`a consent that fails half-way on %s${postgresNote}`, (store) => {
  let world: World;
  let organisation: Organisation;
  beforeAll(async () => {
    world = await startWorld(store);
    organisation = await world.organisation();
    await organisation.policy(DEMO_RULES, 'default');
  });
  const asking = async (): Promise<{ client: OAuthClient; browser: Browser; page: string }> => {
    const client = new OAuthClient(world);
    await client.register();
    const browser = browserOf(world, organisation.owner);
    return { client, browser, page: await openConsent(browser, client.address()) };
  };
  const listed = async () => (await organisation.ask('GET', '/owner/mcp-authorisations')).body.authorisations.length;
  const agents = async () => (await organisation.ask('GET', '/owner/agents')).body.agents.length;
  const events = async () =>
    (await organisation.ask('GET', '/owner/audit?limit=100')).body.rows.filter(
      ({ reason }: { reason: string }) => reason === 'mcp_client_allowed',
    ).length;

  test.each(['Grant', 'Interaction'])(
    'when its %s cannot be stored, nothing is stored, and the same decision works later',
    async (kind) => {
      const { client, browser, page } = await asking();
      const before = [await listed(), await agents(), await events()];
      const repair = await refuseOAuthRecords(world, kind);
      for (let turn = 0; turn < 2; turn++)
        expect((await askConsent(browser, page, 'decision', allow())).status).toBeGreaterThanOrEqual(500);
      expect([await listed(), await agents(), await events()]).toEqual(before);
      await repair();
      const { body } = await expectStatus(200, askConsent(browser, page, 'decision', allow()));
      expect([await listed(), await agents(), await events()]).toEqual(before.map((count) => count + 1));
      const back = new URL((await browser.get(body.location)).url);
      const tokens = (await client.redeem(back.searchParams.get('code')!)).body;
      expect((await callMcp(world.running.baseUrl, tokens.access_token)).status).toBe(200);
    },
  );

  test('of concurrent yes and no decisions one counts, and the client gets that one', async () => {
    for (let turn = 0; turn < sized(2, 6); turn++) {
      const { browser, page } = await asking();
      const before = await listed();
      const both = [allow(), { allow: false }];
      const decisions = turn % 2 ? both : both.toReversed();
      const answers = await Promise.all(decisions.map((one) => askConsent(browser, page, 'decision', one)));
      expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409]);
      const { allow: yes } = decisions[answers.findIndex(({ status }) => status === 200)]!;
      const back = new URL((await browser.get(onward(page))).url).searchParams;
      expect([back.has('code'), back.get('error')]).toEqual(yes ? [true, null] : [false, 'access_denied']);
      expect(await listed()).toBe(before + (yes ? 1 : 0));
      for (const late of [allow(), { allow: false }])
        expect((await askConsent(browser, page, 'decision', late)).status).toBeGreaterThanOrEqual(400);
    }
  });
});

describe.each(ONE_STORE)(`kill -9 during a consent on %s${postgresNote}`, (store) => {
  test('at any moment, the client can continue with a listed authorisation, or the owner can decide again', async () => {
    const world = await startWorld(store);
    const organisation = await world.organisation();
    await organisation.policy(DEMO_RULES, 'default');
    const { baseUrl } = world.running;
    const { port } = new URL(baseUrl);
    const rounds: { client: OAuthClient; browser: Browser; page: string }[] = [];
    for (let n = 0; n < ROUNDS; n++) {
      const client = new OAuthClient(world);
      await client.register();
      const browser = browserOf(world, organisation.owner);
      rounds.push({ client, browser, page: await openConsent(browser, client.address()) });
    }
    await world.running.stop();
    const environment = { ...world.environment, PORT: port, BASE_URL: baseUrl };
    const random = makeRandom(store.length);
    let process = spawnBroker(environment);
    const serving = async () => expect(await process.serve(), process.output().stderr).toBeDefined();
    await serving();
    try {
      for (const [n, { client, browser, page }] of rounds.entries()) {
        // The first request loads the library.
        expect((await askConsent(browser, page, 'request')).status).toBe(200);
        const decision = askConsent(browser, page, 'decision', allow()).catch(() => undefined);
        // The last round is not interrupted.
        await (n === rounds.length - 1 ? decision : pause(random() * 40));
        process.signal('SIGKILL');
        await process.ended;
        const answered = await decision;
        process = spawnBroker(environment);
        await serving();

        const made = `select id from mcp_authorisations where client_id = '${client.id}'`;
        const authorisations = await query(world.environment, made);
        if (answered?.status === 200) expect(authorisations).toHaveLength(1);
        if (authorisations.length === 0)
          expect((await askConsent(browser, page, 'decision', allow())).status).toBe(200);
        const back = new URL((await browser.get(onward(page))).url);
        const redeemed = await expectStatus(200, client.redeem(back.searchParams.get('code')!));
        expect((await callMcp(baseUrl, redeemed.body.access_token)).status).toBe(200);
      }
    } finally {
      process.signal('SIGKILL');
      await process.ended;
    }
  }, 360_000);
});

describe.each(ONE_STORE)(`authorisations that can no longer be used on %s${postgresNote}`, (store) => {
  let world: World;
  let organisation: Organisation;
  beforeAll(async () => {
    world = await startWorld(store);
    organisation = await world.organisation();
    await organisation.policy(DEMO_RULES, 'default');
  });
  beforeEach(() => {
    world.clock.skewMs = 0;
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });
  const browser = () => browserOf(world, organisation.owner);
  /** Runs all background jobs once, at this much later than now. */
  const later = async (ms: number) => {
    world.clock.skewMs = ms;
    const keeping = startHousekeeping(world.running.broker);
    vi.advanceTimersByTime(MINUTE_MS);
    await keeping.stop();
  };
  const statusOf = async ({ id }: OAuthClient) =>
    (await organisation.ask('GET', '/owner/mcp-authorisations')).body.authorisations.find(
      ({ client }: { client: { id: string } }) => client.id === id,
    )?.status;

  test('an authorisation whose code was not fetched or redeemed expires within two hours', async () => {
    const unfetched = new OAuthClient(world);
    await unfetched.register();
    const person = browser();
    await askConsent(person, await openConsent(person, unfetched.address()), 'decision', allow());
    const unredeemed = new OAuthClient(world);
    await unredeemed.code(browser());
    for (const client of [unfetched, unredeemed]) expect(await statusOf(client)).toBe('live');
    await later(55 * MINUTE_MS);
    for (const client of [unfetched, unredeemed]) expect(await statusOf(client)).toBe('live');
    await later(62 * MINUTE_MS);
    for (const client of [unfetched, unredeemed]) expect(await statusOf(client)).toBe('expired');
  });

  test('an authorisation of a client without refresh tokens expires with its only access token', async () => {
    const client = new OAuthClient(world);
    await client.register({ grant_types: ['authorization_code'] });
    const tokens = await client.tokens(browser());
    expect(tokens.refresh_token).toBeUndefined();
    await later(10 * MINUTE_MS);
    expect((await callMcp(world.running.baseUrl, tokens.access_token)).status).toBe(200);
    await later(62 * MINUTE_MS);
    expect(await statusOf(client)).toBe('expired');
  });

  test('an authorisation stays valid while it is refreshed within 30 days, and expires otherwise', async () => {
    const used = new OAuthClient(world);
    let { refresh_token } = await used.tokens(browser());
    const left = new OAuthClient(world);
    const old = await left.tokens(browser());
    for (const day of [1, 29, 58]) {
      await later(day * DAY_MS);
      const answer = await used.refresh(refresh_token);
      expect([day, answer.status], answer.text).toEqual([day, 200]);
      refresh_token = answer.body.refresh_token;
      // The only unused token is the new one, and the authorisation is still active.
      await later(day * DAY_MS + 1_000);
      expect(await statusOf(used)).toBe('live');
      expect(await statusOf(left)).toBe(day < 30 ? 'live' : 'expired');
    }
    // Deleted a day after it expired: the client has to register again.
    await later(60 * DAY_MS);
    expect((await left.refresh(old.refresh_token)).body.error).toBe('invalid_client');
  });
});
