/** Long pushes and fetches: complete, concurrent, and broken off by the client, the broker or the code host. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { mayHaveActed } from '../../broker/audit/row.ts';
import { makeKeyPair, type TestAgent } from '../world/agent.ts';
import { spawnBroker } from '../world/broker-process.ts';
import { evidenceOf } from '../world/evidence.ts';
import { commandList, ZERO } from '../world/git-bytes.ts';
import { clone, remoteOf, runGit, startGitWorld } from '../world/git-world.ts';
import { listAuditRows } from '../world/rows.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { sized } from '../world/runner/thorough.ts';
import { git } from '../world/servers/git-host.ts';
import { newFolder, ONE_STORE, postgresNote } from '../world/stores.ts';
import { ALLOW_ALL, shared } from '../world/world.ts';

const MIB = 1024 * 1024;
/** Two seconds, plus a margin for a loaded machine. */
const SOON_MS = scaledTimeout(3_500);
const RESULT = { 'content-type': 'application/x-git-receive-pack-result' };
const PUSHED = [{ ref: 'refs/heads/agent/x', action: 'create' }];

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as (options?: { type: 'minor' }) => void;
/** Bytes of buffers that are still referenced in this process. */
function bufferBytes(): number {
  collect();
  // V8 frees buffers in a separate thread after a collection; the next collection waits for it, also one of new objects only.
  collect({ type: 'minor' });
  return process.memoryUsage().arrayBuffers;
}

function makeCommit(folder: string, bytes: number): void {
  writeFileSync(join(folder, 'random.bin'), randomBytes(bytes));
  git(folder, '-c', 'core.compression=0', 'add', '.');
  git(folder, 'commit', '-qm', 'large');
}

/** The head and the first bytes of a push with `bytes` in total. */
function pushHead(agent: TestAgent, bytes: number): string {
  const head = [
    'POST /git/acme/app/git-receive-pack HTTP/1.1',
    'Host: localhost',
    `Authorization: Basic ${Buffer.from(`x:${agent.token()}`).toString('base64')}`,
    'Content-Type: application/x-git-receive-pack-request',
    `Content-Length: ${bytes}`,
    '\r\n',
  ].join('\r\n');
  return `${head}${commandList([`${ZERO} ${'a'.repeat(40)} refs/heads/agent/x\0 report-status`])}PACK`;
}

describe.each(ONE_STORE)(`long git requests on %s${postgresNote}`, (store) => {
  let agent: TestAgent;
  const given = shared(() => startGitWorld(store, { GIT_MAX_REQUEST_BYTES: '256MiB' }));
  beforeAll(async () => {
    given.host.repository('acme/app');
    agent = await given.agent();
  });
  beforeEach(async () => {
    given.host.answer = undefined;
    await given.world.forgive();
  });
  const rows = () => listAuditRows(given.world.db, given.organisation.id, { limit: 200 });
  const newest = async () => (await rows())[0]!;
  const flagsOf = ({ flags }: { flags: string | null }) => JSON.parse(flags ?? '{}');
  async function nothingIsLeft() {
    const { services } = given.world.running;
    await expect.poll(() => services.budget.held, { timeout: 5_000 }).toEqual({ calls: 0, bytes: 0 });
    await expect.poll(() => services.gitBodies.held).toEqual({ memory: 0, files: 0 });
    await expect.poll(async () => (await rows()).filter(({ state }) => state !== 'final')).toEqual([]);
    const run = readdirSync(join(given.world.environment.AGENT_BROKER_DATA!, 'run'));
    expect(run.filter((name) => name.startsWith('git-'))).toEqual([]);
  }
  async function begin(bytes: number): Promise<Socket> {
    const socket = connect(Number(new URL(given.world.running.baseUrl).port), '127.0.0.1');
    socket.on('error', () => {});
    onTestFinished(() => void socket.destroy());
    socket.write(pushHead(agent, bytes), 'latin1');
    socket.write(Buffer.alloc(300_000));
    return socket;
  }

  describe('a long push with a known length that is refused before its pack was read', () => {
    const BYTES = 20 * MIB;
    const limited = shared(() => given.agent({ constraints: { refs: ['main'] } }));

    test('git shows the refusal, and why', async () => {
      const folder = await clone(limited, 'acme/app');
      makeCommit(folder, BYTES);
      const config = { 'http.postBuffer': String(2 * BYTES), 'core.compression': '0' };
      const run = await runGit(['push', remoteOf(limited, 'acme/app'), 'HEAD:agent/x'], { folder, config });
      expect(run.stderr).toContain(
        'remote: agent-broker: repo_not_allowed - acme/app: refs/heads/agent/x is not among',
      );
      expect(run.stderr).toContain('! [remote rejected] HEAD -> agent/x (repo_not_allowed)');
      expect(run.stderr).not.toContain('RPC failed');
      await nothingIsLeft();
    });

    test.each<[string, () => string, number]>([
      ['by its refs', () => pushHead(limited, BYTES), 403],
      ['as malformed', () => pushHead(limited, BYTES).replace('refs/heads/agent/x', 'refs/heads/agent..x'), 400],
    ])('%s: the rest of the body is skipped, and the connection stays usable', async (_, beginning, status) => {
      const socket = connect(Number(new URL(given.world.running.baseUrl).port), '127.0.0.1');
      onTestFinished(() => void socket.destroy());
      let answers = '';
      socket.on('data', (piece) => {
        answers += piece;
      });
      const [head, body = ''] = beginning().split('\r\n\r\n');
      socket.write(`${head}\r\n\r\n${body}`, 'latin1');
      await expect.poll(() => answers).toContain(`HTTP/1.1 ${status} `);
      socket.write(Buffer.alloc(BYTES - body.length));
      socket.write('GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
      await once(socket, 'close');
      expect([...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, one]) => Number(one))).toEqual([status, 200]);
      await nothingIsLeft();
    });
  });

  test('a push whose client disconnects in the middle', async () => {
    const begun = Promise.withResolvers<void>();
    given.host.answer = (request) => request.once('data', () => begun.resolve());
    const socket = await begin(5 * MIB);
    await begun.promise;
    socket.destroy();
    await expect.poll(() => given.host.connections(), { timeout: 5_000 }).toBe(0);
    await nothingIsLeft();
    const row = await newest();
    expect(row).toMatchObject({ result: 'errored', method: 'POST' });
    expect(flagsOf(row)).toMatchObject({ pushed_refs: PUSHED, outcome: 'unknown' });
    expect((await evidenceOf(given.world, agent, row.id)).payload.pushed_refs).toEqual(PUSHED);
  });

  test('a push that the code host cuts, or answers before it is complete', async () => {
    given.host.answer = (request) => request.once('data', () => request.socket.destroy());
    const cut = await begin(5 * MIB);
    expect(String((await once(cut, 'data'))[0])).toMatch(
      /^HTTP\/1.1 502 [\s\S]*upstream_unreachable - acme\/app: [^\n]*fetch before/,
    );
    expect(flagsOf(await newest())).toMatchObject({ pushed_refs: PUSHED, outcome: 'unknown' });

    given.host.answer = (_, response) => response.writeHead(403).end();
    const early = await begin(5 * MIB);
    expect(String((await once(early, 'data'))[0])).toMatch(/^HTTP\/1.1 502 [\s\S]*upstream_auth_failed - acme\/app/);
    expect(await newest()).toMatchObject({ result: 'errored', reason: 'upstream_auth_failed', upstream_status: 403 });
    await nothingIsLeft();
  });

  test('a push whose answer is cut has an unknown outcome', async () => {
    given.host.answer = (request, response) => {
      request.resume();
      request.on('end', () => {
        response.writeHead(200, RESULT);
        response.write('0030');
        setTimeout(() => response.destroy(), 30);
      });
    };
    const socket = await begin(Buffer.byteLength(pushHead(agent, 0).split('\r\n\r\n')[1]!) + 300_000);
    socket.resume();
    await once(socket, 'close');
    const row = await newest();
    expect(row).toMatchObject({ result: 'errored', reason: 'outcome_unknown', upstream_status: 200 });
    expect(flagsOf(row)).toMatchObject({ ended: 'upstream_closed', pushed_refs: PUSHED });
    await nothingIsLeft();
  });

  const suspend = (one: TestAgent) =>
    given.organisation.ask('POST', `/owner/agents/${one.agentId}/suspend`, { reason: 'enough' });

  test('MR-08 an agent suspended in the middle of a clone: git gets nothing, and the connection to the code host is closed', async () => {
    // A different name at each attempt, so that the content differs too.
    const large = `acme/large-${randomBytes(4).toString('hex')}`;
    given.host.repository(large, { files: { 'random.txt': randomBytes(MIB).toString('hex') } });
    const suspended = await given.agent();
    const begun = Promise.withResolvers<void>();
    let written = 0;
    given.host.answer = (request, response) => {
      if (request.method === 'GET') return false;
      // After the beginning of the pack (not of the refs listed before it) one piece a second, without end.
      const write = response.write.bind(response) as (piece: Buffer) => boolean;
      const later: Buffer[] = [];
      const timer = setInterval(() => {
        const piece = later.shift();
        if (piece) write(piece);
      }, 1_000);
      response.once('close', () => clearInterval(timer));
      response.write = ((piece: Buffer) => {
        written += piece.length;
        if (written <= 256 * 1024) return write(piece);
        later.push(piece);
        begun.resolve();
        return true;
      }) as typeof response.write;
      const end = response.end.bind(response);
      response.end = (() => (later.length === 0 ? end() : response)) as typeof response.end;
      return false;
    };
    const target = join(newFolder(), 'work');
    const cloning = runGit(['clone', '-q', remoteOf(suspended, large), target]);
    await begun.promise;
    const began = performance.now();
    expect((await suspend(suspended)).status).toBe(200);
    const run = await cloning;
    expect(performance.now() - began).toBeLessThan(SOON_MS);
    expect([run.code, run.stderr]).toEqual([128, expect.stringMatching(/RPC failed|early EOF|unexpected disconnect/)]);
    expect(existsSync(target)).toBe(false);
    await expect.poll(() => given.host.connections()).toBe(0);
    await nothingIsLeft();
    const row = (await rows()).find(({ path }) => path?.endsWith('git-upload-pack'))!;
    expect(row).toMatchObject({ result: 'allowed', reason: 'approved', upstream_status: 200 });
    expect(flagsOf(row)).toMatchObject({ ended: 'access_ended', ended_because: 'agent_suspended' });
    expect(flagsOf(row).answer_bytes).toBeGreaterThan(0);
    const next = await runGit(['ls-remote', remoteOf(suspended, large)]);
    expect(next.stderr).toContain('agent_halted');
  });

  test('an agent suspended while its push waits for the code host: the refs may have changed', async () => {
    const suspended = await given.agent();
    const folder = await clone(suspended, 'acme/app');
    makeCommit(folder, 100_000);
    const whole = Promise.withResolvers<void>();
    given.host.answer = (request) => {
      if (request.method === 'GET' || request.headers['content-length'] === '4') return false;
      request.resume().on('end', () => whole.resolve());
      return undefined;
    };
    const pushing = runGit(['push', remoteOf(suspended, 'acme/app'), 'HEAD:agent/x'], { folder });
    await whole.promise;
    const began = performance.now();
    await suspend(suspended);
    const run = await pushing;
    expect(performance.now() - began).toBeLessThan(SOON_MS);
    expect([run.code, run.stderr]).toEqual([1, expect.stringMatching(/agent_halted[\s\S]*may have been made/)]);
    await expect.poll(() => given.host.connections()).toBe(0);
    await nothingIsLeft();
    const row = await rows().then((all) => all.find(({ path }) => path?.endsWith('git-receive-pack'))!);
    expect(row).toMatchObject({ result: 'errored', reason: 'upstream_unreachable' });
    expect(mayHaveActed(row)).toBe(true);
    const flags = { outcome: 'unknown', ended: 'access_ended', ended_because: 'agent_suspended', pushed_refs: PUSHED };
    expect(flagsOf(row)).toMatchObject(flags);
    expect((await evidenceOf(given.world, suspended, row.id)).payload.pushed_refs).toEqual(PUSHED);
  });

  test('an agent suspended during its upload: nothing is forwarded', async () => {
    const suspended = await given.organisation.agent({
      keys: makeKeyPair(),
      rules: ALLOW_ALL,
      grants: { codehost: { scopeList: ['codehost:contents.write'] } },
    });
    given.host.seen.length = 0;
    const go = Promise.withResolvers<void>();
    async function* slowly() {
      yield Buffer.from(pushHead(suspended, 0).split('\r\n\r\n')[1]!, 'latin1');
      await go.promise;
      yield Buffer.alloc(1_000);
    }
    const pushing = fetch(`${given.world.running.baseUrl}/git/acme/app/git-receive-pack`, {
      method: 'POST',
      headers: {
        authorization: `Basic ${btoa(`x:${suspended.token()}`)}`,
        'content-type': 'application/x-git-receive-pack-request',
      },
      body: slowly() as unknown as ReadableStream,
      duplex: 'half',
    } as RequestInit);
    await expect.poll(() => given.world.running.services.budget.held.calls).toBe(1);
    expect((await given.organisation.ask('POST', `/owner/agents/${suspended.agentId}/suspend`, {})).status).toBe(200);
    go.resolve();
    const answer = await pushing;
    expect([answer.status, await answer.text()]).toEqual([403, expect.stringContaining('agent_halted')]);
    expect(given.host.seen).toEqual([]);
    expect(flagsOf(await newest()).pushed_refs).toEqual(PUSHED);
  });

  test('concurrent requests each get their own answer', async () => {
    const names = Array.from({ length: sized(3, 6) }, (_, i) => `acme/many${i}`);
    for (const name of names) given.host.repository(name, { files: { 'name.txt': name } });
    const folders = await Promise.all(names.map((name) => clone(agent, name)));
    const pushed = await Promise.all(
      folders.map((folder, i) => {
        makeCommit(folder, 200_000);
        return runGit(['push', remoteOf(agent, names[i]!), 'HEAD:agent/x'], { folder });
      }),
    );
    expect(pushed.map(({ code, stderr }) => [code, stderr.includes('error')])).toEqual(names.map(() => [0, false]));
    await nothingIsLeft();
  });

  // Four times the size of the windows of both connections plus git's own pieces.
  const LARGE = sized(16, 100);
  test(`${LARGE} MiB are pushed completely, chunked and with a known length, and not buffered`, {
    timeout: 360_000,
  }, async () => {
    const folder = await clone(agent, 'acme/app');
    makeCommit(folder, LARGE * MIB);
    for (const [how, postBuffer] of [
      ['chunks', '1048576'],
      ['whole', '268435456'],
    ]) {
      // A different name at each attempt: a second push of the same content would send nothing.
      const name = `acme/${how}-${randomBytes(4).toString('hex')}`;
      const bare = given.host.repository(name);
      const main = git(bare, 'rev-parse', 'main');
      // Memory of the broker and of the code host, which are in this process: a fully buffered body shows either when the host has its
      // first bytes or when it has its last ones. Unreferenced buffers are collected before.
      const before = bufferBytes();
      const looks = [1, LARGE - 1];
      const kept: number[] = [];
      given.host.answer = (request) => {
        let came = 0;
        // Only once git reads it: an earlier listener would consume the stream.
        setImmediate(() =>
          request.on('data', (piece: Buffer) => {
            came += piece.length;
            if (came >= (looks[kept.length] ?? Number.POSITIVE_INFINITY) * MIB) kept.push(bufferBytes() - before);
          }),
        );
        return false;
      };
      const config = { 'http.postBuffer': postBuffer!, 'core.compression': '0' };
      const run = await runGit(['push', remoteOf(agent, name), 'HEAD:agent/x'], { folder, config });
      expect(run, run.stderr).toMatchObject({ code: 0 });
      expect(kept).toHaveLength(looks.length);
      expect(Math.max(...kept)).toBeLessThan((LARGE * 3 * MIB) / 4);
      expect(git(bare, 'rev-parse', 'agent/x')).toBe(git(folder, 'rev-parse', 'HEAD'));
      await nothingIsLeft();
      // A long fetch too, once: the other clone leaves out the large branch.
      const again = await clone(agent, name, ...(how === 'chunks' ? [] : ['--single-branch']));
      expect(git(again, 'rev-parse', 'HEAD')).toBe(main);
    }
  });

  test('a broker killed in the middle of a push: the row says what is known', async () => {
    await given.world.running.stop();
    const environment = { ...given.world.environment, PORT: new URL(given.world.running.baseUrl).port };
    const child = spawnBroker(environment);
    given.host.answer = (request) => {
      request.resume();
      request.once('data', () => child.signal('SIGKILL'));
    };
    expect(await child.serve(), child.output().stderr).toBe(given.world.running.baseUrl);
    await begin(5 * MIB);
    expect(await child.ended).toEqual({ code: null, signal: 'SIGKILL' });
    await given.world.restart();
    const row = await newest();
    expect(row).toMatchObject({ state: 'final', result: 'errored', reason: 'outcome_unknown' });
    expect(flagsOf(row)).toMatchObject({ ended: 'unknown', pushed_refs: PUSHED });
    expect((await evidenceOf(given.world, agent, row.id)).payload.pushed_refs).toEqual(PUSHED);
  });
});
