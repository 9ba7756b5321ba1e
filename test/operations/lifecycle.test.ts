import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { Agent as HttpAgent, request as httpRequest, type ServerResponse } from 'node:http';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, onTestFinished, test } from 'vitest';
import { receiptOf } from '../../broker/audit/receipt.ts';
import { readConfig } from '../../broker/environment/config.ts';
import { type Running, type ServeOptions, serve } from '../../broker/process/main.ts';
import { runFile } from '../../broker/process/run-file.ts';
import type { AuditRow } from '../../broker/store/audit.ts';
import { type Answer, send } from '../world/agent.ts';
import { type BrokerProcess, spawnBroker } from '../world/broker-process.ts';
import { BIN, COMPILE_CACHE, CONSOLE_BUNDLE } from '../world/checkout.ts';
import { listenOnLoopback } from '../world/listen.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { query } from '../world/store-contents.ts';
import { newFolder, ONE_STORE, postgresNote, STORES, type StoreKind, testOnOne } from '../world/stores.ts';
import { givenWorld, startWorld, type World } from '../world/world.ts';

const PATCH = { platform: 'demo', endpoint: '/items/1', method: 'PATCH', scope: 'demo:write', data: { a: 1 } };
const GRACE_MS = 10_000;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function until(what: string, done: () => boolean | Promise<boolean>, timeoutMs = 5_000): Promise<void> {
  const end = performance.now() + scaledTimeout(timeoutMs);
  while (!(await done())) {
    if (performance.now() > end) throw new Error(`waited in vain: ${what}`);
    await pause(10);
  }
}

/** Whether the port accepts connections. */
function listens(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname === 'localhost' ? '127.0.0.1' : hostname);
    socket.on('connect', () => resolve(true)).on('error', () => resolve(false));
    socket.on('connect', () => socket.destroy());
  });
}

/** Creates a seeded store whose broker has stopped, an agent on it, and a process that serves it. */
async function startProcess(store: StoreKind, more: Record<string, string> = {}) {
  const world = await startWorld(store, { LOG_LEVEL: 'warn' });
  const organisation = await world.organisation();
  await organisation.platform();
  const agent = await organisation.agent();
  await world.running.stop();
  const environment: Record<string, string> = { ...world.environment, PORT: new URL(agent.baseUrl).port, ...more };
  const child = spawnBroker(environment);
  expect(await child.serve(), child.output().stderr).toBe(agent.baseUrl);
  return { world, agent, environment, child };
}

/** Starts the next broker in this process: it finds and closes the same as a new process, at a tenth of the cost. */
async function startNext(environment: Record<string, string>): Promise<Running> {
  const next = await serve(readConfig({ ...environment, LOG_LEVEL: 'silent' }), { consoleBundle: CONSOLE_BUNDLE });
  afterFile(() => next.stop());
  return next;
}

/** Sends a call that the platform has not answered yet. */
async function callInFlight(world: World, call: () => Promise<Answer>) {
  const asked = new Promise<ServerResponse>((resolve) => {
    world.upstream.answer = (_request, response) => resolve(response);
  });
  const answer = call();
  return { answer, response: await asked };
}

async function expectCleanEnd(child: BrokerProcess, environment: Record<string, string>): Promise<void> {
  expect(await child.ended, child.output().stderr).toEqual({ code: 0, signal: null });
  await expectClosed(environment);
}

async function expectClosed(environment: Record<string, string>): Promise<void> {
  expect(existsSync(runFile(environment.AGENT_BROKER_DATA!))).toBe(false);
  expect(readdirSync(join(environment.AGENT_BROKER_DATA!, 'run', 'reads'))).toEqual([]);
  // A closed SQLite store has checkpointed its write-ahead log into the database.
  if (environment.DATABASE_URL === undefined)
    expect(readdirSync(join(environment.AGENT_BROKER_DATA!, 'store')).sort()).toEqual(['broker.db', 'lock']);
  expect(await query(environment, `select id from audit_rows where state = 'intent'`)).toEqual([]);
  expect(await query(environment, 'select id from instances')).toEqual([]);
}

describe.each(STORES)(`the end of a process on %s${postgresNote}`, (store) => {
  test('SIGTERM finishes the call in flight, accepts no new one, and leaves no open call', async () => {
    const { world, agent, environment, child } = await startProcess(store);
    expect(existsSync(runFile(environment.AGENT_BROKER_DATA!))).toBe(true);
    const { answer, response } = await callInFlight(world, () => agent.act(PATCH));
    child.signal('SIGTERM');
    await until('new connections are refused', async () => !(await listens(agent.baseUrl)));
    // A second signal has no effect.
    child.signal('SIGTERM');
    response.end('{"done":true}');
    expect(await answer).toMatchObject({ status: 200, body: { data: { done: true } } });
    await expectCleanEnd(child, environment);
    const rows = await query(environment, 'select state, result from audit_rows');
    expect(rows).toEqual([{ state: 'final', result: 'allowed' }]);
  });

  // calls/crash-points kills it at each step of a call, on both stores.
  testOnOne(store)(
    'kill -9 during a call: the next start closes it as unknown, signed, and does not repeat it',
    async () => {
      const { world, agent, environment, child } = await startProcess(store);
      const { answer } = await callInFlight(world, () => agent.act(PATCH));
      const read = await callInFlight(world, () =>
        agent.act({ ...PATCH, method: 'GET', scope: 'demo:read', data: undefined }),
      );
      child.signal('SIGKILL');
      const answers = await Promise.allSettled([answer, read.answer]);
      expect(answers.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
      await child.ended;
      expect(await query(environment, 'select state, method from audit_rows')).toEqual([
        { state: 'intent', method: 'PATCH' },
      ]);
      const next = await startNext(environment);
      const rows = await query(environment, 'select * from audit_rows order by id');
      expect(rows.map(({ method }) => method)).toEqual(['PATCH', 'GET']);
      for (const row of rows) {
        expect(row).toMatchObject({ state: 'final', result: 'errored', reason: 'outcome_unknown' });
        expect((await agent.get(`/v1/audit/${row.id}/receipt`)).body.receipt).toBe(receiptOf(row as AuditRow));
      }
      expect(world.upstream.seen).toHaveLength(2);
      await next.stop();
      await expectClosed(environment);
    },
  );
});

test('SIGTERM drains first: the broker is not ready, calls are still answered, and connections are closed after their answer', {
  timeout: 180_000,
}, async () => {
  const { agent, environment, child: draining } = await startProcess('sqlite', { DRAIN_SECONDS: '4' });
  const ready = () => send(`${agent.baseUrl}/readyz`, {});
  expect((await ready()).headers.get('connection')).not.toBe('close');
  draining.signal('SIGTERM');
  await until('it says that it stops', async () => (await ready()).status === 503);
  expect((await ready()).body.reasons).toEqual(['the broker is stopping']);
  expect((await send(`${agent.baseUrl}/livez`, {})).status).toBe(200);
  const call = await agent.act(PATCH);
  expect([call.status, call.headers.get('connection')], call.text).toEqual([200, 'close']);
  await until('new connections are refused', async () => !(await listens(agent.baseUrl)), 10_000);
  await expectCleanEnd(draining, environment);
});

/** Runs the launcher of the package in a process of its own: from source it takes ten times as long. */
function launch(environment: Record<string, string>, within: readonly string[] = []) {
  const [program, ...words] = [...within, process.execPath, BIN, 'serve', '--no-sandbox'] as const;
  const child = spawn(program, words, {
    env: { PATH: process.env.PATH ?? '', NODE_COMPILE_CACHE: COMPILE_CACHE, PORT: '0', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let written = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (written += chunk));
  return { child, written: () => written, ended: once(child, 'exit') };
}

test('the first start prints its address, logs nothing before, and logs its stop as JSON', {
  timeout: 180_000,
}, async () => {
  const { child, written, ended } = launch({ AGENT_BROKER_DATA: newFolder(), DRAIN_SECONDS: '1' });
  const logged: string[] = [];
  createInterface({ input: child.stderr }).on('line', (text) => logged.push(text));
  await until('it is told', () => written().includes('A new master key is in'), 20_000);
  expect(written()).toMatch(/^\s*Agent Broker is running at http:/);
  child.kill('SIGTERM');
  expect(await ended, written()).toEqual([0, null]);
  expect(logged.map((text) => JSON.parse(text).msg)).toEqual([
    'taking calls for 1 s more, then finishing what is in flight (10 s at most); again to stop immediately',
    'the broker has stopped',
  ]);
});

test('SIGTERM while waiting for the database stops the process regularly, and it never serves', {
  timeout: 180_000,
}, async () => {
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  const silent = createServer(() => resolve());
  const port = await listenOnLoopback(silent);
  const data = newFolder();
  const { child, written, ended } = launch({
    AGENT_BROKER_DATA: data,
    DATABASE_URL: `postgres://x@127.0.0.1:${port}/x`,
  });
  await asked;
  child.kill('SIGTERM');
  expect(await ended, written()).toEqual([0, null]);
  expect(written()).not.toContain('is running at');
  expect(existsSync(runFile(data))).toBe(false);
});

const mayUnshare = spawnSync('unshare', ['--pid', '--fork', '--kill-child', 'true']).status === 0;

/** For Node's `--import`: at the first module that the launcher loads, creates the file TEST_MARK, and waits until it is deleted. */
const MARKING = `data:text/javascript,${encodeURIComponent(`
  import { existsSync, writeFileSync } from 'node:fs';
  import { registerHooks } from 'node:module';
  registerHooks({
    resolve(specifier, context, next) {
      if (/\\/cli\\.js$/.test(specifier)) {
        writeFileSync(process.env.TEST_MARK, '');
        const waiting = new Int32Array(new SharedArrayBuffer(4));
        while (existsSync(process.env.TEST_MARK)) Atomics.wait(waiting, 0, 0, 20);
      }
      return next(specifier, context);
    },
  });
`)}`;

test.runIf(mayUnshare)(
  'SIGTERM to PID 1 of a container is handled while the broker is loading',
  {
    timeout: scaledTimeout(60_000),
  },
  async () => {
    const data = newFolder();
    const mark = join(newFolder(), 'mark');
    const { child, written, ended } = launch(
      { AGENT_BROKER_DATA: data, TEST_MARK: mark, NODE_OPTIONS: `--import=${MARKING}` },
      ['unshare', '--pid', '--fork', '--kill-child'],
    );
    await until('it loads', () => existsSync(mark), 20_000);
    const pid = Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim());
    expect(readFileSync(`/proc/${pid}/status`, 'utf8')).toMatch(/^NSpid:\s+\d+\s+1$/m);
    process.kill(pid, 'SIGTERM');
    rmSync(mark);
    expect(await ended, written()).toEqual([0, null]);
    expect(written()).not.toContain('is running at');
    expect(existsSync(runFile(data))).toBe(false);
  },
);

// The tests above cover what is closed, on both stores.
describe('SIGTERM aborts a hanging call after 10 s', { timeout: scaledTimeout(120_000) }, () => {
  test.each(ONE_STORE)(
    'the call is recorded and answered as unknown, and no call is left open, on %s',
    async (store) => {
      const { world, agent, environment, child } = await startProcess(store);
      const { answer } = await callInFlight(world, () => agent.act(PATCH));
      const began = performance.now();
      child.signal('SIGTERM');
      const cut = await answer;
      expect(performance.now() - began).toBeGreaterThan(GRACE_MS - 500);
      expect([cut.status, cut.body.error, cut.body.outcome]).toEqual([502, 'upstream_unreachable', 'unknown']);
      await expectCleanEnd(child, environment);
      expect(performance.now() - began).toBeLessThan(GRACE_MS + 8_000);
      const rows = await query(environment, 'select id, result, flags from audit_rows');
      expect(rows).toMatchObject([{ id: cut.body.audit_id, result: 'errored' }]);
      expect(JSON.parse(String(rows[0]!.flags)).outcome).toBe('unknown');
      // The next start finds nothing to close, and the platform received the call once.
      const next = await startNext(environment);
      expect(await query(environment, 'select id from audit_rows')).toEqual([{ id: cut.body.audit_id }]);
      await next.stop();
      expect(world.upstream.seen).toHaveLength(1);
    },
  );
});

describe('starting', () => {
  /** Serves in this process, with a new data folder; stopped after the test. */
  async function start(options: ServeOptions = {}, environment: Record<string, string> = {}): Promise<Running> {
    const config = readConfig({ PORT: '0', LOG_LEVEL: 'silent', AGENT_BROKER_DATA: newFolder(), ...environment });
    const running = await serve(config, { consoleBundle: CONSOLE_BUNDLE, ...options });
    onTestFinished(() => running.stop());
    return running;
  }

  test('a request during the start waits, and is answered once the broker is ready', async () => {
    let early: Promise<Answer> | undefined;
    let answered = false;
    const running = await start({
      beforeServing: async ({ broker }) => {
        early = send(`${broker.baseUrl}/health`, {}).finally(() => {
          answered = true;
        });
        await pause(200);
        expect(answered).toBe(false);
      },
    });
    expect((await early!).body).toEqual({ status: 'ok' });
    expect((await send(`${running.baseUrl}/health`, {})).status).toBe(200);
  });

  test('a start that fails half-way closes everything that it opened', async () => {
    const AGENT_BROKER_DATA = newFolder();
    let baseUrl = '';
    let early: Promise<unknown> | undefined;
    const failing = start(
      {
        beforeServing: async ({ broker }) => {
          baseUrl = broker.baseUrl;
          early = send(`${baseUrl}/health`, {}).catch((error: Error) => error);
          await pause(50);
          throw new Error('the governance file is wrong');
        },
      },
      { AGENT_BROKER_DATA },
    );
    await expect(failing).rejects.toThrow('the governance file is wrong');
    expect(await early).toBeInstanceOf(Error);
    expect(await listens(baseUrl)).toBe(false);
    expect(existsSync(runFile(AGENT_BROKER_DATA))).toBe(false);
    const again = await start({}, { AGENT_BROKER_DATA, PORT: new URL(baseUrl).port });
    expect((await send(`${again.baseUrl}/health`, {})).status).toBe(200);
  });

  test('a port in use is reported with a readable error, and no key is created', async () => {
    const first = await start();
    const AGENT_BROKER_DATA = newFolder();
    const { port } = new URL(first.baseUrl);
    await expect(start({}, { PORT: port, AGENT_BROKER_DATA })).rejects.toThrow(`Port ${port} on 127.0.0.1 is in use`);
    expect(existsSync(join(AGENT_BROKER_DATA, 'keys'))).toBe(false);
    await start({}, { AGENT_BROKER_DATA });
  });

  test('ST-04 a second server on one data folder is refused with a readable error, and the first continues', async () => {
    const AGENT_BROKER_DATA = newFolder();
    const first = await start({}, { AGENT_BROKER_DATA });
    await expect(start({}, { AGENT_BROKER_DATA })).rejects.toThrow('Another broker is running on');
    const other = spawnBroker({ PORT: '0', LOG_LEVEL: 'silent', AGENT_BROKER_DATA });
    expect(await other.serve()).toBeUndefined();
    expect(await other.ended).toEqual({ code: 1, signal: null });
    expect(other.output().stderr).toMatch(/Another broker is running on .* stop the other one, choose another folder/);
    expect((await send(`${first.baseUrl}/health`, {})).status).toBe(200);
    await first.stop();
    await start({}, { AGENT_BROKER_DATA });
  });

  test('files in the data folder are accessible to their owner only', async () => {
    const folder = join(newFolder(), 'data');
    const running = await start({}, { AGENT_BROKER_DATA: folder });
    await send(`${running.baseUrl}/health`, {});
    const open: string[] = [];
    const look = (path: string) => {
      const { mode } = statSync(path);
      if ((mode & 0o077) !== 0) open.push(`${path} ${(mode & 0o777).toString(8)}`);
      if (statSync(path).isDirectory()) for (const name of readdirSync(path)) look(join(path, name));
    };
    look(folder);
    expect(open).toEqual([]);
    const files = readdirSync(folder, { recursive: true }).map(String);
    expect(files).toEqual(
      expect.arrayContaining(['store/broker.db', 'store/broker.db-wal', 'keys/master.key', 'run/broker.json']),
    );
  });
});

describe('stopping', () => {
  const world = givenWorld();

  test('a client that keeps its connection open does not delay the stop', async () => {
    const url = `${world.running.baseUrl}/health`;
    const agent = new HttpAgent({ keepAlive: true, maxSockets: 1 });
    let answers = 0;
    let over = false;
    const ask = () =>
      new Promise<void>((resolve, reject) => {
        const request = httpRequest(url, { agent }, (response) => response.resume().on('end', resolve));
        request.on('error', reject).end();
      });
    const asking = (async () => {
      while (!over) {
        await ask();
        answers++;
      }
    })().catch(() => {});
    await until('answers', () => answers > 20);
    const began = performance.now();
    await Promise.all([world.running.stop(), world.running.stop()]);
    expect(performance.now() - began).toBeLessThan(6_000);
    over = true;
    await asking;
    agent.destroy();
    await world.restart();
    expect((await send(`${world.running.baseUrl}/health`, {})).status).toBe(200);
  });
});
