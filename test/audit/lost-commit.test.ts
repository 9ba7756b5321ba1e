/** Connections to PostgreSQL that break, including at a commit whose result is then unknown. */
import { sql } from 'kysely';
import pg from 'pg';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { findAuditRow } from '../../broker/store/audit.ts';
import { type Answer, jsonPost, makeKeyPair, send } from '../world/agent.ts';
import { issue } from '../world/child.ts';
import { evidenceOf } from '../world/evidence.ts';
import { startLoad } from '../world/load.ts';
import { makeRandom } from '../world/random.ts';
import { listAuditRows } from '../world/rows.ts';
import { startAnswerLosingProxy } from '../world/servers/answer-losing-proxy.ts';
import { newMigratedDatabase, postgresNote, STORES } from '../world/stores.ts';
import { startWorld, type World } from '../world/world.ts';

/** The COMMIT statement as in a protocol message, including its terminator. */
const COMMIT = 'commit\0';

const patch = (item: string) => ({
  platform: 'demo',
  endpoint: `/items/${item}`,
  method: 'PATCH',
  scope: 'demo:write',
  data: { a: 1 },
});

/** A world with a proxy to the database that can lose answers. */
async function lossyWorld() {
  const lossy = await startAnswerLosingProxy(await newMigratedDatabase());
  const world = await startWorld('sqlite', { DATABASE_URL: lossy.url, DATABASE_CONNECTIONS: '8' });
  // Stopped here and not at the end of the file: the server accepts a hundred connections, and each of these brokers holds several.
  onTestFinished(() => world.running.stop());
  const organisation = await world.organisation();
  await organisation.platform();
  return { lossy, world, organisation, agent: await organisation.agent() };
}

describe.runIf(STORES.includes('postgres'))(`a connection to PostgreSQL that is lost${postgresNote}`, () => {
  test.each<[string, (lose: () => void, world: World) => void]>([
    ['the intent', (lose) => lose()],
    [
      'the outcome',
      (lose, world) => {
        world.upstream.answer = (_request, response) => {
          lose();
          response.end('{}');
        };
      },
    ],
  ])('ST-10 at the commit of %s: the write is retried, the platform is called once', async (_what, arm) => {
    const { lossy, world, agent } = await lossyWorld();
    expect((await agent.act(patch('before'))).status).toBe(200);
    world.upstream.seen.length = 0;
    arm(() => lossy.loseAnswerTo('audit_1'), world);
    const answer = await agent.act(patch('lost'));
    expect([answer.status, lossy.lost()]).toEqual([200, 1]);
    expect(world.upstream.seen).toHaveLength(1);
    const { row } = await evidenceOf(world, agent, answer.body._meta.audit_id);
    expect(row).toMatchObject({ path: '/items/lost', result: 'allowed' });
  });

  test('ST-10 while storing the response of an Idempotency-Key: the response is returned, and a retry gets it without another call', async () => {
    const { lossy, world, agent } = await lossyWorld();
    world.upstream.answer = (_request, response) => {
      lossy.loseAnswerTo('update "idempotency_keys"');
      response.end('{}');
    };
    const answer = await agent.act(patch('kept'), { 'idempotency-key': 'k' });
    expect([answer.status, lossy.lost()]).toEqual([200, 1]);
    const again = await agent.act(patch('kept'), { 'idempotency-key': 'k' });
    expect([again.status, again.text]).toEqual([200, answer.text]);
    expect(world.upstream.seen).toHaveLength(1);
  });

  test('ST-10 at the commit of a held call: the call is held once, and a retry with its Idempotency-Key gets the same answer', async () => {
    const { lossy, world, organisation, agent } = await lossyWorld();
    lossy.loseAnswerTo(COMMIT);
    const held = { ...patch('x'), endpoint: '/items', method: 'POST' };
    const answer = await agent.act(held, { 'idempotency-key': 'k' });
    expect([answer.status, lossy.lost()], answer.text).toEqual([202, 1]);
    const again = await agent.act(held, { 'idempotency-key': 'k' });
    expect([again.status, again.text]).toEqual([202, answer.text]);
    const approvals = await world.db.selectFrom('approvals').select(['id', 'audit_id']).execute();
    const { approval_id: id, _meta } = answer.body;
    expect(approvals).toEqual([{ id, audit_id: _meta.audit_id }]);
    const rows = await listAuditRows(world.db, organisation.id, { limit: 10 });
    expect(rows.map((row) => [row.id, row.result])).toEqual([[_meta.audit_id, 'held']]);
  });

  test('ST-10 at the commit of claiming a key, binding a key and creating a child: each succeeds, and takes effect once', async () => {
    const { lossy, world, organisation, agent } = await lossyWorld();
    const { baseUrl } = world.running;
    const post = (path: string, body: object) => send(baseUrl + path, jsonPost(body));
    const asked = { owner_id: organisation.owner.id, agent_name: 'new', requested_scopes: [] };
    const { registration_token: token } = (await post('/v1/register', asked)).body;
    expect((await organisation.ask('POST', `/v1/register/approve/${token}`)).status).toBe(200);
    lossy.loseAnswerTo(COMMIT);
    const claimed = await send(`${baseUrl}/v1/register/claim-key/${token}`, {});
    expect([claimed.status, lossy.lost()], claimed.text).toEqual([200, 1]);
    expect(claimed.body.private_key).toContain('PRIVATE KEY');

    const { bootstrap_token } = (
      await organisation.ask('POST', `/owner/agents/${agent.id}/bootstrap-token`, { rotate: true })
    ).body;
    const keys = makeKeyPair();
    lossy.loseAnswerTo(COMMIT);
    const bound = await post('/v1/agents/bind', { bootstrap_token, public_key_pem: keys.publicPem });
    expect([bound.status, lossy.lost()], bound.text).toEqual([200, 2]);

    const parent = await organisation.agent();
    lossy.loseAnswerTo(COMMIT);
    const child = await issue(parent);
    expect([child.status, lossy.lost()], child.text).toEqual([201, 3]);
    const children = await world.db
      .selectFrom('agents')
      .select('agent_id')
      .where('parent_id', '=', parent.id)
      .execute();
    expect(children).toEqual([{ agent_id: child.body.child_agent_id }]);
  });

  test('ST-10 a commit that fails: the call is refused with audit_unavailable, and nothing is stored', async () => {
    const { world, agent } = await lossyWorld();
    // The server answers with an error at the commit, as when it shuts down at that moment.
    await sql`create function fail() returns trigger language plpgsql as
      $$ begin raise exception 'no' using errcode = '57P01'; end $$`.execute(world.db);
    await sql`create constraint trigger fails after insert on approvals deferrable initially deferred
      for each row execute function fail()`.execute(world.db);
    const answer = await agent.act({ ...patch('x'), endpoint: '/items', method: 'POST' });
    expect([answer.status, answer.body.error, answer.body.detail]).toEqual([
      503,
      'audit_unavailable',
      expect.stringContaining('nothing was sent'),
    ]);
    expect(await world.db.selectFrom('approvals').select('id').execute()).toEqual([]);
    expect(await world.db.selectFrom('audit_rows').select('id').execute()).toEqual([]);
  });

  test('ST-10 at the commit of a held call, with the store unavailable afterwards: the answer is that the call may be held', async () => {
    const { lossy, world, agent } = await lossyWorld();
    lossy.loseAnswerTo(COMMIT, { andAllThatFollows: true });
    const held = { ...patch('x'), endpoint: '/items', method: 'POST' };
    const answer = await agent.act(held, { 'idempotency-key': 'k' });
    expect([answer.status, answer.body.error, answer.body.detail]).toEqual([
      503,
      'audit_unavailable',
      expect.stringContaining('unknown whether it is in force'),
    ]);
    lossy.repair();
    expect(await world.db.selectFrom('approvals').select('id').execute()).toHaveLength(1);
    const again = await agent.act(held, { 'idempotency-key': 'k' });
    expect([again.status, again.body.error]).toEqual([409, 'idempotency_in_progress']);
    expect(await world.db.selectFrom('approvals').select('id').execute()).toHaveLength(1);
  });

  test.each([
    ['the decision', 1],
    ['the intent', 2],
    ['the outcome', 3],
  ])(
    'ST-10 at the commit of %s of an approved call: the call is made once, and the agent can read its answer',
    async (_what, commit) => {
      const { lossy, world, organisation, agent } = await lossyWorld();
      const id = await agent.hold({ ...patch('x'), endpoint: '/items', method: 'POST' });
      const { services } = world.running;
      if (commit === 1) lossy.loseAnswerTo(COMMIT);
      if (commit === 2) {
        const { start } = services.replays;
        services.replays.start = (...given) => {
          lossy.loseAnswerTo(COMMIT);
          return start(...given);
        };
      }
      if (commit === 3)
        world.upstream.answer = (_request, response) => {
          lossy.loseAnswerTo(COMMIT);
          response.end('{}');
        };
      const answer = await organisation.approve(id);
      expect([answer.status, lossy.lost()]).toEqual([200, 1]);
      const { body } = await agent.get(`/v1/approvals/${id}?wait=20`);
      expect(body).toMatchObject({ status: 'approved', result: { status: 200 } });
      expect(world.upstream.seen).toHaveLength(1);
      expect((await evidenceOf(world, agent, body.audit_id)).row).toMatchObject({ result: 'allowed' });
    },
  );

  test('ST-10 repeatedly under load: every call that the platform received has exactly one audit row', async () => {
    const database = await newMigratedDatabase();
    const world = await startWorld('sqlite', { DATABASE_URL: database, DATABASE_CONNECTIONS: '8' });
    const organisation = await world.organisation();
    await organisation.platform();
    const load = startLoad({
      baseUrl: world.running.baseUrl,
      agents: [await organisation.agent()],
      random: makeRandom(1),
      kinds: [
        { share: 2, method: 'GET', scope: 'demo:read' },
        { share: 3, method: 'PATCH', scope: 'demo:write', data: { a: 1 } },
        // A held call takes a transaction of several statements: the connection may be lost between two of them.
        { share: 1, method: 'POST', scope: 'demo:write', data: { a: 1 }, collection: true },
      ],
      workers: 6,
    });
    const killer = new pg.Client({ connectionString: process.env.TEST_DATABASE_URL! });
    await killer.connect();
    const name = new URL(database).pathname.slice(1);
    for (let cut = 0; cut < 30; cut++) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      await killer.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name]);
    }
    await killer.end();
    const madeSoFar = () => load.sent.flatMap(({ answers }) => answers).filter(({ status }) => status === 200).length;
    await vi.waitUntil(() => madeSoFar() > 30, { timeout: 10_000 });
    await load.stop();
    await world.running.services.recorder.retryLate();
    const rows = await world.db.selectFrom('audit_rows').selectAll().execute();
    expect(rows.filter((row) => row.state !== 'final')).toEqual([]);
    const items = new Map(rows.map((row) => [row.path, row]));
    const seen = world.upstream.seen.map(({ target }) => target.replace('/v1', ''));
    expect(new Set(seen).size).toBe(seen.length);
    expect(seen.filter((item) => !items.has(item))).toEqual([]);
    const answers = load.sent.flatMap((sent) => sent.answers);
    const wrong = (answer: Answer) => ![200, 202, 409, 429, 503].includes(answer.status);
    expect(answers.filter(wrong).map(({ text }) => text)).toEqual([]);
    const made = answers.filter(({ status }) => status === 200);
    expect(made.length).toBeGreaterThan(30);
    for (const { body } of made)
      expect(await findAuditRow(world.db, organisation.id, body._meta.audit_id)).toMatchObject({ result: 'allowed' });
  });
});
