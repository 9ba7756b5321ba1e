/** Held calls of remote clients that support tasks (extension io.modelcontextprotocol/tasks): the task lives as long as the approval. */
import { Client } from '@modelcontextprotocol/client';
import {
  resultFromTaskOutcome,
  type TaskEnabledSession,
  type ToolExecution,
} from '@modelcontextprotocol/ext-tasks/client';
import { describe, expect, test } from 'vitest';
import { expectStatus } from '../world/agent.ts';
import { browserOf, ClientMemory, connectClient } from '../world/mcp/person.ts';
import { taskSession } from '../world/mcp/tasks.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { HOUR_MS } from '../world/times.ts';
import { DEMO_RULES, DEMO_SCOPES, givenWorld, shared } from '../world/world.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests look at whatever came.
type Json = any;

describe.each(ONE_STORE)(`a remote client that supports tasks, on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation({ rules: DEMO_RULES }));

  let titles = 0;
  /** Returns arguments of a call that is held, and differs from every other. */
  const held = () => ({
    platform: 'demo',
    scope: 'demo:write',
    endpoint: '/items',
    data: { title: `${store}-${++titles}` },
  });
  const sentFor = ({ data }: { data: { title: string } }) =>
    world.upstream.seen.filter(({ body }) => body.includes(`"${data.title}"`)).length;
  const decide = async (id: string, verb: 'approve' | 'deny', body: object = {}) =>
    expect((await organisation.ask('POST', `/owner/approvals/${id}/${verb}`, body)).status).toBe(200);

  const modern = () =>
    new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
  /** The stored tokens of the client that most tests connect, which the first test authorises. */
  const known = new ClientMemory();
  async function connect(memory = known) {
    const grants = [{ platformId: 'demo', scopes: Object.keys(DEMO_SCOPES) }];
    const browser = browserOf(world, organisation.owner);
    const connected = await connectClient(world, browser, {
      client: modern(),
      decision: { grants },
      memory,
    });
    return { ...connected, session: await taskSession(world, connected.client, connected.memory) };
  }
  /** Makes a held call, and returns its task. */
  async function heldTask(session: TaskEnabledSession, args: object) {
    const execution: ToolExecution<Json> = await session.callTool('write_platform', args as Json);
    if (execution.kind !== 'task') throw new Error(`no task: ${JSON.stringify(await execution.result())}`);
    return { execution, id: String(execution.handle.taskId) };
  }
  const structured = (outcome: Json) => (resultFromTaskOutcome(outcome) as Json).structuredContent;

  test('gets a task immediately, with the link and the approval’s lifetime, and polls it until it has the platform’s answer', async () => {
    const { session } = await connect();
    const args = held();
    const { execution, id } = await heldTask(session, args);
    const task = await session.task(execution.handle.taskId).snapshot();
    expect(task).toMatchObject({ status: 'working', taskId: id });
    expect(task.statusMessage).toBe(
      `Waiting for a person to approve this call, which would send a POST to /items with 1 field: ${world.running.baseUrl}/approve/${id}`,
    );
    expect(task.retentionMs).toBe(24 * HOUR_MS);
    expect(task.suggestedPollIntervalMs).toBe(5_000);
    expect(sentFor(args)).toBe(0);
    const settled = execution.settle();
    await decide(id, 'approve', { note: 'Only this once.' });
    const { outcome } = await settled;
    expect(outcome.status).toBe('completed');
    expect(structured(outcome)).toMatchObject({
      status: 'answered',
      approval_id: id,
      note: 'Only this once.',
      data: { method: 'POST' },
    });
    expect(sentFor(args)).toBe(1);
  }, 180_000);

  test('gets a denial from the task, as a tool error', async () => {
    const { session } = await connect();
    const args = held();
    const { execution, id } = await heldTask(session, args);
    await decide(id, 'deny', { note: 'Ask Ann first.' });
    const outcome: Json = await session.task(execution.handle.taskId).result();
    expect(outcome).toMatchObject({ status: 'completed', result: { isError: true } });
    expect(structured(outcome)).toMatchObject({ status: 'denied', note: 'Ask Ann first.' });
    expect(sentFor(args)).toBe(0);
  });

  test('gets an expired approval from the task', async () => {
    const { session } = await connect();
    await expectStatus(200, organisation.ask('POST', '/owner/organisation', { approval_ttl_seconds: 300 }));
    const { execution } = await heldTask(session, held());
    await organisation.ask('POST', '/owner/organisation', { approval_ttl_seconds: 86_400 });
    expect((await session.task(execution.handle.taskId).snapshot()).retentionMs).toBe(300_000);
    world.clock.skewMs = 301_000;
    const outcome: Json = await session.task(execution.handle.taskId).result();
    expect(outcome).toMatchObject({ status: 'completed', result: { isError: true } });
    expect(structured(outcome)).toMatchObject({ status: 'expired' });
  });

  test('cancelling the task ends the wait; an owner can still deny the call, and its result stays available', async () => {
    const { session, client } = await connect();
    const args = held();
    const { execution, id } = await heldTask(session, args);
    await execution.cancel();
    await execution.detach();
    expect((await session.task(execution.handle.taskId).snapshot()).status).toBe('working');
    const { approvals } = (await organisation.ask('GET', '/owner/approvals?status=pending')).body;
    expect(approvals.map((one: Json) => one.approval_id)).toContain(id);
    await decide(id, 'approve');
    const checked: Json = await client.callTool({ name: 'check_approval', arguments: { approval_id: id } });
    expect(checked.structuredContent).toMatchObject({ status: 'answered', approval_id: id });
    expect(sentFor(args)).toBe(1);
  });

  test('after cancelling a task whose call was made, the identical call gets the result', async () => {
    const { session } = await connect();
    const args = held();
    const { execution, id } = await heldTask(session, args);
    await decide(id, 'approve');
    await execution.cancel();
    await execution.detach().catch(() => {});
    const again: Json = await session.callTool('write_platform', args as Json);
    expect(again.kind).not.toBe('task');
    const answer = JSON.stringify(await again.result());
    expect(answer).toContain('answered');
    expect(answer).toContain(id);
    expect(sentFor(args)).toBe(1);
  });

  test('after reconnecting, finds the task by its id and by the identical call', async () => {
    const one = await connect();
    const args = held();
    const { execution, id } = await heldTask(one.session, args);
    let kept: Json;
    await execution.handoff((reference: Json) => {
      kept = reference;
    });
    await one.session.close();
    await one.client.close();

    const { session } = await connect(one.memory);
    const again = await heldTask(session, { ...args, reason: 'In other words.' });
    expect(again.id).toBe(id);
    await again.execution.detach();
    await decide(id, 'approve');
    const outcome = await (await session.resumeTask(kept)).result();
    expect(structured(outcome)).toMatchObject({ status: 'answered', approval_id: id });
    expect(sentFor(args)).toBe(1);
    // The result was delivered, so the identical call is a new one.
    expect((await heldTask(session, args)).id).not.toBe(id);
  });

  test('cannot read a task of another agent', async () => {
    const [mine, theirs] = [await connect(), await connect(new ClientMemory())];
    const { execution } = await heldTask(theirs.session, held());
    await expect(mine.session.task(execution.handle.taskId).snapshot()).rejects.toThrow(/not found/i);
  });
});
