/** Deduplication of calls without a delivered result: what is stored, which updates apply, and how long it lasts. */
import { spawn } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fetch } from 'undici';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { storedRepeats } from '../../broker/http/mcp/repeats.ts';
import { purgeMcpRepeats } from '../../broker/store/mcp-repeats.ts';
import { repeatsOnDisk } from '../../mcp/stdio/repeats-on-disk.ts';
import { tolerantRepeats } from '../../mcp/stdio/tolerant-repeats.ts';
import { type Repeats, repeatsInMemory } from '../../mcp/tools/repeats.ts';
import { jsonPost } from '../world/agent.ts';
import { ROOT } from '../world/checkout.ts';
import { browserOf } from '../world/mcp/person.ts';
import { callMcp, OAuthClient } from '../world/oauth-client.ts';
import { newFolder, ONE_STORE, postgresNote, STORES, type StoreKind } from '../world/stores.ts';
import { HOUR_MS } from '../world/times.ts';
import { DEMO_RULES, DEMO_SCOPES, givenWorld, shared, startWorld } from '../world/world.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came.
type Json = any;

/** A store of pending calls; `later` moves its clock, and lets its background jobs run. */
type Memory = { repeats: Repeats; later?: (ms: number) => Promise<void> };

const inStore = (store: StoreKind) => async (): Promise<Memory> => {
  const world = await startWorld(store);
  const { services, broker } = world.running;
  const { agentId } = await (await world.organisation()).agent();
  const rows = await services.facts(agentId, '', '127.0.0.1');
  const who = { kind: 'agent', rows, agent: rows[0]!, source: '127.0.0.1', sessionId: null } as const;
  const later = async (ms: number) => {
    world.clock.skewMs += ms;
    await purgeMcpRepeats(broker.store.db, broker.clock());
  };
  return { repeats: storedRepeats(services, who, (error) => expect.fail(`${error}`)), later };
};

const onDisk = async (): Promise<Memory> => {
  let skewMs = 0;
  const later = async (ms: number) => {
    skewMs += ms;
  };
  return { repeats: repeatsOnDisk(newFolder(), () => Date.now() + skewMs), later };
};

const onDiskThatMayFail = async (): Promise<Memory> => {
  const { repeats, ...rest } = await onDisk();
  return { ...rest, repeats: tolerantRepeats(repeats, repeatsInMemory(), (error) => expect.fail(error.message)) };
};

const MEMORIES: [string, () => Promise<Memory>][] = [
  ['in memory', async () => ({ repeats: repeatsInMemory() })],
  ['on disk', onDisk],
  ['on disk that may fail', onDiskThatMayFail],
  ...STORES.map((store): [string, () => Promise<Memory>] => [`on ${store}${postgresNote}`, inStore(store)]),
];

describe.each(MEMORIES)('a pending call %s', (_name, make) => {
  let repeats: Repeats;
  let later: Memory['later'];
  beforeAll(async () => {
    ({ repeats, later } = await make());
  });
  let calls = 0;
  const another = () => (++calls).toString(16).padStart(64, '0');

  test('is not changed by late updates for an earlier call with the same hash', async () => {
    const hash = another();
    const first = await repeats.begin(hash, 'one');
    await repeats.end(hash, first.key);
    // A late update does not restore the entry either.
    await repeats.held(hash, first.key, 'approval-1');
    expect(await repeats.find(hash)).toBeUndefined();
    const next = await repeats.begin(hash, 'two');
    expect(next).toMatchObject({ isNew: true, reason: 'two' });
    expect(next.key).not.toBe(first.key);
    await repeats.end(hash, first.key);
    await repeats.held(hash, first.key, 'approval-1');
    await repeats.drop(hash, first);
    const found = await repeats.find(hash);
    expect([found?.key, found?.approvalId]).toEqual([next.key, undefined]);
    await repeats.held(hash, next.key, 'approval-2');
    expect(await repeats.find(hash)).toMatchObject({ key: next.key, approvalId: 'approval-2' });
    await repeats.end(hash, next.key);
    expect(await repeats.find(hash)).toBeUndefined();
  });

  test('is new only once, and keeps the first reason; a refusal removes it only if no other attempt has joined', async () => {
    const hash = another();
    const alone = await repeats.begin(hash, 'one');
    await repeats.drop(hash, alone);
    expect(await repeats.find(hash)).toBeUndefined();
    const first = await repeats.begin(hash, 'two');
    expect(first).toMatchObject({ isNew: true, reason: 'two' });
    const again = await repeats.begin(hash, 'three');
    expect(again).toMatchObject({ isNew: false, reason: 'two', key: first.key });
    await repeats.drop(hash, first);
    expect(await repeats.find(hash)).toMatchObject({ key: first.key });
  });

  test('has one key for all concurrent attempts, and that key is the stored one', async () => {
    for (let turn = 0; turn < 20; turn++) {
      const hash = another();
      const first = await repeats.begin(hash, undefined);
      // An attempt that begins while the first one is delivered either joins that, or creates a new entry that is stored.
      const [, ...begun] = await Promise.all([
        repeats.end(hash, first.key),
        ...Array.from({ length: 4 }, () => repeats.begin(hash, undefined)),
      ]);
      const found = await repeats.find(hash);
      for (const { key } of begun) expect([first.key, found?.key]).toContain(key);
      expect(begun.filter(({ isNew }) => isNew)).toHaveLength(found === undefined ? 0 : 1);
    }
  });

  test('is kept for a day after its last attempt, and for weeks once it is held', async () => {
    if (!later) return;
    const [hash, held] = [another(), another()];
    const { key } = await repeats.begin(hash, undefined);
    const waits = await repeats.begin(held, undefined);
    await repeats.held(held, waits.key, 'approval-3');
    await later(23 * HOUR_MS);
    expect(await repeats.begin(hash, undefined)).toMatchObject({ key, isNew: false });
    // Submitted again a moment ago with the same key, so it may be in progress.
    await later(2 * HOUR_MS);
    expect(await repeats.begin(hash, undefined)).toMatchObject({ key, isNew: false });
    await repeats.begin(held, undefined);
    await later(25 * HOUR_MS);
    expect(await repeats.find(hash)).toBeUndefined();
    expect(await repeats.begin(hash, undefined)).toMatchObject({ isNew: true });
    expect(await repeats.find(held)).toMatchObject({ key: waits.key, approvalId: 'approval-3' });
  });
});

test('two processes that begin the same calls in one folder get the same keys', async () => {
  const folder = newFolder();
  const MANY = 400;
  const script = join(ROOT, 'test/world/runner/begin-repeats.ts');
  const racers = Array.from({ length: 2 }, () => {
    const child = spawn(process.execPath, [script, folder, String(MANY)], { stdio: ['pipe', 'pipe', 'inherit'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    return { child, line: async () => String((await lines.next()).value) };
  });
  for (const { line } of racers) expect(await line()).toBe('ready');
  for (const { child } of racers) child.stdin.write('go\n');
  const [one, two] = await Promise.all(racers.map(async ({ line }) => JSON.parse(await line())));
  expect(one).toHaveLength(MANY);
  expect(two).toEqual(one);
});

test('when the folder fails while a call is in progress, the process keeps the call’s key in memory', async () => {
  const folder = newFolder();
  const told: string[] = [];
  const repeats = tolerantRepeats(repeatsOnDisk(folder), repeatsInMemory(), ({ message }) => told.push(message));
  const over = await repeats.begin('a', 'why');
  await repeats.end('a', over.key);
  const { key } = await repeats.begin('b', 'why');
  rmSync(folder, { recursive: true });
  writeFileSync(folder, 'a file, and no folder');
  expect(await repeats.begin('b', 'again')).toMatchObject({ key, reason: 'why', isNew: false });
  await repeats.held('b', key, 'approval');
  expect(await repeats.find('b')).toMatchObject({ key, approvalId: 'approval' });
  expect((await repeats.begin('a', 'why')).key).not.toBe(over.key);
  expect(told).toHaveLength(1);
});

describe.each(ONE_STORE)(`an interrupted write of a remote client, on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation({ rules: DEMO_RULES }));

  test('is made once, although the identical write is refused while the first is in progress', async () => {
    const name = `cut-${store}`;
    const grants = [{ platformId: 'demo', scopes: Object.keys(DEMO_SCOPES) }];
    const client = new OAuthClient(world);
    const { access_token: token } = await client.tokens(browserOf(world, organisation.owner), {}, { name, grants });
    const { agents } = (await organisation.ask('GET', '/owner/agents')).body;
    const { id } = agents.find((one: Json) => one.name === name);
    const args = { platform: 'demo', scope: 'demo:write', endpoint: '/items/1', method: 'PATCH', data: { name } };
    const message = { method: 'tools/call', params: { name: 'write_platform', arguments: args } };
    const { baseUrl } = world.running;
    const write = async (): Promise<Json> => {
      const { text } = await callMcp(baseUrl, token, message);
      const line = text.split('\n').find((one) => one.includes('"result"')) ?? text;
      return JSON.parse(line.replace(/^data: /, '')).result.structuredContent;
    };

    const sent = () => world.upstream.seen.filter(({ body }) => body.includes(name)).length;
    const arrived = Promise.withResolvers<() => void>();
    world.upstream.answer = (_request, response) => {
      const finish = () => response.writeHead(200, { 'content-type': 'application/json' }).end('{"made":true}');
      // Lets a second call through immediately, if one is sent.
      if (sent() > 1) finish();
      else arrived.resolve(finish);
    };
    const connection = new AbortController();
    const cut = fetch(`${baseUrl}/mcp`, {
      ...jsonPost(
        { jsonrpc: '2.0', id: 1, ...message },
        {
          accept: 'application/json, text/event-stream',
          'mcp-protocol-version': '2025-11-25',
          authorization: `Bearer ${token}`,
        },
      ),
      signal: connection.signal,
    }).then((response) => response.text());
    const finish = await arrived.promise;
    connection.abort();
    await expect(cut).rejects.toThrow();

    // One call waits for the result of the first, another arrives while the agent is suspended.
    const waiting = write();
    await organisation.ask('POST', `/owner/agents/${id}/suspend`, { reason: 'a look' });
    for (const refused of await Promise.all([waiting, write()])) {
      expect(refused).toMatchObject({ status: 'halted', code: 'agent_suspended' });
      expect(refused.next).toMatch(/^Stop now.*exactly the same arguments.*not made twice/s);
    }
    await organisation.ask('POST', `/owner/agents/${id}/resume`, {});
    const again = write();
    finish();
    expect(await again).toMatchObject({ status: 'answered', data: { made: true } });
    expect(sent()).toBe(1);
    expect((await again).detail).toContain('Nothing was sent again');
    // The result was delivered, so an identical call is a new one.
    world.upstream.answer = undefined;
    expect((await write()).detail).toBeUndefined();
    expect(sent()).toBe(2);
  });
});
