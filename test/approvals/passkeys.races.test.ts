/** Races, also between several brokers: an approval is decided once, a counter value is used once. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import type { OwnerTable } from '../../broker/store/tables/organisations.ts';
import { type Answer, expectStatus, send } from '../world/agent.ts';
import { spawnBroker } from '../world/broker-process.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { approveWith, assertionFor, enrol, registerFinish, signBegin, signFinish } from '../world/passkeys.ts';
import { sized } from '../world/runner/thorough.ts';
import { Authenticator } from '../world/software-authenticator.ts';
import { newFolder, postgresNote, STORES } from '../world/stores.ts';
import { fresh, givenWorld, shared, WRITE } from '../world/world.ts';

const MANY = sized(16, 50);
const ROUNDS = sized(4, 10);
const ON_BOTH = sized(8, 20);

const times = <T>(n: number, make: (i: number) => T): T[] => Array.from({ length: n }, (_, i) => make(i));
const statuses = (answers: readonly Answer[]) => answers.map(({ status }) => status).sort((a, b) => a - b);

describe.each(STORES)(`races of passkeys on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = fresh(() => world.demoOrganisation());
  const agent = fresh(() => organisation.agent());
  const key = fresh(() => enrol(world, organisation));

  const hold = () => agent.hold(WRITE);
  const own = async (by?: OwnerTable) =>
    (await organisation.ask('GET', '/owner/passkeys', undefined, by)).body.passkeys;
  const reasons = async (): Promise<string[]> =>
    (await organisation.ask('GET', '/owner/audit?limit=200')).body.rows.map(({ reason }: { reason: string }) => reason);
  const how = async (id: string) => (await organisation.ask('GET', `/owner/approvals/${id}`)).body;

  test(`AP-01 of ${MANY} concurrent valid assertions one decides; the platform gets one call`, async () => {
    const id = await hold();
    const devices = [key, await enrol(world, organisation), await enrol(world, organisation)];
    const responses = [];
    for (let i = 0; i < MANY; i++) responses.push(await assertionFor(world, id, devices[i % devices.length]!));
    const before = world.upstream.seen.length;
    const answers = await Promise.all(responses.map((response) => signFinish(world, response)));
    expect(statuses(answers)).toEqual([200, ...Array(MANY - 1).fill(409)]);
    for (const answer of answers) if (answer.status === 409) expectEnvelope(answer, 409, 'already_decided');
    expect(world.upstream.seen.length).toBe(before + 1);
    expect((await reasons()).filter((reason) => reason.startsWith('approval_approved'))).toHaveLength(1);
    // A late assertion does not count as a clone.
    expect((await own()).map(({ status }: { status: string }) => status)).toEqual(['active', 'active', 'active']);
    expect(await reasons()).not.toContain('passkey_counter_regression');
  });

  test(`AP-08 the same assertion ${MANY} times: one decides, the others are too late, and no passkey is disabled`, async () => {
    const id = await hold();
    const response = await assertionFor(world, id, key);
    const before = world.upstream.seen.length;
    const answers = await Promise.all(times(MANY, () => signFinish(world, response)));
    expect(statuses(answers)).toEqual([200, ...Array(MANY - 1).fill(409)]);
    expect(world.upstream.seen.length).toBe(before + 1);
    expect(await own()).toMatchObject([{ status: 'active' }]);
    expect((await approveWith(world, await hold(), key)).status).toBe(200);
  });

  test(`AP-11 ${MANY} approvals signed with one counter value: one is accepted, the passkey is disabled, one event`, async () => {
    const ids = await Promise.all(times(MANY, hold));
    const responses = await Promise.all(ids.map((id) => assertionFor(world, id, key, { counter: 7 })));
    const before = world.upstream.seen.length;
    const answers = await Promise.all(responses.map((response) => signFinish(world, response)));
    expect(statuses(answers)).toEqual([200, ...Array(MANY - 1).fill(400)]);
    const codes = new Set(answers.map(({ body }) => body.error));
    codes.delete(undefined);
    expect(codes).toContain('counter_regression');
    // Requests after it was disabled found no active passkey.
    expect([...codes].filter((code) => code !== 'counter_regression' && code !== 'verification_failed')).toEqual([]);
    expect(world.upstream.seen.length).toBe(before + 1);
    const states = await Promise.all(ids.map(async (id) => (await how(id)).status));
    expect(states.filter((status) => status === 'approved')).toHaveLength(1);
    expect(states.filter((status) => status === 'pending')).toHaveLength(MANY - 1);
    expect(await own()).toMatchObject([{ status: 'disabled' }]);
    const all = await reasons();
    expect(all.filter((reason) => reason === 'passkey_counter_regression')).toHaveLength(1);
    expect(all.filter((reason) => reason === 'approval_approved')).toHaveLength(1);
  });

  test('AP-02 approval by passkey, approval in the console and denial concurrently: one wins and is carried out', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const id = await hold();
      const responses = [await assertionFor(world, id, key), await assertionFor(world, id, key)];
      const decide = (verb: string) => organisation.ask('POST', `/owner/approvals/${id}/${verb}`, {});
      const before = world.upstream.seen.length;
      const tries = [
        () => signFinish(world, responses[0]),
        () => decide('deny'),
        () => decide('approve'),
        () => signFinish(world, responses[1]),
      ];
      // Each kind of request is sent first in some rounds.
      const order = times(tries.length, (i) => tries[(i + round) % tries.length]!);
      const answers = await Promise.all(order.map((ask) => ask()));
      expect(statuses(answers)).toEqual([200, 409, 409, 409]);
      for (const answer of answers) if (answer.status === 409) expectEnvelope(answer, 409, 'already_decided');
      const { status } = await how(id);
      expect(world.upstream.seen.length - before).toBe(status === 'approved' ? 1 : 0);
      expect(answers.find((one) => one.status === 200)!.body.status).toBe(status);
    }
    expect(await own()).toMatchObject([{ status: 'active' }]);
  });

  test('a passkey that is removed while it signs: the call is approved with it or stays pending', async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const device = await enrol(world, organisation);
      const { id: passkey } = (await own()).find(
        (one: { credential_id: string }) => one.credential_id === device.credentialId,
      );
      const id = await hold();
      const response = await assertionFor(world, id, device);
      const before = world.upstream.seen.length;
      const [signed, removed] = await Promise.all([
        signFinish(world, response),
        organisation.ask('DELETE', `/owner/passkeys/${passkey}`),
      ]);
      expect(removed.status).toBe(200);
      expect([200, 400]).toContain(signed.status);
      expect((await how(id)).status).toBe(signed.status === 200 ? 'approved' : 'pending');
      expect(world.upstream.seen.length - before).toBe(signed.status === 200 ? 1 : 0);
    }
    expect(await reasons()).not.toContain('passkey_counter_regression');
  });
});

describe.runIf(STORES.includes('postgres'))(`passkeys and replicas on postgres${postgresNote}`, () => {
  /** The other process's own address: for browsers both have the same address. */
  let there: string;
  const world = givenWorld('postgres');
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent());
  beforeAll(async () => {
    const folder = newFolder();
    const second = spawnBroker({
      ...world.environment,
      PORT: '0',
      BASE_URL: world.running.baseUrl,
      AGENT_BROKER_DATA: folder,
      AGENT_BROKER_KEY_FILE: world.running.broker.config.keyFile,
    });
    const serving = await second.serve();
    expect(serving, second.output().stderr).toBe(world.running.baseUrl);
    there = JSON.parse(readFileSync(join(folder, 'run', 'broker.json'), 'utf8')).url;
    expect(there).not.toBe(world.running.baseUrl);
    return () => second.signal('SIGKILL');
  });

  const hold = () => agent.hold(WRITE);

  test('AP-19 MR-01 a ceremony begun at one replica can be finished at the other, both ways', async () => {
    const { token } = mintOwnerSession(world.running.broker, organisation.owner);
    const begun = await send(`${there}/v1/approvals/passkeys/register/begin`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
    });
    expect(begun.status, begun.text).toBe(200);
    const device = new Authenticator(world.running.baseUrl);
    await expectStatus(200, registerFinish(organisation, { response: device.create(begun.body), device_name: 'x' }));
    for (const [begins, finishes] of [
      [world.running.baseUrl, there],
      [there, world.running.baseUrl],
    ]) {
      const id = await hold();
      const options = (await signBegin(world, id, begins)).body;
      const waiting = agent.get(`/v1/approvals/${id}?wait=20`);
      await expectStatus(200, signFinish(world, device.get(options), finishes));
      expect((await waiting).body).toMatchObject({ status: 'approved', result: { status: 200 } });
    }
  });

  test('AP-01 concurrent assertions at both replicas: one decides, the platform gets one call', async () => {
    const device = await enrol(world, organisation);
    const id = await hold();
    const responses = [];
    for (let i = 0; i < ON_BOTH; i++) responses.push(await assertionFor(world, id, device));
    const before = world.upstream.seen.length;
    const answers = await Promise.all(
      responses.map((response, i) => signFinish(world, response, i % 2 ? there : undefined)),
    );
    expect(statuses(answers)).toEqual([200, ...Array(ON_BOTH - 1).fill(409)]);
    expect(world.upstream.seen.length).toBe(before + 1);
  });

  test('AP-11 one counter value at both replicas concurrently: one is accepted', async () => {
    const device = await enrol(world, organisation);
    const ids = await Promise.all(times(ON_BOTH, hold));
    const responses = await Promise.all(ids.map((id) => assertionFor(world, id, device, { counter: 7 })));
    const answers = await Promise.all(
      responses.map((response, i) => signFinish(world, response, i % 2 ? there : undefined)),
    );
    expect(statuses(answers)).toEqual([200, ...Array(ON_BOTH - 1).fill(400)]);
  });
});
