/** Clients that retry requests by themselves, on two replicas of which one is killed: an approved call is made once. */

import { connect, createServer } from 'node:net';
import { beforeAll, describe, expect, test } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { send } from '../world/agent.ts';
import { listenOnLoopback } from '../world/listen.ts';

import { startReplica } from '../world/replica.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { CLIENTS, madeByLine } from './clients.ts';
import { withoutLab } from './installed.ts';
import { givenLab } from './lab-world.ts';

/** By default, they retry twice after a connection error or a 5xx. */
const REPEATING = CLIENTS.filter(({ name }) =>
  ['openai', '@anthropic-ai/sdk', 'stripe', '@aws-sdk/client-s3'].includes(name),
);
const runs = STORES.includes('postgres') && !withoutLab;

describe.runIf(runs)(`clients that retry requests, on postgres${postgresNote}`, () => {
  const { world, organisation, agent, approve } = givenLab('postgres');
  /** The port of the replica to which connections are forwarded. */
  let target = 0;
  let address = '';
  beforeAll(async () => {
    const forwarder = createServer((socket) => {
      const onward = connect(target, '127.0.0.1');
      socket.pipe(onward).pipe(socket);
      socket.on('error', () => onward.destroy()).on('close', () => onward.destroy());
      onward.on('error', () => socket.destroy()).on('close', () => socket.destroy());
    });
    const port = await listenOnLoopback(forwarder);
    address = `http://127.0.0.1:${port}`;
    return () => forwarder.close();
  });
  const begin = async (client: (typeof CLIENTS)[number], seconds: number) => {
    const by = await agent(client.platform, client);
    return client.held.call(madeByLine(client, by.token(), address, { 'X-Svc-Wait': String(seconds) }));
  };
  const pending = async (): Promise<string[]> =>
    (await organisation.pending()).map((one: { approval_id: string }) => one.approval_id);
  const approveAll = async () => {
    await expect.poll(pending, { timeout: 15_000 }).toHaveLength(REPEATING.length);
    const ids = await pending();
    await Promise.all(ids.map((id) => approve(`agent-broker: approval_pending /approve/${id}`)));
  };

  test('when the replica on which they wait is killed, each gets the one result from the other replica', async () => {
    const replica = await startReplica(world, { behind: true });
    target = Number(new URL(replica.baseUrl).port);
    const all = REPEATING.map((client) => begin(client, 30));
    await expect.poll(pending, { timeout: 15_000 }).toHaveLength(REPEATING.length);
    target = Number(new URL(world.running.baseUrl).port);
    replica.process.signal('SIGKILL');
    await approveAll();
    const results = await Promise.all(all);
    for (const [at, result] of results.entries()) expect(result).toMatchObject(REPEATING[at]!.held.is as object);
    expect(world.upstream.seen).toHaveLength(REPEATING.length);
  });

  test('when the platform answers an approved call with a 503, the retry is a new call that needs an approval', async () => {
    target = Number(new URL(world.running.baseUrl).port);
    world.upstream.answer = (_, response) => response.writeHead(503, { 'content-type': 'application/json' }).end('{}');
    const all = REPEATING.map((client) => begin(client, 2).then(String, (error: Error) => error.message));
    await approveAll();
    for (const message of await Promise.all(all)) expect(message).toContain('agent-broker: approval_pending');
    expect(world.upstream.seen).toHaveLength(REPEATING.length);
    expect(await pending()).toHaveLength(REPEATING.length);
  });

  test('when the replica that makes the approved calls is killed, each gets executed_outcome_unknown, and no further approval is requested', async () => {
    const replica = await startReplica(world, { behind: true });
    target = Number(new URL(world.running.baseUrl).port);
    world.upstream.answer = () => {};
    const before = world.upstream.seen.length;
    const already = await pending();
    const all = REPEATING.map((client) => begin(client, 100).then(String, (error: Error) => error.message));
    const mine = async () => (await pending()).filter((id) => !already.includes(id));
    await expect.poll(mine, { timeout: 15_000 }).toHaveLength(REPEATING.length);
    const { token } = mintOwnerSession(world.running.broker, organisation.owner);
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    for (const id of await mine())
      void send(`${replica.baseUrl}/owner/approvals/${id}/approve`, { method: 'POST', headers, body: '{}' }).catch(
        () => {},
      );
    await expect.poll(() => world.upstream.seen.length - before, { timeout: 15_000 }).toBe(REPEATING.length);
    replica.process.signal('SIGKILL');
    world.upstream.answer = undefined;
    for (const message of await Promise.all(all)) {
      expect(message).toContain('agent-broker: executed_outcome_unknown');
      expect(message).toContain('outcome unknown: the broker stopped while the call was in flight');
    }
    expect(world.upstream.seen.length - before).toBe(REPEATING.length);
    expect(await mine()).toEqual([]);
    // The killed replica's lease must expire first.
  }, 180_000);
});
