/** Refreshes on several replicas, and interrupted by kill -9 (C9); and tokens are never exposed, whatever fails. */
import { describe, expect, test, vi } from 'vitest';
import { endRefreshClaims } from '../../broker/store/oauth-tokens.ts';
import { type Answer, expectStatus, TestAgent } from '../world/agent.ts';
import { type BrokerProcess, spawnBroker } from '../world/broker-process.ts';
import { browserOf, connectAtOnce, outlive, pressConnect } from '../world/browser/connecting.ts';
import { leaksOf } from '../world/canary.ts';
import { startReplica } from '../world/replica.ts';
import { sized, thorough } from '../world/runner/thorough.ts';
import { startFaultProxy } from '../world/servers/fault-proxy.ts';
import type { LyingServer } from '../world/servers/lying-authorization-server.ts';
import { everythingStored, placesOf, query } from '../world/store-contents.ts';
import { newDatabase, ONE_STORE, postgresNote, STORES } from '../world/stores.ts';
import { CLIENT_SECRET, HOLDERS, place, READ } from './holders.ts';

const CALLS = sized(20, 50);

async function started(process: BrokerProcess): Promise<string> {
  const url = await process.serve();
  expect(url, process.output().stderr).toBeDefined();
  return url!;
}

const refreshes = ({ asked }: LyingServer) => asked.filter((form) => form.get('grant_type') === 'refresh_token');

describe.runIf(STORES.includes('postgres'))(`refreshing on replicas on postgres${postgresNote}`, () => {
  test(`CA-10 ${CALLS} concurrent calls on two replicas with an expired token: one refresh, and each call is made`, async () => {
    const { server, world, organisation, agent, connection } = await place('postgres');
    await connectAtOnce(world, organisation.owner, connection);
    const second = await startReplica(world);
    try {
      const there = second.asks(agent);
      for (let round = 1; round <= 3; round++) {
        await outlive(world, connection);
        const calls = Array.from({ length: CALLS }, (_, i) => (i % 2 ? agent : there).act(READ));
        const answers = await Promise.all(calls);
        expect(answers.map(({ status, text }) => (status === 200 ? status : text))).toEqual(Array(CALLS).fill(200));
        expect(refreshes(server)).toHaveLength(round);
      }
      // Each refresh uses the refresh token from the one before.
      expect(refreshes(server).map((form) => form.get('refresh_token'))).toEqual(server.given.refresh.slice(0, 3));
    } finally {
      second.process.signal('SIGKILL');
    }
  }, 180_000);
});

describe.runIf(STORES.includes('postgres'))(`an unavailable store on postgres${postgresNote}`, () => {
  test('new tokens that arrive meanwhile are stored once the store is back, and the connection stays usable', async () => {
    const cut = await startFaultProxy(await newDatabase());
    const { server, world, organisation, agent, connection } = await place('sqlite', { DATABASE_URL: cut.url });
    await connectAtOnce(world, organisation.owner, connection);
    await outlive(world, connection);
    server.answers.set('/token', async (_request, response) => {
      server.answers.delete('/token');
      await cut.cut();
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(server.rotate()));
    });
    // Like a restart of the server: the store is back after six failed attempts.
    let inVain = 0;
    const back = new Promise<void>((resolve, reject) => {
      vi.spyOn(world.running.broker.log, 'warn').mockImplementation((...[, words]: unknown[]) => {
        if (!String(words).startsWith('could not store refreshed tokens') || ++inVain !== 6) return;
        cut.repair().then(resolve, reject);
      });
    });
    const waiting = agent.act(READ);
    await Promise.race([back, waiting]);
    await waiting;
    if (inVain < 6) await cut.repair();
    const answer = await agent.act(READ);
    expect([answer.status, refreshes(server).length], answer.text).toEqual([200, 1]);
    expect(inVain).toBeGreaterThanOrEqual(6);
    const [after] = await query(world.environment, 'select refresh_claim, status from connections');
    expect(after).toEqual({ refresh_claim: null, status: 'active' });
  }, 180_000);
});

/** Both tables of HOLDERS have the same claims, by the same statements: in CI the other replica refreshes a connection, and not also a person's tokens. */
const TAKEN_OVER = thorough ? HOLDERS : HOLDERS.slice(0, 1);

describe.runIf(STORES.includes('postgres')).each(TAKEN_OVER)(
  `a refresh of $table on postgres${postgresNote}`,
  ({ perPerson, call, give, outlive: getOver }) => {
    test('R7 made by another replica that took this one for dead: the late tokens are not revoked', async () => {
      const made = await place('postgres', {}, perPerson);
      const { server, world, agent } = made;
      const { store, instanceId } = world.running.broker;
      await give(made);
      const second = await startReplica(world);
      try {
        const there = second.asks(agent);
        expect((await there.act(call)).status).toBe(200);
        await getOver(made);
        // As at Google, the refresh token stays, and revoking an access token would end the consent.
        server.token = { refresh_token: undefined };
        let meanwhile: Answer | undefined;
        server.answers.set('/token', async (_request, response) => {
          const tokens = JSON.stringify(server.rotate());
          if (refreshes(server).length === 1) {
            // What the other replica does after 20 s.
            await endRefreshClaims(store.db, instanceId);
            meanwhile = await there.act(call);
          }
          response.writeHead(200, { 'content-type': 'application/json' }).end(tokens);
        });
        const late = await agent.act(call);
        expect([meanwhile?.status, late.status, refreshes(server).length], late.text).toEqual([200, 200, 2]);
        expect(server.seen).not.toContain('POST /revoke');
      } finally {
        second.process.signal('SIGKILL');
      }
    }, 180_000);
  },
);

describe.each(ONE_STORE)(`a refresh claim on %s${postgresNote}`, (store) => {
  test('is made after the server was discovered, so that its lease does not expire during discovery', async () => {
    const { server, world, organisation, agent, connection } = await place(store);
    await connectAtOnce(world, organisation.owner, connection);
    await outlive(world, connection);
    // The metadata has expired, and fetching it again takes long.
    world.clock.skewMs += 11 * 60_000;
    agent.clock = () => Date.now() + world.clock.skewMs;
    const wellKnown = '/.well-known/oauth-authorization-server';
    server.answers.set(wellKnown, async (_request, response) => {
      world.clock.skewMs += 19_000;
      server.answers.delete(wellKnown);
      const body = await (await fetch(server.issuer + wellKnown)).text();
      response.writeHead(200, { 'content-type': 'application/json' }).end(body);
    });
    let left = 0;
    server.answers.set('/token', async (_request, response) => {
      const [claim] = await query(world.environment, 'select refresh_claim_until from connections');
      left = Number(claim!.refresh_claim_until) - world.running.broker.clock();
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(server.rotate()));
    });
    const answer = await agent.act(READ);
    expect([answer.status, refreshes(server).length], answer.text).toEqual([200, 1]);
    expect(left).toBeGreaterThan(20_000);
  });
});

describe.each(ONE_STORE.flatMap((store) => HOLDERS.map((holder) => ({ ...holder, store, of: holder.table }))))(
  `an interrupted refresh of $table on $store${postgresNote}`,
  ({ store, table, perPerson, call, give, outlive: getOver }) => {
    const interruptions: [string, boolean, number][] = [
      ['had been answered in vain: the old token is tried once, and then an owner is needed', true, 409],
      ['had not arrived: the old token is good', false, 200],
    ];
    // In CI the second of a person's tokens is left out: that of connections stays.
    test.each(interruptions.filter(([, rotated]) => rotated || table === 'connections' || thorough))(
      'C9 that %s',
      async (_name, rotated, status) => {
        const made = await place(store, {}, perPerson);
        const { server, world, agent } = made;
        await give(made);
        await getOver(made);
        await world.running.stop();
        const doomed = spawnBroker({ ...world.environment, PORT: '0' });
        const first = new TestAgent({ ...agent, baseUrl: await started(doomed) });
        const arrived = new Promise<void>((resolve) => {
          server.answers.set('/token', () => {
            if (rotated) server.rotate();
            resolve();
          });
        });
        const cutOff = first.act(call).catch(() => 'cut off');
        await arrived;
        doomed.signal('SIGKILL');
        await doomed.ended;
        expect(await cutOff).toBe('cut off');
        server.beHonest();
        // The intent is in the audit, and the claim names its process.
        const [claim] = await query(world.environment, `select refresh_claim, status from ${table}`);
        expect(claim).toEqual({ refresh_claim: expect.any(String), status: 'active' });

        // The next process knows that the previous one is dead, so it does not wait for the lease to expire.
        await world.restart();
        const answers = await Promise.all(Array.from({ length: 5 }, () => agent.act(call)));
        expect(answers.map((answer) => answer.status)).toEqual(Array(5).fill(status));
        if (status === 409) expect(answers[0]!.body.error).toBe('platform_reauth_needed');
        expect(refreshes(server)).toHaveLength(2);
        expect((await agent.act(call)).status).toBe(status);
        expect(refreshes(server)).toHaveLength(2);
        const [after] = await query(world.environment, `select refresh_claim, status from ${table}`);
        expect(after).toEqual({ refresh_claim: null, status: rotated ? 'reauth_needed' : 'active' });
      },
      40_000,
    );
  },
);

describe.each(ONE_STORE)(`tokens on %s${postgresNote}`, (store) => {
  test('CX-07 no token, code or client secret is in the log, in a response, on a page, or readable in the store', async () => {
    const { server, world, organisation, agent, connection } = await place(store);
    const { broker } = world.running;
    const port = new URL(broker.baseUrl).port;
    await connectAtOnce(world, organisation.owner, connection);
    await outlive(world, connection);
    const browser = browserOf(world, organisation.owner);
    await world.running.stop();
    const process = spawnBroker({ ...world.environment, PORT: port, LOG_LEVEL: 'trace' });
    const texts: string[] = [];
    try {
      expect(await started(process)).toBe(broker.baseUrl);
      const say = (answer: { text: string }) => texts.push(answer.text);
      const lies: Parameters<LyingServer['answers']['set']>[1][] = [
        // The server's error repeats the request (CX-07).
        (_q, response, body) =>
          response
            .writeHead(400, { 'content-type': 'application/json' })
            .end(JSON.stringify({ error: 'temporarily_unavailable', error_description: body })),
        (_q, response, body) => response.writeHead(200, { 'content-type': 'application/json' }).end(`${body}{"half`),
        (_q, response, body) =>
          response
            .writeHead(200, { 'content-type': 'application/json' })
            .end(JSON.stringify({ access_token: body, token_type: body, refresh_token: body, id_token: body })),
        (request, response) => response.writeHead(401).end(request.headers.authorization),
      ];
      for (const lie of lies) {
        server.answers.set('/token', lie);
        say(await agent.act(READ));
        const begun = await pressConnect(world, browser, connection);
        say(await browser.get(begun.body.authorization_url));
      }
      server.answers.clear();
      const begun = await pressConnect(world, browser, connection);
      say(await browser.get(begun.body.authorization_url));
      const made = await expectStatus(200, agent.act(READ));
      say(made);
      const shown = await organisation.ask('GET', '/owner/connections');
      say(shown);
      say(await organisation.ask('GET', '/owner/governance'));
      say(await organisation.ask('GET', '/owner/audit'));
      say(await organisation.ask('GET', '/owner/platforms/docs'));
      const refused = await organisation.ask('POST', `/owner/connections/${connection}/oauth/disconnect`);
      expect(refused.body.revoked).toBe(true);
      say(refused);
    } finally {
      process.signal('SIGTERM');
      await process.ended;
    }
    const { stdout, stderr } = process.output();
    const secrets = [...server.given.access, ...server.given.refresh, CLIENT_SECRET];
    expect(secrets.length).toBeGreaterThan(4);
    const stored = await everythingStored(world.environment);
    for (const secret of secrets) {
      expect(leaksOf(secret, texts.join('\n')), secret).toEqual([]);
      expect(leaksOf(secret, stdout + stderr), secret).toEqual([]);
      expect(placesOf(secret, stored), secret).toEqual([]);
    }
    expect(stdout + stderr + texts.join('\n')).not.toMatch(/CANARY-code|sta_[\w-]{43}/);
  }, 180_000);
});
