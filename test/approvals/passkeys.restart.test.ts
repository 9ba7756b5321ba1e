/** Passkey challenges when processes stop and start (specification, Passkey challenges): real processes on one store. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { readConfig } from '../../broker/environment/config.ts';
import { makeLog } from '../../broker/log/log.ts';
import { runFile } from '../../broker/process/run-file.ts';
import { openPlainStore } from '../../broker/process/start.ts';
import { type Answer, expectStatus, jsonPost, send } from '../world/agent.ts';
import { type BrokerProcess, spawnBroker } from '../world/broker-process.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { enrol } from '../world/passkeys.ts';
import { Authenticator } from '../world/software-authenticator.ts';
import { newFolder, ONE_STORE, postgresNote } from '../world/stores.ts';
import { givenWorld, shared } from '../world/world.ts';

/** A fifth of the production value. A process that starts after a crash takes one and a half intervals to know that no other is alive. */
const HEARTBEAT_MS = 1_000;
const ROOT = '/v1/approvals/passkeys';

type Process = BrokerProcess & {
  post(step: string, body?: unknown): Promise<Answer>;
  /** Enrols a new authenticator with this challenge. */
  finish(options: unknown): Promise<Answer>;
};

describe.each(ONE_STORE)(`passkey challenges and restarts on %s${postgresNote}`, (store) => {
  let baseUrl: string;
  let authorization: string;
  let held: string;
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());
  const key = shared(() => enrol(world, organisation));
  beforeAll(async () => {
    const agent = await organisation.agent();
    const call = { platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write', data: {} };
    held = await agent.hold(call);
    authorization = `Bearer ${mintOwnerSession(world.running.broker, organisation.owner).token}`;
    await world.running.stop();
    baseUrl = world.running.baseUrl;
  });
  beforeEach(async () => {
    if (store !== 'postgres') return;
    const opened = openPlainStore(readConfig(world.environment), makeLog('silent'));
    await opened.db.deleteFrom('instances').execute();
    await opened.close();
  });

  /** Loads a process; it listens once `serve` is called. */
  function load(): BrokerProcess & { start(): Promise<Process> } {
    const data = store === 'sqlite' ? world.environment.AGENT_BROKER_DATA! : newFolder();
    const child = spawnBroker({
      ...world.environment,
      PORT: '0',
      BASE_URL: baseUrl,
      AGENT_BROKER_DATA: data,
      AGENT_BROKER_KEY_FILE: join(world.environment.AGENT_BROKER_DATA!, 'keys', 'master.key'),
      TEST_BEAT_MS: String(HEARTBEAT_MS),
    });
    onTestFinished(() => child.signal('SIGKILL'));
    const start = async (): Promise<Process> => {
      expect(await child.serve(), child.output().stderr).toBe(baseUrl);
      const { url } = JSON.parse(readFileSync(runFile(data), 'utf8'));
      const post = (step: string, body: unknown = {}) =>
        send(`${url}${ROOT}/${step}`, jsonPost(body, { authorization }));
      const finish = (options: unknown) =>
        post('register/finish', {
          response: new Authenticator(baseUrl).create(options as never),
          device_name: 'Phone',
        });
      return { ...child, post, finish };
    };
    return { ...child, start };
  }
  const start = () => load().start();

  async function begin(process: Process) {
    const { body } = await expectStatus(200, process.post('register/begin'));
    return body;
  }

  async function end(process: Process, signal: NodeJS.Signals): Promise<void> {
    process.signal(signal);
    await process.ended;
  }

  test('I6 a crash of the only process invalidates its challenges, and the next process issues new ones as soon as it serves', async () => {
    const next = load();
    const first = await start();
    const enrolment = await begin(first);
    const approval = (await first.post('sign/begin', { approval_id: held })).body;
    await end(first, 'SIGKILL');
    const second = await next.start();
    const fresh = await begin(second);
    const answers = await Promise.all([
      second.finish(enrolment),
      second.post('sign/finish', { response: key.get(approval) }),
      second.finish(fresh),
    ]);
    expectEnvelope(answers[0], 410, 'challenge_expired');
    expectEnvelope(answers[1], 410, 'challenge_expired');
    expect(answers[2].status, answers[2].text).toBe(200);
    const again = (await second.post('sign/begin', { approval_id: held })).body;
    const approved = await second.post('sign/finish', { response: key.get(again) });
    expect(approved.body, approved.text).toMatchObject({ status: 'approved', approval_id: held });
    await end(second, 'SIGTERM');
  });

  // One chain of replicas: each part begins with the two that the part before it leaves.
  test.runIf(store === 'postgres')(
    'replicas: a rolling restart keeps challenges; those of one that crashes stay valid while another lives; after a crash of all, those that start together do not prove that the old run is alive',
    async () => {
      const loaded = [load(), load(), load(), load()];
      const [first, second] = [await start(), await start()];
      const begun = [await begin(first), await begin(second), await begin(first)];
      const third = await loaded[0]!.start();
      await end(first, 'SIGTERM');
      begun.push(await begin(third));
      const beforeFourth = await begin(third);
      const fourth = await loaded[1]!.start();
      // Answered once the fourth process knows that the third one is alive.
      expect((await fourth.finish(beforeFourth)).status, 'of a living process').toBe(200);
      await end(second, 'SIGTERM');
      begun.push(await begin(fourth));
      const rolled = [
        await fourth.finish(begun[0]),
        await third.finish(begun[1]),
        await fourth.finish(begun[2]),
        await fourth.finish(begun[3]),
        await third.finish(begun[4]),
      ];
      expect(
        rolled.map(({ status, text }) => [status, text]),
        'after a rolling restart',
      ).toEqual(rolled.map(() => [200, expect.stringContaining('"verified":true')]));

      const raced = await begin(third);
      const answers = await Promise.all([1, 2, 3, 4].flatMap(() => [third.finish(raced), fourth.finish(raced)]));
      expect(
        answers.map(({ status }) => status).sort(),
        'of concurrent finishes at several processes one enrols',
      ).toEqual([200, ...Array(7).fill(410)]);
      for (const answer of answers) if (answer.status === 410) expectEnvelope(answer, 410, 'challenge_expired');

      const left = await begin(third);
      const old = [await begin(third), await begin(fourth)];
      await end(third, 'SIGKILL');
      expect((await fourth.finish(left)).status, 'of a process that crashed beside a living one').toBe(200);
      await end(fourth, 'SIGKILL');
      const started = await Promise.all(loaded.slice(2).map((one) => one.start()));
      const [a, b] = started as [Process, Process];
      const early = [await begin(a), await begin(b), await begin(a)];
      // Before it is known that the old run has ended.
      expect((await b.finish(early[0])).status).toBe(200);
      const late = await Promise.all(started.map((one, at) => one.finish(old[at])));
      for (const answer of late) expectEnvelope(answer, 410, 'challenge_expired');
      // Issued before that was known, finished after it.
      expect((await a.finish(early[1])).status).toBe(200);
      expect((await b.finish(early[2])).status).toBe(200);
      expect((await b.finish(await begin(a))).status).toBe(200);
      await Promise.all(started.map((one) => end(one, 'SIGTERM')));
    },
  );
});
