/** The procedure in docs/operations.md: a backup of a broker in use, restored on an empty machine, repeats nothing that was done since. */
import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  cpSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { postgresPrograms } from '../../bin/postgres-programs.ts';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { uuidv7 } from '../../broker/crypto/ids.ts';
import { readConfig } from '../../broker/environment/config.ts';
import { makeLog } from '../../broker/log/log.ts';
import { type Running, type ServeOptions, serve } from '../../broker/process/main.ts';
import { restoreBackup, restoreInPlace } from '../../broker/process/restore.ts';
import { startFault } from '../../broker/process/start-fault.ts';
import { decideHeldCall } from '../../broker/store/decisions.ts';
import { markRestore } from '../../broker/store/generation.ts';
import { openPostgres } from '../../broker/store/postgres/postgres.ts';
import { openSqlite } from '../../broker/store/sqlite/sqlite.ts';
import { type Answer, jsonPost, jsonRequest, send, TestAgent } from '../world/agent.ts';
import { BIN, COMPILE_CACHE, CONSOLE_BUNDLE, ROOT } from '../world/checkout.ts';
import { commandHost } from '../world/command.ts';
import { browserOf } from '../world/mcp/person.ts';
import { callMcp, OAuthClient } from '../world/oauth-client.ts';
import { approveWith, enrol, signInWith } from '../world/passkeys.ts';
import { SLACK_CHANNEL, SLACK_TOKEN, startChatServer } from '../world/servers/chat-servers.ts';
import { smallDisk } from '../world/small-disk.ts';
import type { Authenticator } from '../world/software-authenticator.ts';
import { query } from '../world/store-contents.ts';
import {
  newDatabase,
  newFolder,
  newMigratedDatabase,
  ONE_STORE,
  postgresNote,
  STORES,
  type StoreKind,
} from '../world/stores.ts';
import { ALLOW_ALL, DEMO_SCOPES, type Organisation, startWorld, type World } from '../world/world.ts';

const READ = { platform: 'demo', endpoint: '/items/1', method: 'GET', scope: 'demo:read' };
const CHANGE = { ...READ, method: 'PATCH', scope: 'demo:write', data: { a: 1 } };
const HELD = { ...READ, endpoint: '/items', method: 'POST', scope: 'demo:write', data: { a: 1 } };

type Environment = Record<string, string>;

/** The steps of the procedure, read from docs/operations.md. */
const PAGE = readFileSync(join(ROOT, 'docs', 'operations.md'), 'utf8')
  .split('### Restoring\n')[1]!
  .split('**Brought back')[0]!;
const STEPS = [...PAGE.matchAll(/^ {3}npx agent-broker (.+)$/gm)].map(([, words = '']) => words.split(' '));

test('the documented steps are those that these tests take', () => {
  expect(STEPS).toEqual([['restore', 'backup.db'], ['serve'], ['restored'], ['restored', '--end']]);
});

const runCommand = commandHost();

/** Runs a command as documented, with the settings of a broker. */
const run = (environment: Environment, ...words: string[]) => runIn(environment.AGENT_BROKER_DATA!, environment, words);

async function runIn(cwd: string, environment: Environment, words: readonly string[]): Promise<string> {
  const env = { ...environment };
  delete env.PORT;
  const { code, stdout, stderr } = await runCommand(words, { cwd, env });
  expect(code, `agent-broker ${words.join(' ')}: ${stderr}`).toBe(0);
  return stdout;
}

async function refused(environment: Environment, ...words: string[]): Promise<string> {
  const { code, stderr } = await runCommand(words, { cwd: environment.AGENT_BROKER_DATA!, env: environment });
  expect(code, stderr).toBe(1);
  return stderr;
}

type RestoreOptions = { replace?: boolean; nothingSince?: boolean };

/** Restores in this process. The command itself is run where its output or options are tested. */
async function restore(environment: Environment, file: string, options: RestoreOptions = {}): Promise<void> {
  const config = readConfig(environment);
  const { replace = false, nothingSince = false } = options;
  await restoreBackup(file, { config, log: makeLog('silent'), programs: postgresPrograms, replace, nothingSince });
}

async function treatAsRestored(environment: Environment): Promise<void> {
  await restoreInPlace({ config: readConfig(environment), log: makeLog('silent'), nothingSince: false });
}

/** Returns the error of a restore that is refused. */
async function notRestored(environment: Environment, file: string, options: RestoreOptions = {}): Promise<string> {
  const error: unknown = await restore(environment, file, options).catch((thrown: unknown) => thrown);
  const fault = startFault(error, readConfig(environment));
  expect(fault).toBeInstanceOf(Error);
  return (fault as Error).message;
}

/** Ends the review of a restored store. */
async function endReview(running: Running, { id, owner }: Organisation): Promise<void> {
  const { token } = mintOwnerSession(running.broker, owner);
  const ask = (method: string, path: string, body?: object) =>
    send(running.baseUrl + path, jsonRequest(method, body, { authorization: `Bearer ${token}` }));
  const { restored } = (await ask('GET', '/owner/restored')).body;
  const ended = await ask('POST', '/owner/restored/end', { restored_at: restored.at });
  expect(ended.status, `${id}: ${ended.text}`).toBe(200);
}

/** Starts a broker in this process, which costs a tenth of starting a process. */
async function started(environment: Environment, options: ServeOptions = {}): Promise<Running> {
  const running = await serve(readConfig(environment), { consoleBundle: CONSOLE_BUNDLE, ...options });
  onTestFinished(() => running.stop());
  return running;
}

/** Returns the error of a start that is refused. */
async function notStarted(environment: Environment): Promise<string> {
  const error: unknown = await started(environment).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(Error);
  return (error as Error).message;
}

/** Returns an empty place for a store, with the master key of another one. */
async function emptyMachine(world: World, store: StoreKind): Promise<Environment> {
  const data = newFolder();
  mkdirSync(join(data, 'keys'), { mode: 0o700 });
  copyFileSync(world.running.broker.config.keyFile, join(data, 'keys', 'master.key'));
  return {
    ...world.environment,
    AGENT_BROKER_DATA: data,
    ...(store === 'postgres' && { DATABASE_URL: await newDatabase() }),
  };
}

describe.each(STORES)(`the restore procedure on %s${postgresNote}`, (store) => {
  let world: World;
  let organisation: Organisation;
  let [agent, suspended]: TestAgent[] = [];
  let client: OAuthClient;
  let restored: Environment;
  /** A session of the owner at the restored store. */
  let token: string;
  /** Items from before the backup, which were used or ended after it. */
  let then: { held: string; session: string; link: string; refresh: string; key: string; bearer: string };
  /** Its counter is 5 in the backup, and 9 after its last use. */
  let passkey: Authenticator;
  let restoreMs = 0;

  const asOwner = (session: string, method: string, path: string, body?: unknown): Promise<Answer> =>
    send(agent!.baseUrl + path, jsonRequest(method, body, { authorization: `Bearer ${session}` }));
  const signIn = (link: string): Promise<Answer> =>
    send(`${agent!.baseUrl}/owner/sign-in`, jsonPost({ token: new URL(link).hash.replace(/^#(?:token=)?/, '') }));

  beforeAll(async () => {
    world = await startWorld(store);
    organisation = await world.demoOrganisation();
    agent = await organisation.agent({ name: 'worker' });
    suspended = await organisation.agent({ name: 'suspended-later' });
    const { environment } = world;
    client = new OAuthClient(world);
    const grants = [{ platformId: 'demo', scopes: Object.keys(DEMO_SCOPES) }];
    const tokens = await client.tokens(browserOf(world, organisation.owner), {}, { name: 'remote', grants });
    then = {
      held: await agent.hold(HELD),
      session: mintOwnerSession(world.running.broker, organisation.owner).token,
      link: (await run(environment, 'owner', 'link', '--email', organisation.owner.email)).match(/https?:\/\/\S+/)![0],
      refresh: tokens.refresh_token,
      bearer: tokens.access_token,
      key: 'a-key-of-after-the-backup',
    };

    passkey = await enrol(world, organisation);
    expect((await signInWith(world, passkey, { counter: 5 })).status).toBe(200);
    // The backup is made under load.
    const folder = newFolder();
    let done = false;
    const load = (async () => {
      while (!done) expect((await agent.act(CHANGE)).status).toBe(200);
    })();
    await runIn(folder, { ...environment }, ['backup', 'backup.db']);
    done = true;
    await load;

    // Changes after the backup, which are lost with the machine.
    const approved = await organisation.approve(then.held);
    expect(approved.body.status, approved.text).toBe('approved');
    await organisation.ask('POST', `/owner/agents/${suspended.agentId}/suspend`, {});
    expect((await agent.act(CHANGE, { 'idempotency-key': then.key })).status).toBe(200);
    expect((await signIn(then.link)).status).toBe(200);
    expect((await asOwner(then.session, 'POST', '/owner/sign-out')).status).toBeLessThan(300);
    expect((await client.refresh(then.refresh)).status).toBe(200);
    expect((await signInWith(world, passkey, { counter: 9 })).status).toBe(200);
    await world.running.stop();
    world.upstream.seen.length = 0;

    restored = { ...(await emptyMachine(world, store)), PORT: new URL(agent.baseUrl).port };
    const began = performance.now();
    expect(await runIn(folder, restored, STEPS[0]!)).toContain('until an admin has reviewed it');
    restoreMs = performance.now() - began;
    process.stdout.write(`restored in ${Math.round(restoreMs)} ms (${store})\n`);
    const broker = await serve(readConfig(restored), { choresMs: 100, consoleBundle: CONSOLE_BUNDLE });
    expect(broker.baseUrl).toBe(agent.baseUrl);
    token = mintOwnerSession(broker.broker, organisation.owner).token;
    return () => broker.stop();
  });

  test('before the review every entry point refuses calls with store_restored', async () => {
    const answer = await agent!.act(READ);
    expect([answer.status, answer.body.error], answer.text).toEqual([503, 'store_restored']);
    expect(answer.body.detail).toContain('Ask an admin');
    const bearer = { authorization: `Bearer ${agent!.token()}` };
    const proxied = await send(`${agent!.baseUrl}/proxy/demo-main/items/1`, { headers: bearer });
    expect([proxied.status, proxied.body.error], proxied.text).toEqual([503, 'store_restored']);
    const basic = { authorization: `Basic ${Buffer.from(`x:${agent!.token()}`).toString('base64')}` };
    const git = await send(`${agent!.baseUrl}/git/acme/app/info/refs?service=git-upload-pack`, { headers: basic });
    expect([git.status, git.text]).toEqual([503, expect.stringContaining('store_restored')]);
    const arguments_ = { platform: 'demo', scope: 'demo:read', endpoint: '/items/1' };
    const called = { method: 'tools/call', params: { name: 'read_platform', arguments: arguments_ } };
    const tool = await callMcp(agent!.baseUrl, agent!.token(), called);
    const question = {
      subject: { type: 'agent', id: agent!.agentId },
      action: { name: 'demo:read' },
      resource: { type: 'platform', id: 'demo' },
    };
    const asked = await agent!.post('/v1/authzen/access', question);
    expect([asked.status, asked.body.error], asked.text).toEqual([503, 'store_restored']);
    expect((await agent!.get('/v1/agent/permissions')).status).toBe(503);
    expect(tool.text).toMatch(/store_restored|restored from a backup/);
    expect(world.upstream.seen).toEqual([]);
  });

  test('sessions, links, tokens of MCP clients and keys from before the restore are invalid, and pending approvals have expired', async () => {
    expect((await asOwner(then.session, 'GET', '/owner/me')).status).toBe(401);
    expect((await signIn(then.link)).status).toBe(410);
    expect((await client.refresh(then.refresh)).body.error).toBe('invalid_grant');
    const bearer = await callMcp(agent!.baseUrl, then.bearer, { method: 'tools/list' });
    expect([bearer.status, bearer.body.error], 'an authorisation revoked since the backup').toEqual([
      401,
      'invalid_token',
    ]);
    const { body: clients } = await asOwner(token, 'GET', '/owner/mcp-authorisations');
    expect(clients.authorisations.map(({ status }: { status: string }) => status)).toEqual(['expired']);
    expect(await query(restored, 'select count(*) as n from idempotency_keys')).toEqual([
      { n: expect.toSatisfy((n) => Number(n) === 0) },
    ]);
    const held = await asOwner(token, 'GET', `/owner/approvals/${then.held}`);
    expect(held.body.status, 'it was executed since').toBe('expired');
    const again = await asOwner(token, 'POST', `/owner/approvals/${then.held}/approve`, {});
    expect([again.status, again.body.error]).toEqual([410, 'approval_expired']);
    expect((await agent!.act(CHANGE, { 'idempotency-key': then.key })).status).toBe(503);
    expect(world.upstream.seen, 'nothing is sent again').toEqual([]);
  });

  test('the review lists everything that could act at the backup, also on the command line, and the restore is recorded', async () => {
    const organisations = (await asOwner(token, 'GET', '/owner/organisation')).body;
    expect(organisations.restored).toMatchObject({ ended: { approvals: 1 } });
    const { body } = await asOwner(token, 'GET', '/owner/restored');
    expect(body.restored).toEqual(organisations.restored);
    expect(body.agents.map(({ name, status }: Record<string, string>) => [name, status])).toEqual([
      ['remote', 'active'],
      ['suspended-later', 'active'],
      ['worker', 'active'],
    ]);
    expect(body.agents[2].grants).toMatchObject([{ platform: 'demo', scopes: Object.keys(DEMO_SCOPES) }]);
    expect(body.owners).toMatchObject([{ email: organisation.owner.email, role: 'admin' }]);
    expect(body.passkeys).toMatchObject([{ device_name: 'Phone', status: 'active', counter_unknown: true }]);
    const printed = await run(restored, ...STEPS[2]!, '--email', organisation.owner.email);
    expect(printed).toMatch(/suspended-later +active/);
    const rows = (await asOwner(token, 'GET', '/owner/audit?reason=store_restored')).body.rows;
    expect(rows).toHaveLength(1);
    expect((await asOwner(token, 'GET', `/v1/audit/${rows[0].id}/receipt`)).status).toBe(200);
  });

  test('after the review calls are made, except those of agents that were suspended in it', async () => {
    const wrong = await asOwner(token, 'POST', '/owner/restored/end', { restored_at: new Date(0).toISOString() });
    expect([wrong.status, wrong.body.error]).toEqual([409, 'conflict']);
    await asOwner(token, 'POST', `/owner/agents/${suspended!.agentId}/suspend`, {});
    expect(await run(restored, ...STEPS[3]!, '--email', organisation.owner.email)).toContain('Calls are enabled');
    expect((await agent!.act(CHANGE)).status).toBe(200);
    expect((await suspended!.act(READ)).body.reason).toBe('agent_suspended');
    expect(world.upstream.seen).toHaveLength(1);
    expect((await asOwner(token, 'GET', '/owner/restored')).body.restored).toBeNull();
    const rows = (await asOwner(token, 'GET', '/owner/audit?reason=restore_reviewed')).body.rows;
    expect(rows).toHaveLength(1);
  });

  test('the first use of a passkey after the restore is recorded, and a cloned passkey is detected from then on', async () => {
    const events = async (reason: string) =>
      (await asOwner(token, 'GET', `/owner/audit?reason=${reason}`)).body.rows as Record<string, unknown>[];
    const approve = async (counter: number) => await approveWith(world, await agent!.hold(HELD), passkey, { counter });
    expect((await approve(10)).status).toBe(200);
    expect((await approve(11)).status).toBe(200);
    const [noted, ...more] = await events('passkey_counter_restored');
    expect(more).toEqual([]);
    expect(noted).toMatchObject({ flags: { passkey: { stored_counter: 5, reported_counter: 10 } } });
    expect((await asOwner(token, 'GET', '/owner/restored')).body.passkeys).toMatchObject([{ counter_unknown: false }]);
    const copied = await approve(8);
    expect([copied.status, copied.body.error], copied.text).toEqual([400, 'counter_regression']);
    expect(await events('passkey_counter_regression')).toHaveLength(1);
  });

  test('an Idempotency-Key used after the backup is refused after the review, and its call is not repeated', async () => {
    world.upstream.seen.length = 0;
    const answer = await agent!.act(CHANGE, { 'idempotency-key': then.key });
    expect([answer.status, answer.body.error], answer.text).toEqual([409, 'idempotency_outcome_unknown']);
    expect(world.upstream.seen).toEqual([]);
    // Generated with a clock one minute ahead, as if the review had taken that long.
    const since = { 'idempotency-key': uuidv7(Date.now() + 60_000) };
    expect((await agent!.act(CHANGE, since)).status).toBe(200);
    expect((await agent!.act(CHANGE, since)).headers.get('idempotency-replayed')).toBe('true');
    expect(world.upstream.seen).toHaveLength(1);
  });
});

describe.each(STORES)(`ST-07 a store that was replaced by an older copy, on %s${postgresNote}`, (store) => {
  test('is refused at the start, and starts in review once it is marked as restored', async () => {
    const world = await startWorld(store);
    const agent = await (await world.demoOrganisation()).agent();
    const environment: Environment = { ...world.environment, PORT: new URL(agent.baseUrl).port };
    if (store === 'postgres')
      expect(await refused(environment, 'restore', '--in-place')).toContain('A broker runs on this store');
    else expect(await refused(environment, 'restore', '--in-place')).toContain('Another broker is running');
    await world.running.stop();
    const older: Environment = { ...environment };
    if (store === 'postgres') {
      older.DATABASE_URL = await newDatabase({ template: environment.DATABASE_URL! });
    } else
      cpSync(join(environment.AGENT_BROKER_DATA!, 'store'), join(environment.AGENT_BROKER_DATA!, 'copy'), {
        recursive: true,
      });
    await (await started(environment)).stop();
    if (store === 'sqlite') {
      rmSync(join(environment.AGENT_BROKER_DATA!, 'store'), { recursive: true });
      renameSync(join(environment.AGENT_BROKER_DATA!, 'copy'), join(environment.AGENT_BROKER_DATA!, 'store'));
    }
    const why = await notStarted(older);
    expect(why).toContain('This store is older than the one that ran here before');
    expect(why).toContain('agent-broker restore --in-place');
    expect(await run(older, 'restore', '--in-place')).toContain('marked as restored');
    await started(older);
    expect((await agent.act(READ)).body.error).toBe('store_restored');
  });
});

/** Returns a place with a store into which only a part of another one was loaded, without its table meta. */
async function halfLoaded(world: World, store: StoreKind): Promise<Environment> {
  const place = await emptyMachine(world, store);
  if (store === 'sqlite') {
    cpSync(join(world.environment.AGENT_BROKER_DATA!, 'store'), join(place.AGENT_BROKER_DATA!, 'store'), {
      recursive: true,
    });
    const { db, close } = openSqlite(join(place.AGENT_BROKER_DATA!, 'store'));
    await db.deleteFrom('meta').execute();
    await close();
    return place;
  }
  place.DATABASE_URL = await newMigratedDatabase();
  const dump = join(newFolder(), 'data.dump');
  const words = ['--data-only', '--format=custom', `--file=${dump}`, world.environment.DATABASE_URL!];
  expect(spawnSync('pg_dump', words).status).toBe(0);
  const loaded = spawnSync('pg_restore', [`--dbname=${place.DATABASE_URL}`, dump], { encoding: 'utf8' });
  expect(loaded.stderr).toContain('Key (name)=(readable_by) already exists');
  return place;
}

describe.each(STORES)(`a store into which a dump was loaded with errors, on %s${postgresNote}`, (store) => {
  test('is not started, and not marked as restored', async () => {
    const world = await startWorld(store);
    await world.demoOrganisation();
    await world.running.stop();
    const place = await halfLoaded(world, store);
    const state = async () => [
      await query(place, 'select * from meta order by name'),
      await query(place, 'select kid from signing_keys order by kid'),
    ];
    const before = await state();
    expect(await notStarted(place)).toMatch(
      /^This store is incomplete: .* Nothing was started and nothing was changed\.$/,
    );
    await expect(treatAsRestored(place)).rejects.toThrow('This store is incomplete: ');
    expect(await state()).toEqual(before);
    await started({ ...world.environment, PORT: '0' });
  });
});

describe.each(STORES)(`a restore with the key file of the backed up store, on %s${postgresNote}`, (store) => {
  test('needs --replace, because that store no longer starts afterwards; with a key file of its own it does not', async () => {
    const world = await startWorld(store);
    await world.demoOrganisation();
    const { environment } = world;
    const file = join(newFolder(), 'backup');
    await run(environment, 'backup', file);
    const { keyFile } = world.running.broker.config;
    const remembered = () => readFileSync(`${keyFile}.generation`, 'utf8');
    const before = remembered();
    const drill: Environment =
      store === 'postgres'
        ? { ...environment, DATABASE_URL: await newDatabase() }
        : { ...environment, AGENT_BROKER_DATA: newFolder(), AGENT_BROKER_KEY_FILE: keyFile };
    const why = await notRestored(drill, file);
    expect(why).toContain('that store no longer starts');
    expect(why).toContain('add --replace');
    await restore(await emptyMachine(world, store), file);
    expect(remembered()).toBe(before);
    await world.running.stop();
    await (await started(environment)).stop();
    await restore(drill, file, { replace: true });
    expect(await notStarted(environment)).toContain('This store is older than the one that ran here before');
  });
});

// The same statements on both stores.
describe.each(ONE_STORE)(`a call that was approved but not begun at the backup, on %s${postgresNote}`, (store) => {
  test('is not made by the restored store, because it may have been made after the backup', async () => {
    const world = await startWorld(store);
    const agent = await (await world.demoOrganisation()).agent();
    const id = await agent.hold(HELD);
    const environment: Environment = { ...world.environment, PORT: new URL(agent.baseUrl).port };
    await world.running.stop();
    const { DATABASE_URL: url, AGENT_BROKER_DATA: data = '' } = environment;
    const stored = url ? openPostgres(url, { connections: 3, onError: () => {} }) : openSqlite(join(data, 'store'));
    const row = await stored.db.selectFrom('approvals').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
    const decided = { at: Date.now(), by: agent.ownerId, how: 'api', with: null, note: null } as const;
    const claim = {
      ...decided,
      status: 'approved',
      auditId: row.audit_id,
      instanceId: 'a process that died',
    } as const;
    expect(await decideHeldCall(stored.db, row, claim)).toBeDefined();
    await stored.close();
    world.upstream.seen.length = 0;
    await treatAsRestored(environment);
    await started(environment);
    const state = `select exec_state, execution_error from approvals where id = '${id}'`;
    await expect
      .poll(() => query(environment, state), { timeout: 30_000 })
      .toEqual([{ exec_state: 'failed', execution_error: expect.stringContaining('restored from a backup') }]);
    expect(world.upstream.seen).toEqual([]);
  });
});

describe.each(ONE_STORE)(`chat messages about what the restore ended, on %s${postgresNote}`, (store) => {
  test('are not edited, and no notices from before the restore are sent, before and after the review', async () => {
    const chat = await startChatServer();
    const world = await startWorld(store, { AGENT_BROKER_ALLOW_PRIVATE: chat.address });
    const organisation = await world.demoOrganisation({ manifest: { base_url: chat.url } });
    const agent = await organisation.agent({ grants: { demo: { scopeList: ['demo:read', 'demo:write'] } } });
    const token = { token: SLACK_TOKEN, signing_secret: 'b'.repeat(32) };
    const channel = { name: 'ops', kind: 'slack', channel: SLACK_CHANNEL, server: chat.url, secret: token };
    expect((await organisation.ask('POST', '/owner/channels', channel)).status).toBe(201);
    await agent.act(HELD);
    await expect.poll(() => chat.of('chat.postMessage').length).toBe(1);
    await world.running.stop();
    const environment: Environment = { ...world.environment, PORT: new URL(agent.baseUrl).port };
    const { DATABASE_URL: url, AGENT_BROKER_DATA: data = '' } = environment;
    const stored = url ? openPostgres(url, { connections: 3, onError: () => {} }) : openSqlite(join(data, 'store'));
    const sent = await stored.db.selectFrom('notice_deliveries').selectAll().executeTakeFirstOrThrow();
    await stored.db
      .insertInto('notice_deliveries')
      .values({ ...sent, id: randomUUID(), notice_id: randomUUID(), state: 'due', due_at: 0 })
      .execute();
    await stored.close();
    await treatAsRestored(environment);
    const restarted = await started(environment, { choresMs: 100 });
    expect((await agent.act(READ)).body.error).toBe('store_restored');
    // Notices about new events are sent only after the review.
    const asked = await agent.post('/v1/access-request', { platform: 'demo', scope: 'demo:delete' });
    expect(asked.status, asked.text).toBeLessThan(300);
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    expect(chat.calls.length).toBe(1);
    await endReview(restarted, organisation);
    await expect.poll(() => chat.of('chat.postMessage').length, { timeout: 10_000 }).toBe(2);
    await agent.act(HELD);
    await expect.poll(() => chat.of('chat.postMessage').length, { timeout: 10_000 }).toBe(3);
    expect(chat.of('chat.update')).toEqual([]);
  });
});

describe('agent-broker restore', () => {
  let world: World;
  let file: string;
  beforeAll(async () => {
    world = await startWorld('sqlite');
    await world.demoOrganisation();
    file = join(newFolder(), 'backup');
    await run(world.environment, 'backup', file);
  });
  const empty = () => emptyMachine(world, 'sqlite');
  const isEmpty = ({ AGENT_BROKER_DATA = '' }: Environment) => expect(readdirSync(AGENT_BROKER_DATA)).toEqual(['keys']);

  test('changes nothing when the backup is damaged, lacks its manifest, or has another master key', async () => {
    const place = await empty();
    const copy = join(newFolder(), 'backup');
    copyFileSync(file, copy);
    expect(await notRestored(place, copy)).toContain('The manifest');
    copyFileSync(`${file}.manifest.json`, `${copy}.manifest.json`);
    const bytes = readFileSync(copy);
    bytes[bytes.length - 1]! ^= 1;
    writeFileSync(copy, bytes);
    expect(await refused(place, 'restore', copy)).toContain('is damaged');
    const other = await startWorld('sqlite');
    const key = { ...place, AGENT_BROKER_KEY_FILE: other.running.broker.config.keyFile };
    expect(await notRestored(key, file)).toContain('This is not the master key');
    rmSync(join(place.AGENT_BROKER_DATA!, 'keys', 'master.key'));
    expect(await notRestored(place, file)).toMatch(/master key/);
    isEmpty(place);
  });

  test('replaces an existing store only with --replace, and keeps the replaced one', async () => {
    const place = await empty();
    await restore(place, file);
    expect(await notRestored(place, file)).toContain('add --replace');
    const keysOf = () => query(place, `select value from meta where name = 'keys_restored_at'`);
    expect(await keysOf()).toHaveLength(1);
    await run(place, 'restore', file, '--replace', '--nothing-since');
    expect(await keysOf(), 'no key is doubtful').toEqual([]);
    expect(await run(place, 'restore', file, '--replace')).toContain('The previous store was moved to');
    expect(readdirSync(place.AGENT_BROKER_DATA!).filter((name) => name.startsWith('store'))).toEqual([
      'store',
      expect.stringMatching(/^store\.replaced-\d+$/),
      expect.stringMatching(/^store\.replaced-\d+$/),
    ]);
    await started(place);
    expect(await notRestored(place, file, { replace: true })).toContain('Another broker is running');
  });

  test('rules with a look-back apply as if calls had been made after the backup, except with --nothing-since', async () => {
    const own = await startWorld('sqlite');
    const within = { endpoints: ['/items/strange'], within: '8h' };
    const guardrails = [{ name: 'leaves', effect: 'deny', scopes: ['demo:write'], after: within }];
    const organisation = await own.demoOrganisation({ guardrails });
    const agent = await organisation.agent({ rules: ALLOW_ALL });
    const backup = join(newFolder(), 'backup.db');
    await run(own.environment, 'backup', backup);
    expect((await agent.act({ ...CHANGE, data: {} })).status).toBe(200);
    const restoredWith = async (options: RestoreOptions = {}) => {
      const place = await emptyMachine(own, 'sqlite');
      await restore(place, backup, options);
      const running = await started(place);
      await endReview(running, organisation);
      const answer = await new TestAgent({ ...agent, baseUrl: running.baseUrl }).act({ ...CHANGE, data: {} });
      return { answer, shown: await run(place, 'agent', 'show', agent.agentId) };
    };
    const { answer, shown } = await restoredWith();
    expect([answer.status, answer.body.reason]).toEqual([403, 'denied_by_guardrail']);
    expect(answer.body.detail).toMatch(/the store was restored at 20.* and what the agent did after the backup is not/);
    expect(shown).toMatch(/leaves \(guardrail\) until .*, because the store was restored/);
    const sure = await restoredWith({ nothingSince: true });
    expect(sure.answer.status, sure.answer.text).toBe(200);
    expect(sure.shown).not.toContain('store was restored');
  });

  test('leaves a store that starts as before when it is refused', async () => {
    const own = await startWorld('sqlite');
    await own.demoOrganisation();
    const backup = join(newFolder(), 'backup');
    await run(own.environment, 'backup', backup);
    const { AGENT_BROKER_DATA: data = '' } = own.environment;
    const before = readFileSync(join(data, 'generation.json'), 'utf8');
    expect(await notRestored(own.environment, backup)).toContain('add --replace');
    expect(await notRestored(own.environment, backup, { replace: true })).toContain('Another broker is running');
    await expect(treatAsRestored(own.environment)).rejects.toThrow(/running/);
    expect(readFileSync(join(data, 'generation.json'), 'utf8')).toBe(before);
    await own.running.stop();
    expect(await notRestored(own.environment, backup)).toContain('add --replace');
    await started(own.environment);
  });

  test.skipIf(process.platform === 'win32')('restores a backup that is a read-only file', async () => {
    const place = await empty();
    const kept = join(newFolder(), 'backup.db');
    copyFileSync(file, kept);
    copyFileSync(`${file}.manifest.json`, `${kept}.manifest.json`);
    chmodSync(kept, 0o400);
    // Root may write such a file, unless that right is taken away.
    const isRoot = process.getuid?.() === 0;
    const [program, ...words] = [...(isRoot ? ['setpriv', '--bounding-set=-dac_override'] : []), process.execPath];
    const { status, stderr } = spawnSync(program!, [...words, BIN, 'restore', kept], {
      env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: COMPILE_CACHE, ...place },
      encoding: 'utf8',
    });
    expect([status, stderr]).toEqual([0, '']);
    await started(place);
  });

  const small = smallDisk(6 * 1024 * 1024);
  test.runIf(small)('without free space it keeps the existing store, and removes its own copy', async () => {
    const place = { ...(await empty()), AGENT_BROKER_DATA: join(small!, 'data') };
    mkdirSync(join(place.AGENT_BROKER_DATA, 'keys'), { recursive: true, mode: 0o700 });
    copyFileSync(world.running.broker.config.keyFile, join(place.AGENT_BROKER_DATA, 'keys', 'master.key'));
    await restore(place, file);
    const before = readFileSync(join(place.AGENT_BROKER_DATA, 'generation.json'), 'utf8');
    const filler = join(small!, 'filler');
    // Fails once the disk is full, as intended.
    spawnSync('dd', ['if=/dev/zero', `of=${filler}`, 'bs=4096']);
    expect(await notRestored(place, file, { replace: true })).toBe(
      `The disk of ${place.AGENT_BROKER_DATA} is full. Make room there, then start again.`,
    );
    expect(readdirSync(place.AGENT_BROKER_DATA).toSorted()).toEqual(['generation.json', 'keys', 'store']);
    expect(readFileSync(join(place.AGENT_BROKER_DATA, 'generation.json'), 'utf8')).toBe(before);
    rmSync(filler);
    await started(place);
  });

  test('is refused where the store is a mount, and changes nothing', async ({ skip }) => {
    const place = await empty();
    const data = place.AGENT_BROKER_DATA!;
    mkdirSync(join(data, 'store'), { mode: 0o700 });
    if (!smallDisk(16 * 1024 * 1024, join(data, 'store'))) return skip();
    expect(await notRestored(place, file)).toMatch(/store is a mount point, .* Nothing was changed\.$/);
    expect(readdirSync(data).toSorted()).toEqual(['keys', 'store']);
    // The remedy that the message names.
    const other = await empty();
    await restore(other, file);
    copyFileSync(join(other.AGENT_BROKER_DATA!, 'store', 'broker.db'), join(data, 'store', 'broker.db'));
    await (await started(place)).stop();
    expect(await notRestored(place, file, { replace: true })).toContain('is a mount point');
    await started(place);
  });

  test('is refused where the store is a symbolic link, and changes nothing', async () => {
    const place = await empty();
    const data = place.AGENT_BROKER_DATA!;
    const disk = newFolder();
    symlinkSync(disk, join(data, 'store'));
    expect(await notRestored(place, file)).toMatch(/store is a symbolic link, .* Nothing was changed\.$/);
    // The remedy that the message names.
    const other = await empty();
    await restore(other, file);
    copyFileSync(join(other.AGENT_BROKER_DATA!, 'store', 'broker.db'), join(disk, 'broker.db'));
    await (await started(place)).stop();
    expect(await notRestored(place, file, { replace: true })).toContain('store is a symbolic link');
    expect(readdirSync(data).toSorted()).toEqual(['generation.json', 'keys', 'run', 'store']);
    expect([lstatSync(join(data, 'store')).isSymbolicLink(), readdirSync(disk)]).toEqual([
      true,
      expect.arrayContaining(['broker.db']),
    ]);
    await started(place);
  });

  test('a backup file copied in place of the store is not served', async () => {
    const place = await empty();
    const store = join(place.AGENT_BROKER_DATA!, 'store', 'broker.db');
    mkdirSync(dirname(store), { mode: 0o700 });
    copyFileSync(file, store);
    const why = await notStarted(place);
    expect(why).toContain('was copied into place without the restore command');
    expect(why).toContain('agent-broker restore FILE');
  });

  test('killed before its store was in place: the start reports it, and the restore can be repeated', async () => {
    const place = await empty();
    const data = place.AGENT_BROKER_DATA!;
    mkdirSync(join(data, 'store.restoring'), { mode: 0o700 });
    const why = await notStarted(place);
    expect(why).toContain('A restore was interrupted before its store was in place');
    expect(why).toContain('agent-broker restore FILE');
    expect(readdirSync(data)).not.toContain('store');
    await restore(place, file);
    await started(place);
    expect(readdirSync(data)).not.toContain('store.restoring');
  });
});

describe.runIf(STORES.includes('postgres'))(`a restore of PostgreSQL that did not finish${postgresNote}`, () => {
  test('because of a failure does not affect the existing broker on another database', async () => {
    const world = await startWorld('postgres');
    await world.demoOrganisation();
    const file = join(newFolder(), 'backup');
    await run(world.environment, 'backup', file);
    const remembered = join(world.environment.AGENT_BROKER_DATA!, 'generation.json');
    const before = readFileSync(remembered, 'utf8');
    const target = { ...world.environment, DATABASE_URL: await newDatabase() };
    // A view: the database counts as empty, but the table of that name cannot be created.
    await query(target, 'create view meta as select 1 as one');
    expect(await notRestored(target, file, { replace: true })).toContain('already exists');
    expect(readFileSync(remembered, 'utf8')).toBe(before);
    expect(await notStarted(target)).toContain('A restore into this database was interrupted');
    await world.running.stop();
    await started(world.environment);
  });

  test('after loading the dump prevents a start on any machine; before loading it the restore can be repeated', async () => {
    const world = await startWorld('postgres');
    const agent = await (await world.demoOrganisation()).agent();
    const file = join(newFolder(), 'backup');
    await run(world.environment, 'backup', file);
    const place = await emptyMachine(world, 'postgres');
    const database = async (url: string) => await openPostgres(url, { connections: 1, onError: () => {} });
    const mark = async (url: string) => {
      const { db, close } = await database(url);
      await markRestore(db);
      await close();
    };
    await mark(place.DATABASE_URL!);
    expect(await notStarted(place)).toContain('A restore into this database was interrupted');
    await restore(place, file);
    expect(await query(place, `select to_regclass('restore_under_way') as mark`)).toEqual([{ mark: null }]);

    // The state after a kill between the commit of the dump and the end of pending items.
    const loaded: Environment = { ...(await emptyMachine(world, 'postgres')), DATABASE_URL: '' };
    loaded.DATABASE_URL = await newDatabase({ template: place.DATABASE_URL! });
    await mark(loaded.DATABASE_URL);
    expect(await notStarted(loaded)).toContain('A restore into this database was interrupted');
    expect(await notRestored(loaded, file)).toContain('The database is not empty');
    // A refused start does not store the generation.
    expect(readdirSync(loaded.AGENT_BROKER_DATA!)).not.toContain('generation.json');
    // A backup does not contain the mark.
    const again = join(newFolder(), 'backup');
    await run(loaded, 'backup', again);
    const last = await emptyMachine(world, 'postgres');
    await restore(last, again);
    await treatAsRestored(loaded);
    await world.running.stop();
    const port = { PORT: new URL(agent.baseUrl).port };
    for (const restored of [last, loaded]) {
      const broker = await started({ ...restored, ...port });
      expect((await agent.act(READ)).body.error).toBe('store_restored');
      await broker.stop();
    }
  });
});
