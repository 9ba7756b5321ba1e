/** Held calls over MCP: each way to wait that a client may support, what ends a wait, and what survives a restart. */
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { evidenceOf } from '../world/evidence.ts';
import {
  callTool,
  envelope,
  type McpProcess,
  type Message,
  shakeHands,
  startMcp,
  writeProfile,
} from '../world/mcp/mcp.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { hideTables } from '../world/servers/fault-proxy.ts';
import { givenWorld, shared } from '../world/world.ts';

const SAID = { platform: 'demo', scope: 'demo:write', endpoint: '/items' };
const TASKS = { extensions: { 'io.modelcontextprotocol/tasks': {} } };
/** The message for a client while a call waits; the link follows where the client does not show it separately. */
const NEWS = 'Waiting for a person to approve this call, which would send a POST to /items with 1 field';
const URL_DIALOG = { elicitation: { url: {} } };

let profile: string;
let titles = 0;
const world = givenWorld();
const organisation = shared(() => world.demoOrganisation());
const agent = shared(() => organisation.agent());
beforeAll(() => {
  profile = writeProfile(agent);
});

/** Returns arguments of a call that is held, and differs from every other. */
const held = (more: Record<string, unknown> = {}) => ({ ...SAID, data: { title: `t${++titles}` }, ...more });
const decide = (id: string, verb: 'approve' | 'deny', body: object = {}) =>
  organisation.ask('POST', `/owner/approvals/${id}/${verb}`, body);
const waitersFor = (id: string) => world.running.services.changes.waiting(id);
const isWaiting = (id: string) => vi.waitUntil(() => waitersFor(id) > 0, { timeout: 15_000, interval: 5 });
const pending = async (): Promise<string[]> =>
  (await agent.get('/v1/agents/me/pending-actions')).body.pending.map(
    (one: { approval_id: string }) => one.approval_id,
  );
/** Returns the approval of a call that was made after `before`. */
const newlyHeld = async (before: readonly string[]): Promise<string> =>
  await vi.waitUntil(async () => (await pending()).find((id) => !before.includes(id)), {
    timeout: 15_000,
    interval: 20,
  });
const urlOf = (id: string) => `${world.running.baseUrl}/approve/${id}`;
const sentFor = ({ data }: { data: { title: string } }) =>
  world.upstream.seen.filter(({ body }) => body.includes(`"${data.title}"`)).length;

/** Starts a server for a test that ends it. */
async function ownServer(): Promise<McpProcess> {
  const mcp = startMcp(profile);
  await shakeHands(mcp);
  return mcp;
}
const servers = new Map<string, Promise<McpProcess>>();
/** Returns the server that clients with these capabilities share in this file; each test makes calls of its own. */
function handshake(capabilities: Record<string, unknown> = {}, words: readonly string[] = []): Promise<McpProcess> {
  const start = async () => {
    const mcp = startMcp(profile, words, {}, afterFile);
    await shakeHands(mcp, capabilities);
    return mcp;
  };
  const key = JSON.stringify([capabilities, words]);
  const server = servers.get(key) ?? start();
  servers.set(key, server);
  return server;
}

/** Sends tools/call of 2026-07-28, with the capabilities that the client declares for it. */
const stateless = (mcp: McpProcess, args: unknown, capabilities: object, more: object = {}): Promise<Message> =>
  mcp.request('tools/call', {
    name: 'write_platform',
    arguments: args,
    _meta: { ...envelope({ ...capabilities }) },
    ...more,
  });

describe('a client that declares nothing', () => {
  test('waits with the request open, gets the link, and the platform’s answer after the approval', async () => {
    const mcp = await handshake();
    const before = await pending();
    const args = held({ reason: 'Because.' });
    const answering = callTool(mcp, 'write_platform', args, { _meta: { progressToken: 'p1' } });
    const id = await newlyHeld(before);
    await isWaiting(id);
    const [progress] = mcp.told.filter(({ params }) => params?.progressToken === 'p1');
    expect(progress).toMatchObject({ method: 'notifications/progress' });
    expect(progress.params).toMatchObject({
      progress: 0,
      message: `${NEWS}: ${urlOf(id)}`,
    });
    expect(sentFor(args)).toBe(0);
    await decide(id, 'approve', { note: 'Only this once.' });
    const answer = await answering;
    expect(answer.isError).toBeUndefined();
    expect(answer.structuredContent).toMatchObject({
      status: 'answered',
      upstream_status: 200,
      approval_id: id,
      note: 'Only this once.',
    });
    expect(answer.content[0].text).toContain('Only this once.');
    expect(sentFor(args)).toBe(1);
  });

  test('gets advice when its wait ends, and check_approval continues to wait', async () => {
    const mcp = await handshake({}, ['--wait', '1']);
    const args = held();
    const answer = await callTool(mcp, 'write_platform', args);
    const { approval_id: id } = answer.structuredContent;
    expect(answer.isError).toBeUndefined();
    expect(answer.structuredContent).toMatchObject({ status: 'pending_approval', approval_url: urlOf(id) });
    const { audit_id } = answer.structuredContent;
    expect((await evidenceOf(world, agent, audit_id)).row).toMatchObject({ result: 'held', approval_id: id });
    expect(answer.structuredContent.next).toMatch(/Do not submit the call again.*check_approval/s);
    expect(answer.content[0].text).toContain(urlOf(id));
    expect(answer.structuredContent.detail).toMatch(
      /^The call is held until .* It would send a POST to \/items with 1 field\. The/,
    );

    const still = await callTool(mcp, 'check_approval', { approval_id: id });
    expect(still.structuredContent).toMatchObject({ status: 'pending_approval', approval_id: id, audit_id });
    expect(still.structuredContent.detail).toContain(' It would send a POST to /items with 1 field. ');
    await decide(id, 'deny', { note: 'Ask Ann first.' });
    const denied = await callTool(mcp, 'check_approval', { approval_id: id });
    const structuredContent = { status: 'denied', note: 'Ask Ann first.', audit_id };
    expect(denied).toMatchObject({ isError: true, structuredContent });
    expect(sentFor(args)).toBe(0);
  });

  test('when the store fails at the end of a wait, the answer does not claim that nothing was sent', async () => {
    const mcp = await handshake({}, ['--wait', '2']);
    const { broker, services } = world.running;
    const { watch } = services.changes;
    const hidden = Promise.withResolvers<() => Promise<void>>();
    const watching = vi.spyOn(services.changes, 'watch').mockImplementationOnce((id) => {
      hidden.resolve(hideTables(broker.store.db, ['approvals']));
      return watch(id);
    });
    onTestFinished(() => watching.mockRestore());
    const answering = callTool(mcp, 'write_platform', held());
    const show = await hidden.promise;
    const { structuredContent } = await answering.finally(show);
    expect(structuredContent).toMatchObject({ status: 'pending_approval', approval_id: expect.any(String) });
    expect(structuredContent.detail).toContain('could not be read just now: it may have been made since.');
    expect(structuredContent.detail).not.toContain('Nothing was sent');
  });

  test('an identical call joins the held one; once the result was delivered it is a new call', async () => {
    const mcp = await handshake({}, ['--wait', '0']);
    const args = held({ reason: 'First words.' });
    const idOf = async (more: object = {}) =>
      (await callTool(mcp, 'write_platform', { ...args, ...more })).structuredContent.approval_id as string;
    const id = await idOf();
    const many = (await pending()).length;
    expect(await idOf()).toBe(id);
    expect(await idOf({ reason: 'Other words.' })).toBe(id);
    expect((await pending()).length).toBe(many);
    expect(await idOf({ data: { title: 'another' } })).not.toBe(id);

    await decide(id, 'approve');
    const made = await callTool(mcp, 'write_platform', args);
    expect(made.structuredContent).toMatchObject({ status: 'answered', approval_id: id });
    expect(sentFor(args)).toBe(1);
    // The result was delivered, so an identical call is now a new one.
    const next = await idOf();
    expect(next).not.toBe(id);
    await decide(next, 'approve');
    await callTool(mcp, 'check_approval', { approval_id: next });
    expect(sentFor(args)).toBe(2);
  });

  test('two concurrent identical writes are made once; two in sequence are made twice', async () => {
    const mcp = await handshake();
    const args = { ...SAID, endpoint: '/items/9', method: 'PATCH', data: { title: `twice ${++titles}` } };
    const call = () => callTool(mcp, 'write_platform', args);
    const [one, two] = await Promise.all([call(), call()]);
    expect(sentFor(args)).toBe(1);
    expect(one.structuredContent.detail).toBeUndefined();
    expect(two.structuredContent).toMatchObject({ status: 'answered', audit_id: one.structuredContent.audit_id });
    expect(two.structuredContent.detail).toContain('Nothing was sent again');
    await call();
    expect(sentFor(args)).toBe(2);
  });

  test('a write cancelled while in progress was made once, and the identical call gets its result', async () => {
    const mcp = await handshake();
    const args = { ...SAID, endpoint: '/items/9', method: 'PATCH', data: { title: `slow ${++titles}` } };
    const arrived = Promise.withResolvers<() => void>();
    world.upstream.answer = (_request, response) =>
      arrived.resolve(() => response.writeHead(200, { 'content-type': 'application/json' }).end('{"made":true}'));
    void mcp.request('tools/call', { name: 'write_platform', arguments: args }, 4712);
    const finish = await arrived.promise;
    mcp.notify('notifications/cancelled', { requestId: 4712 });
    finish();
    world.upstream.answer = undefined;
    const again = await vi.waitUntil(
      async () => {
        const answer = await callTool(mcp, 'write_platform', args);
        return answer.structuredContent.status === 'answered' && answer;
      },
      { timeout: 15_000, interval: 50 },
    );
    expect(again.structuredContent).toMatchObject({
      data: { made: true },
      detail: expect.stringContaining('Nothing was sent again'),
    });
    expect(sentFor(args)).toBe(1);
    expect(mcp.lines.filter((line) => JSON.parse(line).id === 4712)).toEqual([]);
  });

  test('a cancelled write that is in progress does not keep the program running once its input has ended', async () => {
    const mcp = await ownServer();
    const args = { ...SAID, endpoint: '/items/9', method: 'PATCH', data: { title: `left ${++titles}` } };
    const arrived = Promise.withResolvers<() => void>();
    world.upstream.answer = (_request, response) =>
      arrived.resolve(() => response.writeHead(200, { 'content-type': 'application/json' }).end('{"made":true}'));
    void mcp.request('tools/call', { name: 'write_platform', arguments: args }, 4713).catch(() => {});
    const finish = await arrived.promise;
    mcp.notify('notifications/cancelled', { requestId: 4713 });
    mcp.child.stdin!.end();
    const late = setTimeout(() => mcp.child.kill(), 8_000);
    expect(await mcp.ended, 'it ends by itself').toBe(0);
    clearTimeout(late);
    finish();
    world.upstream.answer = undefined;
    expect(sentFor(args)).toBe(1);
  });

  test('a client killed during a write, and refused in between, gets the result of the write, which was made once', async () => {
    const args = { ...SAID, endpoint: '/items/9', method: 'PATCH', data: { title: `refused ${++titles}` } };
    const arrived = Promise.withResolvers<() => void>();
    world.upstream.answer = (_request, response) => {
      const finish = () => response.writeHead(200, { 'content-type': 'application/json' }).end('{"made":true}');
      // Lets a second call through immediately, if one is sent.
      if (sentFor(args) > 1) finish();
      else arrived.resolve(finish);
    };
    const other = await organisation.agent();
    const its = writeProfile(other);
    const start = async () => {
      const mcp = startMcp(its);
      await shakeHands(mcp);
      return mcp;
    };
    const killed = await start();
    void killed.request('tools/call', { name: 'write_platform', arguments: args });
    const finish = await arrived.promise;
    killed.child.kill('SIGKILL');
    await killed.ended;
    const move = (verb: string) => organisation.ask('POST', `/owner/agents/${other.agentId}/${verb}`, {});
    await move('suspend');
    const refused = await callTool(await start(), 'write_platform', args);
    expect(refused.structuredContent).toMatchObject({ status: 'halted', code: 'agent_suspended' });
    expect(refused.structuredContent.next).toMatch(/^Stop now.*exactly the same arguments.*not made twice/s);
    await move('resume');
    const again = callTool(await start(), 'write_platform', args);
    finish();
    expect((await again).structuredContent).toMatchObject({ status: 'answered', data: { made: true } });
    world.upstream.answer = undefined;
    expect(sentFor(args)).toBe(1);
  });

  test('the result of a call that was made while its agent is suspended is delivered later, and the call is not made twice', async () => {
    const other = await organisation.agent();
    const mcp = startMcp(writeProfile(other), ['--wait', '0']);
    await shakeHands(mcp);
    const args = held();
    const { approval_id } = (await callTool(mcp, 'write_platform', args)).structuredContent;
    await decide(approval_id, 'approve');
    await vi.waitUntil(() => sentFor(args) === 1, { timeout: 15_000, interval: 20 });
    const move = (verb: string) => organisation.ask('POST', `/owner/agents/${other.agentId}/${verb}`, {});
    await move('suspend');
    const check = () => callTool(mcp, 'check_approval', { approval_id });
    const code = async () => (await check()).structuredContent.code;
    await vi.waitUntil(async () => (await code()) === 'result_withheld', { timeout: 15_000, interval: 50 });
    const { isError, structuredContent } = await check();
    expect(isError).toBe(true);
    expect(structuredContent.detail).toMatch(/^A person approved the call, and it was made once, but/);
    expect(structuredContent.next).toMatch(/^Do not submit the call again\. .*check_approval/);
    expect(structuredContent.next).not.toContain('read_platform');
    await move('resume');
    const again = await callTool(mcp, 'write_platform', args);
    expect(again.structuredContent).toMatchObject({ status: 'answered', approval_id });
    expect(sentFor(args)).toBe(1);
  });

  test('a cancelled call gets no answer, the broker’s long poll ends, and the call stays held', async () => {
    const mcp = await handshake();
    const before = await pending();
    const args = held();
    const lines = mcp.lines.length;
    void mcp.request('tools/call', { name: 'write_platform', arguments: args }, 4711);
    const id = await newlyHeld(before);
    await isWaiting(id);
    mcp.notify('notifications/cancelled', { requestId: 4711, reason: 'The person pressed escape.' });
    await vi.waitUntil(() => waitersFor(id) === 0, { timeout: 15_000, interval: 5 });
    await decide(id, 'approve');
    const found = await callTool(mcp, 'check_approval', { approval_id: id });
    expect(found.structuredContent).toMatchObject({ status: 'answered', approval_id: id });
    expect(mcp.lines.slice(lines).filter((line) => JSON.parse(line).id === 4711)).toEqual([]);
  });

  test('a client killed while it waits finds the call again, by its id or by the identical call', async () => {
    const [one, two] = [held(), held()];
    const ids: string[] = [];
    for (const args of [one, two]) {
      const mcp = await ownServer();
      const before = await pending();
      void mcp.request('tools/call', { name: 'write_platform', arguments: args });
      const id = await newlyHeld(before);
      await isWaiting(id);
      mcp.child.kill('SIGKILL');
      await mcp.ended;
      ids.push(id);
    }
    const many = (await pending()).length;
    const mcp = await handshake({}, ['--wait', '0']);
    const again = await callTool(mcp, 'write_platform', one);
    expect(again.structuredContent).toMatchObject({ status: 'pending_approval', approval_id: ids[0] });
    expect((await pending()).length).toBe(many);
    for (const id of ids) await decide(id, 'approve');
    const made = await callTool(mcp, 'write_platform', one);
    expect(made.structuredContent).toMatchObject({ status: 'answered', approval_id: ids[0] });
    const found = await callTool(mcp, 'check_approval', { approval_id: ids[1] });
    expect(found.structuredContent).toMatchObject({ status: 'answered', approval_id: ids[1] });
    expect([sentFor(one), sentFor(two)]).toEqual([1, 1]);
  });

  test('gets the link as text, and no form to approve in', async () => {
    const mcp = await handshake({ elicitation: { form: {} } }, ['--wait', '0']);
    const answer = await callTool(mcp, 'write_platform', held());
    expect(answer.structuredContent.status).toBe('pending_approval');
    expect(mcp.told.filter(({ method }) => method === 'elicitation/create')).toEqual([]);
  });
});

/** Waits long enough that a refusal counts as a person's (mcp/tools/hold.ts). */
const aPersonReads = () => new Promise((later) => setTimeout(later, 2_100));

describe('a client that opens links', () => {
  test('with a handshake: is asked to open the approval’s link, and a decision made elsewhere closes the dialog', async () => {
    const mcp = await handshake(URL_DIALOG);
    const args = held();
    const answering = callTool(mcp, 'write_platform', args);
    const asked = await mcp.next(({ method }) => method === 'elicitation/create');
    const { elicitationId: id } = asked.params;
    expect(asked.params).toMatchObject({ mode: 'url', url: urlOf(id) });
    const over = mcp.next(({ method }) => method === 'notifications/elicitation/complete');
    await decide(id, 'approve');
    expect((await answering).structuredContent).toMatchObject({ status: 'answered', approval_id: id });
    expect((await over).params).toEqual({ elicitationId: id });
    expect(sentFor(args)).toBe(1);
  });

  test('with a handshake: when the dialog fails, the request stays open instead', async () => {
    const mcp = await handshake(URL_DIALOG);
    const answering = callTool(mcp, 'write_platform', held());
    const asked = await mcp.next(({ method }) => method === 'elicitation/create');
    mcp.write(`${JSON.stringify({ jsonrpc: '2.0', id: asked.id, error: { code: -32603, message: 'No window.' } })}\n`);
    await isWaiting(asked.params.elicitationId);
    await decide(asked.params.elicitationId, 'approve');
    expect((await answering).structuredContent).toMatchObject({ status: 'answered' });
  });

  /** Makes a held call of a client that shows dialogs, and returns how to answer its dialog. */
  async function dialog(mcp: McpProcess) {
    const args = held();
    const answering = callTool(mcp, 'write_platform', args);
    const asked = await mcp.next(({ method }) => method === 'elicitation/create');
    const say = (action: string) =>
      mcp.write(`${JSON.stringify({ jsonrpc: '2.0', id: asked.id, result: { action } })}\n`);
    return { args, answering, id: asked.params.elicitationId as string, say };
  }

  test('with a handshake: after an accept the call is made; after a decline or cancel it waits for an approval elsewhere', async () => {
    const mcp = await handshake(URL_DIALOG);
    for (const [action, status] of [
      ['accept', 'answered'],
      ['decline', 'pending_approval'],
      ['cancel', 'pending_approval'],
    ] as const) {
      const { answering, id, say } = await dialog(mcp);
      if (action !== 'accept') await aPersonReads();
      say(action);
      if (action === 'accept') await decide(id, 'approve');
      const { structuredContent } = await answering;
      expect(structuredContent, action).toMatchObject({ status, approval_id: id });
      if (action !== 'accept') expect(structuredContent.detail, action).toContain('they did not open the link');
    }
  });

  test('with a handshake: an immediate decline or cancel counts as the client’s own, and the request stays open', async () => {
    const mcp = await handshake(URL_DIALOG);
    for (const action of ['decline', 'cancel']) {
      const { args, answering, id, say } = await dialog(mcp);
      say(action);
      await isWaiting(id);
      await decide(id, 'approve');
      const { structuredContent } = await answering;
      expect(structuredContent, action).toMatchObject({ status: 'answered', approval_id: id });
      expect(sentFor(args), action).toBe(1);
    }
  });

  test('an immediate decline without a decision meanwhile is answered with a note that nobody was shown the link', async () => {
    const mcp = await handshake(URL_DIALOG, ['--wait', '0']);
    const answering = callTool(mcp, 'write_platform', held());
    const asked = await mcp.next(({ method }) => method === 'elicitation/create');
    mcp.write(`${JSON.stringify({ jsonrpc: '2.0', id: asked.id, result: { action: 'decline' } })}\n`);
    const { structuredContent } = await answering;
    expect(structuredContent).toMatchObject({ status: 'pending_approval', approval_id: asked.params.elicitationId });
    expect(structuredContent.detail).toContain('nobody was shown the link');
  });

  test('stateless: gets the link as required input, and the result when it sends the response back', async () => {
    const mcp = startMcp(profile, ['--wait', '1']);
    const args = held();
    const { result: first } = await stateless(mcp, args, URL_DIALOG);
    expect(first.resultType).toBe('input_required');
    const { params, method } = first.inputRequests.approval;
    expect([method, params.mode, params.message]).toEqual(['elicitation/create', 'url', NEWS]);
    const id = params.url.split('/').at(-1);
    // This revision has no id, but the SDK in Rust reads no link without one: Copilot CLI then reports a failure.
    expect(params).toMatchObject({ url: urlOf(id), elicitationId: id });
    const back = (action: string) => ({ requestState: first.requestState, inputResponses: { approval: { action } } });
    const atOnce = await stateless(mcp, args, URL_DIALOG, back('decline'));
    expect(atOnce.result.structuredContent).toMatchObject({ status: 'pending_approval', approval_id: id });
    expect(atOnce.result.structuredContent.detail).toContain('nobody was shown the link');
    await aPersonReads();
    const declined = await stateless(mcp, args, URL_DIALOG, back('decline'));
    expect(declined.result.structuredContent).toMatchObject({ status: 'pending_approval', approval_id: id });
    expect(declined.result.structuredContent.detail).toContain('they did not open the link');
    const opened = await stateless(mcp, args, URL_DIALOG, back('accept'));
    expect(opened.result.structuredContent).toMatchObject({ status: 'pending_approval', approval_id: id });
    // The state of one call is not accepted for another.
    const other = await stateless(mcp, held(), URL_DIALOG, back('accept'));
    expect(other.result.resultType).toBe('input_required');
    await decide(id, 'approve');
    const made = await stateless(mcp, args, URL_DIALOG, back('accept'));
    expect(made.result.structuredContent).toMatchObject({ status: 'answered', approval_id: id });
    expect(sentFor(args)).toBe(1);
  });
});

describe('a client that supports tasks', () => {
  const task = (mcp: McpProcess, method: string, taskId: string, capabilities: object = TASKS, more: object = {}) =>
    mcp.request(`tasks/${method}`, { taskId, _meta: envelope({ ...capabilities }), ...more });

  test('gets a task with the approval’s lifetime immediately, and reads the result from it, from another process, too', async () => {
    let mcp = startMcp(profile);
    const args = held();
    const { result } = await stateless(mcp, args, TASKS);
    expect(result).toMatchObject({ resultType: 'task', status: 'working', ttlMs: expect.any(Number) });
    expect(result.ttlMs).toBeGreaterThan(23 * 3600 * 1000);
    expect(result.pollIntervalMs).toBeGreaterThanOrEqual(2000);
    expect(result.statusMessage).toBe(`${NEWS}: ${urlOf(result.taskId)}`);
    const working = await task(mcp, 'get', result.taskId);
    expect(working.result).toMatchObject({ resultType: 'complete', taskId: result.taskId, status: 'working' });
    expect(working.result.statusMessage).toBe(result.statusMessage);
    mcp.child.kill('SIGKILL');
    await mcp.ended;
    await decide(result.taskId, 'approve');
    mcp = startMcp(profile);
    const done = await task(mcp, 'get', result.taskId);
    expect(done.result).toMatchObject({ status: 'completed', resultType: 'complete' });
    expect(done.result.result.structuredContent).toMatchObject({ status: 'answered', approval_id: result.taskId });
    expect(sentFor(args)).toBe(1);
  });

  test('gets a denial as a tool error, cannot withdraw a call, and has to declare tasks with each request', async () => {
    const mcp = startMcp(profile);
    const { result } = await stateless(mcp, held(), { ...TASKS, ...URL_DIALOG });
    expect((await task(mcp, 'cancel', result.taskId)).result).toMatchObject({ resultType: 'complete' });
    expect((await task(mcp, 'update', result.taskId, TASKS, { inputResponses: {} })).error).toBeUndefined();
    expect((await task(mcp, 'get', result.taskId)).result.status).toBe('working');
    await decide(result.taskId, 'deny');
    const denied = (await task(mcp, 'get', result.taskId)).result;
    expect(denied).toMatchObject({
      status: 'completed',
      result: { isError: true, structuredContent: { status: 'denied' } },
    });
    for (const method of ['get', 'cancel', 'update']) {
      const undeclared = await task(mcp, method, result.taskId, {}, { inputResponses: {} });
      expect(undeclared.error.code).toBe(-32021);
      const unknown = await task(mcp, method, '3f6b2f0a-1111-4222-8333-444455556666', TASKS, { inputResponses: {} });
      expect(unknown.error).toMatchObject({ code: -32602, message: expect.stringContaining('not found') });
    }
  });

  test('gets no task for a call that is not held, nor without declaring tasks', async () => {
    const mcp = startMcp(profile, ['--wait', '0']);
    const patch = { ...SAID, endpoint: '/items/1', method: 'PATCH', data: { title: 'x' } };
    expect((await stateless(mcp, patch, TASKS)).result.structuredContent.status).toBe('answered');
    const plain = await stateless(mcp, held(), {});
    expect(plain.result).toMatchObject({ resultType: 'complete', structuredContent: { status: 'pending_approval' } });
  });
});
