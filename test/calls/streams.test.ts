/** Streamed calls, through an entry point over a raw socket: /git and /proxy work alike. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { checkAction, perform } from '../../broker/calls/perform.ts';
import type { Services } from '../../broker/services.ts';
import type { TestAgent } from '../world/agent.ts';
import { evidenceOf } from '../world/evidence.ts';
import { refuseAuditRows } from '../world/faults.ts';
import { serveHandler } from '../world/listen.ts';
import { listAuditRows } from '../world/rows.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { CANARY, type Organisation, startWorld, type World } from '../world/world.ts';

/**
 * Accepts one line, `<token> <JSON>`. Answers `<audit id> <status>`, then pieces with their length before each, and `end` once the call is
 * recorded; anything but a stream is one line.
 */
function openStreamServer(services: Services): Server {
  return createServer((socket) => {
    socket.on('error', () => {});
    const gone = once(socket, 'close').then(() => Promise.reject(new Error('the client has left')));
    gone.catch(() => {});
    const write = async (text: string | Buffer) => {
      if (!socket.write(text)) await Promise.race([once(socket, 'drain'), gone]);
    };
    socket.once('data', async (line) => {
      const [, token = '', text = ''] = /^(\S+) (.*)/.exec(String(line)) ?? [];
      const asked = checkAction(JSON.parse(text));
      const who = await services.authenticateAgent(token, asked.ok ? asked.action.platform : '', '127.0.0.1');
      if (who.kind !== 'agent') return socket.destroy();
      const taken = perform(
        services,
        who,
        {
          asked,
          correlationId: 'stream',
          taker: async ({ auditId, status, body }) => {
            await write(`${auditId} ${status}\n`);
            for await (const chunk of body) {
              await write(`${chunk.length.toString(16)}\n`);
              await write(chunk);
            }
          },
        },
        (outcome) => ({ status: 0, body: outcome.kind === 'streamed' ? outcome.ended : `${outcome.kind}\n` }),
      );
      const done = await taken.catch(() => undefined);
      if (done?.kind !== 'answered') return socket.destroy();
      const { body = '' } = done.answer;
      if (body === 'complete') return socket.end('end\n');
      return String(body).endsWith('\n') ? socket.end(body) : socket.destroy();
    });
  });
}

const READ = { platform: 'demo', endpoint: '/items', method: 'GET', scope: 'demo:read' };
const sha256 = (text: string | Buffer) => createHash('sha256').update(text).digest('hex');

describe.each(ONE_STORE)(`a streamed call on %s${postgresNote}`, (store) => {
  let world: World;
  let organisation: Organisation;
  let agent: TestAgent;
  let answer: (response: ServerResponse) => void | Promise<void> = () => {};
  beforeAll(async () => {
    const base_url = await serveHandler((_, response) => {
      response.setHeader('content-type', 'text/plain');
      void answer(response);
    });
    world = await startWorld(store, { AGENT_BROKER_ALLOW_PRIVATE: new URL(base_url).host });
    organisation = await world.organisation();
    await organisation.platform({ manifest: { base_url } });
    agent = await organisation.agent();
  });

  async function ask(call: Record<string, unknown> = READ): Promise<Socket> {
    const server = openStreamServer(world.running.services).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    onTestFinished(() => {
      socket.destroy();
      server.close();
    });
    socket.on('error', () => {});
    socket.write(`${agent.token()} ${JSON.stringify(call)}\n`);
    return socket;
  }

  /** Everything received, and the row of the call. */
  async function whole(socket: Socket) {
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
    });
    await once(socket, 'close');
    const [auditId = ''] = text.split(' ', 1);
    return { text, auditId };
  }
  const rowOf = async (auditId: string) => (await evidenceOf(world, agent, auditId)).row;
  const allRows = () => listAuditRows(world.db, organisation.id, { limit: 100 });
  const flags = (row: { flags: string | null } | undefined) => JSON.parse(row?.flags ?? '{}');

  test('is recorded before it is sent, also for reads, and with everything that was passed on when it has ended', async () => {
    let before: { state: string }[] = [];
    answer = async (response) => {
      before = (await allRows()).filter(({ state }) => state === 'intent');
      response.write('one ');
      response.end('two');
    };
    const { text, auditId } = await whole(await ask());
    expect(before.length).toBe(1);
    expect(text).toMatch(/^\S+ 200\n4\none 3\ntwoend\n$|^\S+ 200\n7\none twoend\n$/);
    const row = await rowOf(auditId);
    expect(row).toMatchObject({ state: 'final', result: 'allowed', upstream_status: 200 });
    expect(flags(row)).toMatchObject({
      ended: 'complete',
      answer_bytes: 7,
      answer_sha256: sha256('one two'),
      request_bytes: 0,
      request_sha256: sha256(''),
    });
  });

  test('is not sent when it cannot be recorded', async () => {
    let asked = 0;
    answer = (response) => {
      asked++;
      response.end('x');
    };
    const end = await refuseAuditRows(world);
    expect((await whole(await ask())).text).toBe('');
    await end();
    expect(asked).toBe(0);
  });

  test('is not completed when its outcome cannot be recorded', async () => {
    const refusing = Promise.withResolvers<() => Promise<void>>();
    answer = async (response) => {
      refusing.resolve(await refuseAuditRows(world, 'final'));
      response.end('all of it');
    };
    const { text } = await whole(await ask());
    await (await refusing.promise)();
    expect(text).toContain('all of it');
    expect(text.endsWith('end\n')).toBe(false);
  });

  test('is recorded as interrupted when the client disconnects, the platform closes, or the credential is found', async () => {
    answer = (response) => {
      const more = setInterval(() => response.write('x'.repeat(1_000)), 5);
      response.on('close', () => clearInterval(more));
    };
    const leaving = await ask();
    const [first] = await once(leaving, 'data');
    leaving.destroy();
    const auditId = String(first).split(' ', 1)[0]!;
    await expect
      .poll(async () => flags((await allRows()).find(({ id }) => id === auditId)).ended)
      .toBe('client_closed');

    answer = (response) => {
      response.setHeader('content-length', 100);
      response.write('some');
      setTimeout(() => response.destroy(), 20);
    };
    const cut = await whole(await ask());
    expect(cut.text.endsWith('end\n')).toBe(false);
    expect(flags(await rowOf(cut.auditId))).toMatchObject({ ended: 'upstream_closed', answer_bytes: 4 });

    answer = (response) => {
      response.setHeader('content-type', 'application/octet-stream');
      response.end(`some ${CANARY} more`);
    };
    const found = await whole(await ask());
    expect(found.text).not.toContain(CANARY.slice(0, 12));
    expect(found.text.endsWith('end\n')).toBe(false);
    const row = await rowOf(found.auditId);
    expect(row).toMatchObject({ result: 'blocked', reason: 'upstream_response_blocked' });
    expect(flags(row).ended).toBe('credential_found');
  });

  test('a credential in a text is masked, and the whole answer is passed on', async () => {
    answer = (response) => response.end(`some ${CANARY} more`) as unknown as undefined;
    const { text } = await whole(await ask());
    expect(text).toContain(`some ${'*'.repeat(CANARY.length)} more`);
    expect(text.endsWith('end\n')).toBe(true);
  });

  test('is denied or held like any call, and then nothing is sent', async () => {
    answer = () => expect.unreachable();
    expect((await whole(await ask({ ...READ, scope: 'demo:admin' }))).text).toBe('denied\n');
    expect((await whole(await ask({ ...READ, method: 'POST', scope: 'demo:write', data: {} }))).text).toBe('held\n');
  });

  test('a large answer is passed on at the pace of its reader', async () => {
    const chunk = Buffer.alloc(64 * 1024, 'y');
    answer = async (response) => {
      for (let i = 0; i < 512 && !response.destroyed; i++)
        if (!response.write(chunk)) await once(response, 'drain').catch(() => {});
      response.end();
    };
    const socket = await ask();
    let bytes = 0;
    let tail = '';
    socket.on('data', (piece) => {
      bytes += piece.length;
      tail = piece.subarray(-4).toString();
    });
    await once(socket, 'close');
    expect(bytes).toBeGreaterThan(32 * 1024 * 1024);
    expect(tail).toBe('end\n');
    expect(world.running.services.budget.held).toEqual({ calls: 0, bytes: 0 });
  });
});
