import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { uuidv4 } from '../../broker/crypto/ids.ts';
import { rotateKeyFile } from '../../broker/crypto/master-key-file.ts';
import { sealedWith } from '../../broker/crypto/seal.ts';
import { readConfig } from '../../broker/environment/config.ts';
import { KEY_USES, loadKeys, PUBLISHED_AHEAD_MS, retireFollowedKeys } from '../../broker/keys.ts';
import { type Running, serve } from '../../broker/process/main.ts';
import { runFile } from '../../broker/process/run-file.ts';
import { listConnections } from '../../broker/store/connections.ts';
import { listSealed, SEALED } from '../../broker/store/sealed.ts';
import type { Store } from '../../broker/store/store.ts';
import { type Answer, expectStatus, jsonPost, send, type TestAgent } from '../world/agent.ts';
import { spawnBroker } from '../world/broker-process.ts';
import { auditIdOf, evidenceOf, expectEnvelope, verifyReceipt, withoutCalls } from '../world/evidence.ts';
import { makeRandom } from '../world/random.ts';
import { sized } from '../world/runner/thorough.ts';
import { everythingStored, placesOf, query } from '../world/store-contents.ts';
import { newDatabase, newFolder, ONE_STORE, postgresNote, STORES, type StoreKind } from '../world/stores.ts';
import { CANARY, type Organisation, startWorld, type World } from '../world/world.ts';

const READ = { platform: 'demo', endpoint: '/items/1', method: 'GET', scope: 'demo:read' };
const WRITE = { ...READ, method: 'PATCH', scope: 'demo:write', data: { a: 1 } };
const HELD = { ...READ, endpoint: '/items', method: 'POST', scope: 'demo:write', data: { a: 1 } };

/** How often a rotation of the master key is killed. */
const KILLS = sized(3, 8);

const newKey = () => randomBytes(32).toString('base64');
const keyFileOf = (environment: Record<string, string>) => join(environment.AGENT_BROKER_DATA!, 'keys', 'master.key');
const linesOf = (path: string) => readFileSync(path, 'utf8').trimEnd().split('\n');

/** Rotates a key as the command line does. */
function rotate({ baseUrl, services }: Running, use: string): Promise<Answer> {
  return send(
    `${baseUrl}/owner/keys/rotate`,
    jsonPost({ use }, { authorization: `Bearer ${services.local.token.reveal()}` }),
  );
}

/** Returns how many stored values are sealed under each master key. */
async function sealedUnder(store: Store): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (const column of SEALED)
    for (const { sealed } of await listSealed(store.db, column, '', 10_000))
      counts.set(sealedWith(sealed), (counts.get(sealedWith(sealed)) ?? 0) + 1);
  return counts;
}

async function seeded(store: StoreKind, environment: Record<string, string> = {}) {
  const world = await startWorld(store, environment);
  const organisation = await world.organisation();
  await organisation.platform();
  return { world, organisation, agent: await organisation.agent() };
}

describe.each(ONE_STORE)(`the master key at the start on %s${postgresNote}`, (store) => {
  let world: World;
  let agent: TestAgent;
  let keyFile: string;
  let key: string;
  beforeAll(async () => {
    ({ world, agent } = await seeded(store));
    keyFile = keyFileOf(world.environment);
    key = readFileSync(keyFile, 'utf8');
    await world.running.stop();
    world.environment.PORT = new URL(world.running.baseUrl).port;
  });
  beforeEach(() => {
    writeFileSync(keyFile, key, { mode: 0o600 });
    chmodSync(keyFile, 0o600);
  });

  /** Expects a start to be refused with this message, without changing, creating or leaving open anything. */
  async function refusedStart(different: Record<string, string>, words: RegExp, start = startHere): Promise<void> {
    const environment = { ...world.environment, ...different };
    const state = async () => [
      await query(environment, 'select * from meta order by name'),
      readdirSync(environment.AGENT_BROKER_DATA!, { recursive: true }).sort(),
    ];
    const before = await state();
    const said = await start(environment);
    expect(said).toMatch(words);
    expect(said).not.toContain(key.trim());
    expect(await state()).toEqual(before);
  }

  const startHere = async (environment: Record<string, string>): Promise<string> => {
    const error = await serve(readConfig(environment)).catch((thrown: Error) => thrown);
    return (error as Error).message;
  };

  const startProcess = async (environment: Record<string, string>): Promise<string> => {
    const child = spawnBroker(environment);
    expect(await child.serve()).toBeUndefined();
    expect(await child.ended).toEqual({ code: 1, signal: null });
    expect(child.output().stdout).toBe('loaded\n');
    return child.output().stderr;
  };

  test('ST-08 a wrong key is rejected with a readable error', async () => {
    writeFileSync(keyFile, `${newKey()}\n`);
    await refusedStart({}, /not the master key that the store was sealed with, so nothing was started/);
    await refusedStart({}, /not the master key that the store was sealed with/, startProcess);
    await refusedStart({ AGENT_BROKER_MASTER_KEY: newKey() }, /not the master key that the store was sealed with/);
  });

  test('ST-08 a missing key is an error, and no new one is created while sealed values exist', async () => {
    rmSync(keyFile);
    await refusedStart({}, /There is no master key: .* does not exist, and no new one is created/);
    expect(existsSync(keyFile)).toBe(false);
  });

  test.each<[string, string, RegExp]>([
    ['is all zeros', `${Buffer.alloc(32).toString('base64')}\n`, /it is all zeros/],
    ['is too short', 'c2hvcnQ=\n', /is not a master key: it must be 32 bytes in base64/],
    ['is empty', '', /is not a master key/],
  ])('KEY-06 a key file that %s is refused', async (_what, text, words) => {
    writeFileSync(keyFile, text);
    await refusedStart({}, words);
  });

  test('a key file that is readable by others is rejected', async () => {
    chmodSync(keyFile, 0o644);
    await refusedStart({}, /its permissions let other users access it. Run: chmod 600/);
  });

  test('the twin: the right key is accepted, from the file or from the environment', async () => {
    for (const different of [{}, { AGENT_BROKER_MASTER_KEY: key.trim() }]) {
      const running = await serve(readConfig({ ...world.environment, ...different }));
      expect((await agent.act(READ)).status).toBe(200);
      await running.stop();
    }
  });
});

describe('a first start', () => {
  test.each<[string, Record<string, string>, RegExp]>([
    ['a key that is none', { AGENT_BROKER_MASTER_KEY: 'password' }, /AGENT_BROKER_MASTER_KEY is not a master key/],
    ['a key of zeros', { AGENT_BROKER_MASTER_KEY: Buffer.alloc(32).toString('base64') }, /it is all zeros/],
  ])('KEY-06 with %s creates no files', async (_what, environment, words) => {
    const AGENT_BROKER_DATA = join(newFolder(), 'data');
    const config = readConfig({ PORT: '0', LOG_LEVEL: 'silent', AGENT_BROKER_DATA, ...environment });
    await expect(serve(config)).rejects.toThrow(words);
    expect(existsSync(AGENT_BROKER_DATA)).toBe(false);
  });

  test('creates a key file of mode 0600 beside the store, and reports it once', async () => {
    const environment = { PORT: '0', LOG_LEVEL: 'silent', AGENT_BROKER_DATA: newFolder() };
    const first = await serve(readConfig(environment));
    expect(first.masterKeyCreated).toBe(true);
    expect(statSync(keyFileOf(environment)).mode & 0o777).toBe(0o600);
    await first.stop();
    const second = await serve(readConfig(environment));
    expect(second.masterKeyCreated).toBe(false);
    await second.stop();
  });

  test.runIf(STORES.includes('postgres'))(
    'of two replicas with separate key files one creates its key, the other does not',
    async () => {
      const DATABASE_URL = await newDatabase();
      const folders = [newFolder(), newFolder()];
      const starts = await Promise.allSettled(
        folders.map((AGENT_BROKER_DATA) =>
          serve(readConfig({ PORT: '0', LOG_LEVEL: 'silent', DATABASE_URL, AGENT_BROKER_DATA })),
        ),
      );
      const running = starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
      for (const each of running) onTestFinished(() => each.stop());
      expect(running).toHaveLength(1);
      const refused = starts.find((start) => start.status === 'rejected')!;
      expect(String(refused.reason)).toMatch(
        /not the master key that the store was sealed with|There is no master key/,
      );
      expect(folders.filter((folder) => existsSync(join(folder, 'keys', 'master.key')))).toHaveLength(1);
    },
  );

  test.runIf(STORES.includes('postgres'))(
    'replicas that start concurrently agree on one signing key per use',
    async () => {
      const environment = {
        PORT: '0',
        LOG_LEVEL: 'silent',
        DATABASE_URL: await newDatabase(),
        AGENT_BROKER_MASTER_KEY: newKey(),
      };
      const running = await Promise.all(
        Array.from({ length: 4 }, () => serve(readConfig({ ...environment, AGENT_BROKER_DATA: newFolder() }))),
      );
      for (const each of running) onTestFinished(() => each.stop());
      for (const use of KEY_USES) {
        const kids = running.map(({ broker }) => broker.keys.signer(use, Date.now()).kid);
        expect(new Set(kids).size, use).toBe(1);
        expect(running[0]!.broker.keys.set(use).entries).toHaveLength(1);
      }
    },
  );
});

describe.each(ONE_STORE)(`a sealed credential on %s${postgresNote}`, (store) => {
  let world: World;
  let organisation: Organisation;
  let agent: TestAgent;
  beforeAll(async () => {
    ({ world, organisation, agent } = await seeded(store));
    await organisation.platform({ id: 'other', secret: 'another-secret-0123456789' });
  });

  const sealedOf = async (platformId: string): Promise<Buffer> => {
    const row = await world.db
      .selectFrom('connections')
      .select('credential')
      .where('organisation_id', '=', organisation.id)
      .where('platform_id', '=', platformId)
      .executeTakeFirstOrThrow();
    return Buffer.from(row.credential!);
  };

  const put = async (platformId: string, credential: Uint8Array): Promise<void> => {
    await world.db
      .updateTable('connections')
      .set({ credential })
      .where('organisation_id', '=', organisation.id)
      .where('platform_id', '=', platformId)
      .execute();
  };

  const flipped = (bytes: Buffer, at: number): Buffer => {
    const copy = Buffer.from(bytes);
    copy[at < 0 ? copy.length + at : at]! ^= 1;
    return copy;
  };

  test.each<[string, (own: Buffer, other: Buffer) => Buffer]>([
    ['KEY-01 moved from another row', (_own, other) => other],
    ['KEY-02 with one bit of the wrapped key flipped', (own) => flipped(own, 30)],
    ['KEY-02 with one bit of the nonce flipped', (own) => flipped(own, 70)],
    ['KEY-02 with one bit of the ciphertext flipped', (own) => flipped(own, 85)],
    ['KEY-02 with one bit of the tag flipped', (own) => flipped(own, -1)],
    ['KEY-02 sealed under a master key that is not here', (own) => flipped(own, 3)],
    ['that is no sealed value', () => Buffer.from('a token as somebody typed it into the database')],
    ['that is cut off', (own) => own.subarray(0, 60)],
  ])('%s cannot be decrypted: answer 503, no call, and an audit row with the reason', async (_what, change) => {
    const own = await sealedOf('demo');
    await put('demo', change(own, await sealedOf('other')));
    try {
      for (const call of [READ, WRITE, HELD]) {
        const answer = await withoutCalls(world, () => agent.act(call));
        expectEnvelope(answer, 503, 'credential_unreadable');
        expect(answer.text).not.toMatch(/CANARY|another-secret|SealError/);
        const { row } = await evidenceOf(world, agent, auditIdOf(answer));
        expect(row).toMatchObject({ result: 'errored', reason: 'credential_unreadable', upstream_status: null });
      }
    } finally {
      await put('demo', own);
    }
    expect((await agent.act(READ)).status).toBe(200);
  });

  test('is not in plain text in any stored data', async () => {
    expect((await agent.act(WRITE, { 'idempotency-key': 'kept' })).status).toBe(200);
    expect((await agent.act(HELD)).status).toBe(202);
    const stored = await everythingStored(world.environment);
    expect(placesOf(CANARY, stored)).toEqual([]);
    expect(placesOf('another-secret-0123456789', stored)).toEqual([]);
    // The twin: a value stored in plain text is found.
    expect(placesOf(agent.agentId, stored).length).toBeGreaterThan(0);
  });
});

describe.each(ONE_STORE)(`signing keys on %s${postgresNote}`, (store) => {
  let world: World;
  let organisation: Organisation;
  let agent: TestAgent;
  beforeAll(async () => {
    ({ world, organisation, agent } = await seeded(store));
  });

  const published = async (path: string): Promise<string[]> => {
    const answer = await send(world.running.baseUrl + path, {});
    return answer.body.keys.map((jwk: { kid: string }) => jwk.kid);
  };

  const housekeeping = async (): Promise<void> => {
    const { broker } = world.running;
    await broker.keys.refresh();
    await retireFollowedKeys(broker.store, broker.keys, broker.clock());
    await broker.keys.refresh();
  };

  const privateHalves = async (): Promise<Record<string, boolean>> => {
    const rows = await world.db.selectFrom('signing_keys').select(['kid', 'private_key', 'retired_at']).execute();
    for (const row of rows) expect(row.private_key === null, row.kid).toBe(row.retired_at !== null);
    return Object.fromEntries(rows.map((row) => [row.kid, row.private_key !== null]));
  };

  test.each([
    ['evidence', '/.well-known/svc-receipt-keys.json'],
    ['issuing', '/v1/oauth/jwks.json'],
  ] as const)(
    'DI-03 MR-07 a new %s key is published before it signs; the old one stays published and cannot sign any more',
    async (use, path) => {
      const { broker } = world.running;
      const old = broker.keys.signer(use, broker.clock()).kid;
      const answer = await expectStatus(200, rotate(world.running, use));
      const { kid, signs_from } = answer.body;
      const lead = Date.parse(signs_from) - broker.clock();
      expect(lead).toBeGreaterThan(PUBLISHED_AHEAD_MS[use] - 5_000);
      expect((await published(path)).sort()).toEqual([kid, old].sort());
      const signer = () => broker.keys.signer(use, broker.clock()).kid;
      expect(signer()).toBe(old);
      world.clock.skewMs += lead - 5_000;
      await housekeeping();
      expect(signer()).toBe(old);
      world.clock.skewMs += 6_000;
      await housekeeping();
      // Another replica may lag by a minute, so both keys can sign.
      expect([signer(), await privateHalves()]).toMatchObject([kid, { [old]: true, [kid]: true }]);
      world.clock.skewMs += 3 * 60_000;
      await housekeeping();
      expect([signer(), await privateHalves()]).toMatchObject([kid, { [old]: false, [kid]: true }]);
      expect((await published(path)).sort()).toEqual([kid, old].sort());
      await world.restart();
      expect(world.running.broker.keys.signer(use, world.running.broker.clock()).kid).toBe(kid);
      expect((await published(path)).sort()).toEqual([kid, old].sort());
    },
  );

  test('DI-03 receipts of the old and of the new key verify with the key set published after the rotation', async () => {
    const before = await agent.act(READ);
    const old = (await evidenceOf(world, agent, auditIdOf(before))).receipt;
    await rotate(world.running, 'evidence');
    world.clock.skewMs += PUBLISHED_AHEAD_MS.evidence + 5 * 60_000;
    await housekeeping();
    const after = await expectStatus(200, agent.act(READ));
    const fresh = (await evidenceOf(world, agent, auditIdOf(after))).receipt;
    const kids = [(await verifyReceipt(world, old)).kid, (await verifyReceipt(world, fresh)).kid];
    expect(new Set(kids).size).toBe(2);
    expect((await privateHalves())[kids[0]!]).toBe(false);
  });

  test('receipt keys and bearer keys are published in separate sets', async () => {
    const evidence = await published('/.well-known/svc-receipt-keys.json');
    const issuing = await published('/v1/oauth/jwks.json');
    expect(evidence.filter((kid) => issuing.includes(kid))).toEqual([]);
    expect(evidence.length).toBeGreaterThan(0);
    expect(issuing.length).toBeGreaterThan(0);
  });

  test.each(['root', 'session'] as const)('a new %s key signs after its lead time', async (use) => {
    const old = world.running.broker.keys.signer(use, world.running.broker.clock()).kid;
    const session = (await organisation.ask('GET', '/owner/agents')).status;
    const { body } = await rotate(world.running, use);
    world.clock.skewMs += PUBLISHED_AHEAD_MS[use] + 4 * 60_000;
    await housekeeping();
    expect(world.running.broker.keys.signer(use, world.running.broker.clock()).kid).toBe(body.kid);
    expect(await privateHalves()).toMatchObject({ [old]: false, [body.kid]: true });
    expect([session, (await organisation.ask('GET', '/owner/agents')).status]).toEqual([200, 200]);
  });

  test('only the command line on this machine may rotate keys, neither owners nor agents', async () => {
    const ask = (headers: Record<string, string>) =>
      send(`${world.running.baseUrl}/owner/keys/rotate`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: '{"use":"evidence"}',
      });
    const before = await published('/.well-known/svc-receipt-keys.json');
    expect((await organisation.ask('POST', '/owner/keys/rotate', { use: 'evidence' })).status).toBe(401);
    expect((await ask({ authorization: `Bearer ${agent.token()}` })).status).toBe(401);
    expect((await ask({})).status).toBe(401);
    expect(await published('/.well-known/svc-receipt-keys.json')).toEqual(before);
  });

  test('ST-05 signing continues when the clock is set back to before the first key', async () => {
    const fresh = await startWorld(store);
    const kid = fresh.running.broker.keys.signer('evidence', Date.now()).kid;
    expect(fresh.running.broker.keys.signer('evidence', Date.now() - 3600_000).kid).toBe(kid);
    const { broker } = fresh.running;
    const again = await loadKeys(broker.store, broker.vault, {
      now: Date.now() - 3600_000,
      log: broker.log,
    });
    expect(again.set('evidence').entries.map((entry) => entry.kid)).toEqual([kid]);
  });
});

describe('rotating the master key of a key file', () => {
  let world: World;
  let agent: TestAgent;
  let organisation: Organisation;
  beforeEach(async () => {
    ({ world, agent, organisation } = await seeded('sqlite'));
  });

  test('KEY-03 re-encrypts all data keys while calls are made, and leaves only the new key in the file', async () => {
    const keyFile = keyFileOf(world.environment);
    const [oldKey] = linesOf(keyFile);
    const { vault, store } = world.running.broker;
    const oldId = vault.masterKeys().current.id;
    let over = false;
    const answers: Answer[] = [];
    const callers = Array.from({ length: sized(4, 10) }, async (_, caller) => {
      for (let call = 0; !over; call++) {
        answers.push(await agent.act(READ));
        answers.push(await agent.act(WRITE, { 'idempotency-key': `${caller}-${call}` }));
        if (call < 5) answers.push(await agent.act(HELD));
      }
    });
    while (answers.length < 20) await new Promise((resolve) => setTimeout(resolve, 5));
    const rotations: Answer[] = [];
    for (let count = 0; count < 3; count++) rotations.push(await rotate(world.running, 'master'));
    await vi.waitUntil(() => answers.length > 50, { timeout: 10_000 });
    over = true;
    await Promise.all(callers);
    expect(rotations.map(({ status, body }) => [status, body.use])).toEqual(Array(3).fill([200, 'master']));
    expect(rotations[0]!.body.rewrapped).toBeGreaterThan(4);
    expect(answers.filter(({ status }) => ![200, 202].includes(status)).map(({ text }) => text)).toEqual([]);
    expect(answers.length).toBeGreaterThan(50);
    const newId = vault.masterKeys().current.id;
    expect(newId).toBe(rotations[2]!.body.key_id);
    expect(newId).not.toBe(oldId);
    expect([...(await sealedUnder(store)).keys()]).toEqual([newId]);
    expect(linesOf(keyFile)).toHaveLength(1);
    expect(linesOf(keyFile)[0]).not.toBe(oldKey);
    expect(vault.masterKeys().previous).toEqual([]);
    // A stored response is replayed, so the sealed responses can be decrypted.
    expect((await agent.act(WRITE, { 'idempotency-key': '0-0' })).headers.get('idempotency-replayed')).toBe('true');
    await world.restart();
    expect((await agent.act(READ)).status).toBe(200);
    expect((await agent.act(WRITE, { 'idempotency-key': '0-0' })).headers.get('idempotency-replayed')).toBe('true');
    // The old key does not decrypt anything any more.
    await world.running.stop();
    writeFileSync(keyFile, `${oldKey}\n`);
    await expect(serve(readConfig(world.environment))).rejects.toThrow(/not the master key/);
  });

  test('KEY-03 stopped before anything was re-encrypted: the next start completes the rotation', async () => {
    const keyFile = keyFileOf(world.environment);
    rotateKeyFile(keyFile);
    expect(linesOf(keyFile)).toHaveLength(2);
    await world.restart();
    const { vault, store } = world.running.broker;
    expect(linesOf(keyFile)).toHaveLength(1);
    expect([...(await sealedUnder(store)).keys()]).toEqual([vault.masterKeys().current.id]);
    expect((await agent.act(READ)).status).toBe(200);
  });

  test('KEY-03 stopped half-way: all values stay readable, and the next start completes the rotation', async () => {
    const keyFile = keyFileOf(world.environment);
    for (let call = 0; call < 30; call++) await agent.act(WRITE, { 'idempotency-key': `k${call}` });
    const { broker } = world.running;
    const oldId = broker.vault.masterKeys().current.id;
    const keys = rotateKeyFile(keyFile);
    broker.vault.useMasterKeys(keys);
    // Half of a rotation, and then no further step, not even a regular stop.
    const [row] = await listConnections(broker.store.db, organisation.id);
    const place = { table: 'connections' as const, organisationId: organisation.id, rowId: row!.id };
    const again = broker.vault.seal(place, broker.vault.open(place, row!.credential!));
    await broker.store.db.updateTable('connections').set({ credential: again }).execute();
    const halfWay = await sealedUnder(broker.store);
    expect([halfWay.get(keys.current.id), (halfWay.get(oldId) ?? 0) > 30]).toEqual([1, true]);
    expect((await agent.act(READ)).status).toBe(200);
    expect((await agent.act(WRITE, { 'idempotency-key': 'k7' })).headers.get('idempotency-replayed')).toBe('true');
    await world.restart();
    expect([...(await sealedUnder(world.running.broker.store)).keys()]).toEqual([keys.current.id]);
    expect(linesOf(keyFile)).toHaveLength(1);
    expect((await agent.act(READ)).status).toBe(200);
    expect((await agent.act(WRITE, { 'idempotency-key': 'k7' })).headers.get('idempotency-replayed')).toBe('true');
  });

  test('KEY-03 killed repeatedly during the rotation: no value is lost, and the last start completes it', {
    timeout: 360_000,
  }, async () => {
    const { broker, baseUrl } = world.running;
    const now = broker.clock();
    const ids = Array.from({ length: 2_000 }, () => uuidv4());
    const place = (id: string) => ({ table: 'idempotency_keys' as const, organisationId: organisation.id, rowId: id });
    const answered = ids.map((id) => ({
      organisation_id: organisation.id,
      agent_id: agent.id,
      key_hash: id,
      audit_id: id,
      request_hash: id,
      instance_id: null,
      is_read: 0,
      created_at: now,
      expires_at: now + 3600_000,
      status: 200,
      answer: broker.vault.seal(place(id), `answer ${id}`),
    }));
    for (let from = 0; from < ids.length; from += 500)
      await broker.store.db
        .insertInto('idempotency_keys')
        .values(answered.slice(from, from + 500))
        .execute();
    await world.running.stop();
    const environment: Record<string, string> = { ...world.environment, PORT: new URL(baseUrl).port };
    const random = makeRandom(7);
    let finished = 0;
    for (let kill = 0; kill < KILLS; kill++) {
      const child = spawnBroker(environment);
      expect(await child.serve(), child.output().stderr).toBeDefined();
      const { local_token } = JSON.parse(readFileSync(runFile(environment.AGENT_BROKER_DATA!), 'utf8'));
      const rotation = send(`${baseUrl}/owner/keys/rotate`, {
        method: 'POST',
        headers: { authorization: `Bearer ${local_token}`, 'content-type': 'application/json' },
        body: '{"use":"master"}',
      }).then(
        () => finished++,
        () => {},
      );
      await new Promise((resolve) => setTimeout(resolve, random() * 250));
      child.signal('SIGKILL');
      await rotation;
      await child.ended;
    }
    expect(finished, 'rotations that were not cut off').toBeLessThan(KILLS);
    world.running = await serve(readConfig(environment));
    const { store, vault } = world.running.broker;
    expect(linesOf(keyFileOf(environment))).toHaveLength(1);
    expect([...(await sealedUnder(store)).keys()]).toEqual([vault.masterKeys().current.id]);
    const answers = (await listSealed(store.db, SEALED[2], '', 5_000)).map(({ rowId, sealed }) => [
      rowId,
      vault.open(place(rowId), sealed).toString(),
    ]);
    expect(answers.sort()).toEqual(ids.map((id) => [id, `answer ${id}`]).sort());
    expect((await agent.act(READ)).status).toBe(200);
  });

  test('KEY-03 stopped before the old key was removed from the file: the next start removes it', async () => {
    const keyFile = keyFileOf(world.environment);
    const { broker } = world.running;
    const before = linesOf(keyFile)[0]!;
    expect((await rotate(world.running, 'master')).status).toBe(200);
    const now = linesOf(keyFile)[0]!;
    writeFileSync(keyFile, `${now}\n${before}\n`);
    await world.restart();
    expect(linesOf(keyFile)).toEqual([now]);
    expect(world.running.broker.vault.masterKeys().current.id).toBe(broker.vault.masterKeys().current.id);
  });

  test('a tampered value does not prevent the others from being re-encrypted, and the old key is kept for it', async () => {
    const keyFile = keyFileOf(world.environment);
    const { broker } = world.running;
    await organisation.platform({ id: 'spoilt' });
    const { db } = broker.store;
    const spoilt = await db
      .selectFrom('connections')
      .selectAll()
      .where('platform_id', '=', 'spoilt')
      .executeTakeFirstOrThrow();
    const bytes = Buffer.from(spoilt.credential!);
    bytes[40]! ^= 1;
    await db.updateTable('connections').set({ credential: bytes }).where('id', '=', spoilt.id).execute();
    const answer = await rotate(world.running, 'master');
    expectEnvelope(answer, 409, 'conflict');
    expect(answer.body.detail).toContain(`connections ${spoilt.id}`);
    expect(linesOf(keyFile)).toHaveLength(2);
    expect((await sealedUnder(broker.store)).get(broker.vault.masterKeys().previous[0]!.id)).toBe(1);
    await world.restart();
    expect((await agent.act(READ)).status).toBe(200);
    // Without the tampered value the rotation completes.
    await world.db.deleteFrom('connections').where('id', '=', spoilt.id).execute();
    expect((await rotate(world.running, 'master')).status).toBe(200);
    expect(linesOf(keyFile)).toHaveLength(1);
  });

  test('a rotation that cannot change the key file does not prevent the start, and logs why', async () => {
    const keyFile = keyFileOf(world.environment);
    rotateKeyFile(keyFile);
    mkdirSync(`${keyFile}.new`);
    await world.restart();
    expect((await agent.act(READ)).status).toBe(200);
    expect(linesOf(keyFile)).toHaveLength(2);
    const answer = await rotate(world.running, 'master');
    expectEnvelope(answer, 409, 'conflict');
    expect(answer.body.detail).toContain(`${keyFile}.new`);
    rmdirSync(`${keyFile}.new`);
    await world.restart();
    expect(linesOf(keyFile)).toHaveLength(1);
  });

  test.each([0, 1])(
    'killed while writing the key file, after %i writes: the next start and rotation succeed',
    async (writes) => {
      const keyFile = keyFileOf(world.environment);
      if (writes > 0) rotateKeyFile(keyFile);
      writeFileSync(`${keyFile}.new`, '');
      await world.restart();
      expect(linesOf(keyFile)).toHaveLength(1);
      expect((await rotate(world.running, 'master')).status).toBe(200);
      expect((await agent.act(READ)).status).toBe(200);
      expect(readdirSync(dirname(keyFile)).filter((name) => name.endsWith('.new'))).toEqual([]);
    },
  );
});

describe.each(ONE_STORE)(`rotating a master key of the environment on %s${postgresNote}`, (store) => {
  test('with both keys set all data keys are re-encrypted, and then only the new key is needed', async () => {
    const [first, second] = [newKey(), newKey()];
    const { world, agent } = await seeded(store, { AGENT_BROKER_MASTER_KEY: first });
    const alone = await rotate(world.running, 'master');
    expectEnvelope(alone, 409, 'conflict');
    expect(alone.body.detail).toContain('AGENT_BROKER_MASTER_KEY_PREVIOUS');
    // So that all replicas have the new key before any of them seals with it.
    Object.assign(world.environment, { AGENT_BROKER_MASTER_KEY: first, AGENT_BROKER_MASTER_KEY_PREVIOUS: second });
    await world.restart();
    expect((await agent.act(READ)).status).toBe(200);
    Object.assign(world.environment, { AGENT_BROKER_MASTER_KEY: second, AGENT_BROKER_MASTER_KEY_PREVIOUS: first });
    await world.restart();
    expect((await agent.act(READ)).status).toBe(200);
    const under = await sealedUnder(world.running.broker.store);
    expect([...under.keys()]).toEqual([world.running.broker.vault.masterKeys().previous[0]!.id]);
    const rotated = await rotate(world.running, 'master');
    expect([rotated.status, rotated.body.rewrapped]).toEqual([200, [...under.values()][0]]);
    delete world.environment.AGENT_BROKER_MASTER_KEY_PREVIOUS;
    await world.restart();
    expect((await agent.act(READ)).status).toBe(200);
    await world.running.stop();
    const old = readConfig({ ...world.environment, AGENT_BROKER_MASTER_KEY: first });
    await expect(serve(old)).rejects.toThrow(/not the master key/);
  });

  test('the new key alone is rejected before everything was re-encrypted', async () => {
    const { world } = await seeded(store, { AGENT_BROKER_MASTER_KEY: newKey() });
    await world.running.stop();
    const config = readConfig({ ...world.environment, AGENT_BROKER_MASTER_KEY: newKey() });
    await expect(serve(config)).rejects.toThrow(/nothing was started and nothing was changed/);
  });
});

test.runIf(STORES.includes('postgres'))(
  'a key file that replicas share is not changed by a rotation, only by the operator',
  async () => {
    const { world, agent } = await seeded('postgres');
    const keyFile = keyFileOf(world.environment);
    const [old] = linesOf(keyFile);
    const alone = await rotate(world.running, 'master');
    expectEnvelope(alone, 409, 'conflict');
    expect(alone.body.detail).toContain('first line of the key file');
    expect(linesOf(keyFile)).toEqual([old]);
    const fresh = newKey();
    writeFileSync(keyFile, `${fresh}\n${old}\n`);
    await world.restart();
    expect(linesOf(keyFile)).toEqual([fresh, old]);
    expect((await rotate(world.running, 'master')).body.rewrapped).toBeGreaterThan(4);
    expect(linesOf(keyFile)).toEqual([fresh, old]);
    writeFileSync(keyFile, `${fresh}\n`);
    await world.restart();
    expect((await agent.act(READ)).status).toBe(200);
  },
);

/** Columns with bytes that are not secret; a governance file refers to secrets, and contains none. */
const PUBLIC = [
  'passkeys.public_key',
  'log_entries.ids',
  'log_entries.row_hashes',
  'log_tiles.hashes',
  'governance_applies.file_before',
];

test('every sealed column of the schema is in the list that a rotation processes', async () => {
  const world = await startWorld('sqlite');
  const { store } = world.running.broker;
  const tables = await store.db.introspection.getTables();
  const bytes = tables.flatMap(({ name, columns }) =>
    columns.filter(({ dataType }) => /blob/i.test(dataType)).map((column) => `${name}.${column.name}`),
  );
  expect(SEALED.map(({ table, column }) => `${table}.${column}`).sort()).toEqual(
    bytes.filter((one) => !PUBLIC.includes(one)).sort(),
  );
});
