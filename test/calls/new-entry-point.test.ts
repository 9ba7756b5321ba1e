/** Entry points are thin: one over a raw socket needs only its wire format, everything else is the use case. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { createInterface } from 'node:readline';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Outcome } from '../../broker/audit/outcome.ts';
import { type CallRequest, checkAction, perform } from '../../broker/calls/perform.ts';
import type { Services } from '../../broker/services.ts';
import { parseStrictJson } from '../../json/strict.ts';
import { makeKeyPair, type TestAgent } from '../world/agent.ts';
import { evidenceOf } from '../world/evidence.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { givenWorld, shared } from '../world/world.ts';

/** A call as JSON text, as `POST /v1/actions` accepts it. */
function readAction(text: string): CallRequest['asked'] {
  const parsed = parseStrictJson(text, { nulAllowedIn: ['data'] });
  return parsed.ok ? checkAction(parsed.value) : { ok: false, body: undefined, detail: parsed.error };
}

/** One line per call: `<token> <key or -> <JSON>`. One line per answer: status and JSON. */
function openLineServer(services: Services): Server {
  return createServer((socket) => {
    const lines = createInterface({ input: socket });
    lines.on('line', async (line) => {
      const [, token = '', key, text = ''] = /^(\S+) (\S+) (.*)$/.exec(line) ?? [];
      const asked = readAction(text);
      const platform = asked.ok ? asked.action.platform : '';
      const who = await services.authenticateAgent(token, platform, socket.remoteAddress ?? '');
      if (who.kind !== 'agent') return socket.write(`401 {}\n`);
      const request = { asked, correlationId: 'line', idempotencyKey: key === '-' ? undefined : key };
      const done = await perform(services, who, request, (outcome) => ({ status: 0, body: written(outcome) }));
      if (done.kind === 'answered') return socket.write(`${done.answer.body}\n`);
      return socket.write(`${done.kind} ${JSON.stringify(done)}\n`);
    });
  });
}

/** The complete wire format. */
function written(outcome: Outcome): string {
  const audit = outcome.call.auditId;
  switch (outcome.kind) {
    case 'answered':
      return `answered {"audit":"${audit}","data":${outcome.dataJson}}`;
    case 'held':
      return `held ${JSON.stringify({ audit, approval: outcome.approvalId })}`;
    case 'denied':
      return `denied ${JSON.stringify({ audit, reason: outcome.verdict.reason, halt: outcome.verdict.halt?.cause })}`;
    case 'invalid':
      return `invalid ${JSON.stringify({ audit, code: outcome.code, detail: outcome.detail })}`;
    default:
      return `${outcome.kind} ${JSON.stringify({ audit })}`;
  }
}

const READ = { platform: 'demo', endpoint: '/items/1', method: 'GET', scope: 'demo:read' };
const WRITE = { platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write', data: { title: 'x' } };
const PATCH = { ...WRITE, method: 'PATCH', endpoint: '/items/1' };

describe.each(ONE_STORE)(`an entry point over a raw socket on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());

  async function ask(agent: TestAgent, call: unknown, key = '-'): Promise<[string, Record<string, unknown>]> {
    const server = openLineServer(world.running.services).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    onTestFinished(() => {
      socket.destroy();
      server.close();
    });
    socket.write(`${agent.token()} ${key} ${typeof call === 'string' ? call : JSON.stringify(call)}\n`);
    const [line] = (await once(createInterface({ input: socket }), 'line')) as [string];
    const [kind = ''] = line.split(' ', 1);
    return [kind, JSON.parse(line.slice(kind.length + 1))];
  }
  const rowOf = async (agent: TestAgent, { audit }: Record<string, unknown>) =>
    (await evidenceOf(world, agent, String(audit))).row;

  test('an allowed call is sent and recorded with a receipt', async () => {
    const agent = await organisation.agent();
    const before = world.upstream.seen.length;
    const [kind, body] = await ask(agent, READ);
    expect(kind).toBe('answered');
    expect(world.upstream.seen.length).toBe(before + 1);
    expect(await rowOf(agent, body)).toMatchObject({ result: 'allowed', path: '/items/1', upstream_status: 200 });
  });

  test('a held call waits for a person', async () => {
    const agent = await organisation.agent();
    const [kind, body] = await ask(agent, WRITE);
    expect(kind).toBe('held');
    expect((await agent.get(`/v1/approvals/${body.approval}`)).body.status).toBe('pending');
    expect(await rowOf(agent, body)).toMatchObject({ result: 'held', approval_id: body.approval });
  });

  test('a denied call says why', async () => {
    const agent = await organisation.agent();
    const [kind, body] = await ask(agent, { ...READ, scope: 'demo:admin' });
    expect([kind, body.reason]).toEqual(['denied', 'scope_not_granted']);
    expect(await rowOf(agent, body)).toMatchObject({ result: 'denied', reason: 'scope_not_granted' });
  });

  test.each([
    ['no JSON', '{', /position|JSON|end/],
    ['a member twice', '{"platform":"demo","platform":"x"}', /platform/],
    ['no endpoint', JSON.stringify({ platform: 'demo', method: 'GET', scope: 'demo:read' }), /endpoint/],
  ])('a malformed call (%s) is recorded', async (_what, text, detail) => {
    const agent = await organisation.agent();
    const [kind, body] = await ask(agent, text);
    expect([kind, body.code]).toEqual(['invalid', 'invalid_request']);
    expect(body.detail).toMatch(detail);
    expect(await rowOf(agent, body)).toMatchObject({ result: 'errored', reason: 'invalid_request' });
  });

  test('the same Idempotency-Key makes one call; a different request with it is refused', async () => {
    const agent = await organisation.agent();
    const [first, { audit }] = await ask(agent, PATCH, 'k1');
    const sent = world.upstream.seen.length;
    const [again, repeated] = await ask(agent, PATCH, 'k1');
    expect([first, again]).toEqual(['answered', 'again']);
    expect((repeated.response as { body: string }).body).toContain(String(audit));
    expect((await ask(agent, { ...PATCH, endpoint: '/items/2' }, 'k1'))[1]).toMatchObject({
      code: 'idempotency_key_reused',
    });
    expect(world.upstream.seen.length).toBe(sent);
  });

  test('a halted agent is refused, even for a call that was answered before', async () => {
    const agent = await organisation.agent({ keys: makeKeyPair() });
    await ask(agent, PATCH, 'k2');
    expect((await organisation.ask('POST', `/owner/agents/${agent.agentId}/suspend`, {})).status).toBe(200);
    const [kind, body] = await ask(agent, PATCH, 'k2');
    expect([kind, body.halt]).toEqual(['denied', 'owner_manual']);
  });

  test('an entry point whose client can wait gets the result of the decision', async () => {
    const { services } = world.running;
    const agent = await organisation.agent();
    const asks = async (ms: number) => {
      const who = await services.authenticateAgent(agent.token(), 'demo', '127.0.0.1');
      if (who.kind !== 'agent') throw new Error('the agent is known');
      let left = 0;
      const wait = { ms, enter: () => () => left++ };
      const request = { asked: checkAction(WRITE), correlationId: 'line', wait };
      const done = await perform(services, who, request, () => ({ status: 0 }));
      if (done.kind !== 'waited') throw new Error(`it is ${done.kind}`);
      expect(left).toBe(1);
      return done;
    };
    const [began, first] = [performance.now(), await asks(0)];
    expect([first.end.kind, performance.now() - began < 5_000]).toEqual(['pending', true]);
    const waiting = asks(20_000);
    const pending = async () =>
      (await agent.get('/v1/agents/me/pending-actions')).body.pending as { approval_id: string }[];
    await vi.waitFor(async () => expect(await pending()).toHaveLength(2), { timeout: 5_000, interval: 200 });
    for (const { approval_id: id } of await pending()) expect((await organisation.approve(id)).status).toBe(200);
    const { end, approvalId } = await waiting;
    expect([end.kind, approvalId === first.approvalId]).toEqual(['made', false]);
  });
});
