/** Many people, agents, connections, entry points and replicas concurrently: each call has its own person's token, every time. */
import { setTimeout } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { rawClient } from '../proxy/raw-client.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';
import { govern } from '../world/docs-platform.ts';
import { agentOfPeople, consentAsserted, documentOf } from '../world/people.ts';
import { givenPeople, slack } from '../world/people-world.ts';
import { makeRandom } from '../world/random.ts';
import { givenReplica } from '../world/replica.ts';
import { sized } from '../world/runner/thorough.ts';
import { postgresNote, STORES } from '../world/stores.ts';

/** A thorough run makes 1,000 calls; the full run is PEOPLE_CALLS=10000, with 100 people. */
const CALLS = Number(process.env.PEOPLE_CALLS ?? sized(300, 1_000));
const PEOPLE = Math.min(100, Math.max(6, Math.floor(CALLS / 80)));
const SEED = Number(process.env.PEOPLE_SEED ?? Math.floor(Math.random() * 2 ** 32));
const AT_ONCE = 24;
const AGENTS = 3;
/** Lifetime of access tokens: they expire between the two halves of the run, however fast the machine is. */
const TOKEN_SECONDS = 5;

describe.runIf(STORES.includes('postgres'))(`people on replicas on postgres${postgresNote}`, () => {
  const { server, world, organisation } = givenPeople('postgres', { tokenSeconds: TOKEN_SECONDS });
  const replica = givenReplica(world);

  test(`${CALLS} calls of ${PEOPLE} people in random order (PEOPLE_SEED=${SEED}): each has its person’s own token`, async () => {
    const random = makeRandom(SEED);
    const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)]!;
    const connections = { first: { platform: 'docs', default: true }, second: { platform: 'docs' } };
    const file = documentOf(server, { asserted: ['slack'], asserted_consent: 'link' }, { connections });
    await expectStatus(200, govern(organisation, file));
    const listed = (await organisation.ask('GET', '/owner/connections')).body.connections;
    const idOf = (label: string): string => listed.find((one: { label: string }) => one.label === label).id;
    const places = [
      { label: 'first', id: undefined },
      { label: 'second', id: idOf('second') },
    ];
    const agents = await Promise.all(Array.from({ length: AGENTS }, () => agentOfPeople(organisation)));
    for (const agent of agents) {
      const terms = { connection: 'second', scopes: ['docs:read'] };
      await expectStatus(201, organisation.ask('POST', `/owner/agents/${agent.id}/grants/docs`, terms));
    }

    // Each person gives a different account for each connection.
    const given = Array.from({ length: PEOPLE }, (_, at) => places.map((place) => ({ place, id: `U-${at}` }))).flat();
    const accountOf = ({ place, id }: (typeof given)[number]) => `${id.toLowerCase()}-${place.label}`;
    const call = (agent: TestAgent, one: (typeof given)[number]) =>
      agent.act({
        platform: 'docs',
        endpoint: `/items?of=${accountOf(one)}`,
        method: 'GET',
        scope: 'docs:read',
        caller: slack(one.id),
        ...(one.place.id && { connection_id: one.place.id }),
      });
    /** The two entry points; each returns the account whose token the platform received. */
    const entryPoints = [
      async (agent: TestAgent, one: (typeof given)[number]) => {
        const { status, text, body } = await call(agent, one);
        return { status, text, who: body.data?.who };
      },
      async (agent: TestAgent, one: (typeof given)[number]) => {
        const path = `/proxy/${one.place.label}/items?of=${accountOf(one)}`;
        const headers = { 'x-svc-caller': `id slack:${one.id}` };
        const { status, text, body } = await rawClient(() => agent)('GET', path, { headers });
        return { status, text, who: body.who };
      },
    ];
    await inTurns(given, 8, async (one) => {
      const { body } = await call(pick(agents), one);
      await expectStatus(200, consentAsserted(server, body.consent_url, accountOf(one)));
    });

    server.served.length = 0;
    server.asked.length = 0;
    const everywhere = [...agents, ...agents.map((agent) => replica.asks(agent))];
    const wrong: unknown[] = [];
    const calls = Array.from({ length: CALLS }, () => ({
      agent: pick(everywhere),
      entryPoint: pick(entryPoints),
      one: pick(given),
    }));
    const make = (some: typeof calls) =>
      inTurns(some, AT_ONCE, async ({ agent, entryPoint, one }) => {
        const { status, text, who } = await entryPoint(agent, one);
        if (status !== 200 || who !== accountOf(one)) wrong.push([accountOf(one), status, text]);
      });
    const half = Math.ceil(CALLS / 2);
    await make(calls.slice(0, half));
    await setTimeout(TOKEN_SECONDS * 1000);
    const second = calls.slice(half);
    await make(second);
    expect(wrong).toEqual([]);
    // Checked at the platform: the token's account is the one that the call was for.
    const strangers = server.served.filter(({ who, query }) => query.get('of') !== who);
    expect(strangers).toEqual([]);
    expect(server.served.length).toBeGreaterThanOrEqual(CALLS);
    const refreshed = server.asked.filter((form) => form.get('grant_type') === 'refresh_token').length;
    expect(refreshed).toBeGreaterThanOrEqual(new Set(second.map(({ one }) => accountOf(one))).size);
    process.stdout.write(`${CALLS} calls, ${server.served.length} at the platform, ${refreshed} refreshes\n`);
  }, 720_000);
});

/** Runs the work for all items, with this concurrency. */
async function inTurns<T>(all: readonly T[], atOnce: number, work: (one: T) => Promise<void>): Promise<void> {
  const rest = all.values();
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (const one of rest) await work(one);
    }),
  );
}
