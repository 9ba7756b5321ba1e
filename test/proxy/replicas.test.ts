/** A held /proxy call on two replicas, one of which is killed: whatever the client repeats, the platform gets one call. */
import { beforeAll, describe, expect, test } from 'vitest';
import type { TestAgent } from '../world/agent.ts';
import { type Replica, startReplica } from '../world/replica.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { givenWorld, shared } from '../world/world.ts';
import { rawClient } from './raw-client.ts';

describe.runIf(STORES.includes('postgres'))(`held /proxy calls and replicas on postgres${postgresNote}`, () => {
  let other: Replica;
  const world = givenWorld('postgres');
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent());
  beforeAll(async () => {
    other = await startReplica(world);
    return () => other.process.signal('SIGKILL');
  });
  const ask = (by: TestAgent, body: string, wait: string) =>
    rawClient(() => by)('POST', '/proxy/demo-main/items', { body, headers: { 'x-svc-wait': wait } });
  const made = (body: string) => world.upstream.seen.filter((one) => one.body === body).length;
  const pending = async (): Promise<string[]> =>
    (await organisation.pending()).map((one: { approval_id: string }) => one.approval_id);

  test('the same request sent concurrently to both replicas is held once', async () => {
    const body = '{"both":1}';
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, i) => ask(i % 2 ? agent : other.asks(agent), body, '0')),
    );
    expect(answers.map(({ status, text }) => [status, text])).toEqual(answers.map(({ text }) => [403, text]));
    const ids = new Set(answers.map((one) => one.body.approval_id));
    expect(ids.size).toBe(1);
    await organisation.approve([...ids][0]);
    expect(await ask(other.asks(agent), body, '0')).toMatchObject({ status: 200 });
    expect(made(body)).toBe(1);
  });

  test('a static key revoked at one replica is refused at the other at the next request', async () => {
    const path = `/owner/agents/${agent.agentId}/static-keys`;
    const { body } = await organisation.ask('POST', path, { label: 'both', connection: 'demo-main' });
    const read = (by: TestAgent) =>
      rawClient(() => by)('GET', '/proxy/demo-main/items', {
        bare: true,
        headers: { authorization: `Bearer ${body.key}` },
      });
    expect([(await read(other.asks(agent))).status, (await read(agent)).status]).toEqual([200, 200]);
    await organisation.ask('DELETE', `${path}/${body.id}`);
    expect([(await read(other.asks(agent))).status, (await read(agent)).status]).toEqual([401, 401]);
  });

  test('when the replica at which a request waits is killed, the other one returns the result', async () => {
    const body = '{"killed":1}';
    const before = await pending();
    const waiting = ask(other.asks(agent), body, '60').then(
      () => 'answered',
      () => 'lost',
    );
    let id: string | undefined;
    await expect
      .poll(
        async () => {
          id = (await pending()).find((one) => !before.includes(one));
          return id;
        },
        { timeout: 5_000 },
      )
      .toBeDefined();
    other.process.signal('SIGKILL');
    expect(await waiting).toBe('lost');
    const refused = await ask(agent, body, '0');
    expect(refused).toMatchObject({ status: 403, body: { error: 'approval_pending', approval_id: id } });
    await organisation.approve(id ?? '');
    expect(await ask(agent, body, '5')).toMatchObject({ status: 200, body: { body } });
    expect(made(body)).toBe(1);
    // Delivered: the next request is a new call.
    expect((await ask(agent, body, '0')).body.approval_id).not.toBe(id);
    expect(made(body)).toBe(1);
  });
});
