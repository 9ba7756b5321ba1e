/** POST /lab/mcp (specification, Discovery and Limits), with common clients. */
import { gzipSync } from 'node:zlib';
import { Client as SecondClient, StreamableHTTPClientTransport as SecondTransport } from '@modelcontextprotocol/client';
import { Client as FirstClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as FirstTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { describe, expect, test } from 'vitest';
import { LAB_MAX_BODY_BYTES } from '../../lab/mcp/bounds.ts';
import { MAX_NOTE_LENGTH, MAX_NOTES } from '../../lab/mcp/notes.ts';
import { type Answer, send } from '../world/agent.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { exchange } from '../world/raw.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { givenWorld, startWorld } from '../world/world.ts';

const ME = { name: 'test', version: '1' };
const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
const call = (name: string, args: object = {}) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name, arguments: args },
});

const world = givenWorld();
const address = () => `${world.running.baseUrl}/lab/mcp`;
const notes = async () => (await world.running.services.lab.open()).notes;
const post = (body: unknown, headers: Record<string, string> = {}): Promise<Answer> =>
  send(address(), {
    method: 'POST',
    headers: { ...HEADERS, ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
/** Returns the only message of a stream, or the body. */
const messageOf = ({ text, headers }: Answer) =>
  JSON.parse(headers.get('content-type')?.startsWith('text/event-stream') ? /^data: (.*)$/m.exec(text)![1]! : text);

const clients = {
  'the first generation of the SDK': async (headers: Record<string, string>) => {
    const client = new FirstClient(ME);
    const transport = new FirstTransport(new URL(address()), { requestInit: { headers } });
    // biome-ignore lint/suspicious/noExplicitAny: its own types are at odds with exactOptionalPropertyTypes.
    await client.connect(transport as any);
    return { client, version: transport.protocolVersion };
  },
  'the second generation of the SDK, with initialize': async (headers: Record<string, string>) => {
    const client = new SecondClient(ME);
    const transport = new SecondTransport(new URL(address()), { requestInit: { headers } });
    await client.connect(transport);
    return { client, version: transport.protocolVersion };
  },
  'the second generation of the SDK, stateless': async (headers: Record<string, string>) => {
    const client = new SecondClient(ME, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
    const transport = new SecondTransport(new URL(address()), { requestInit: { headers } });
    await client.connect(transport);
    return { client, version: client.getNegotiatedProtocolVersion() };
  },
};

describe.each(Object.entries(clients))('%s', (name, connect) => {
  test('lists the three tools, and calls them', async () => {
    const { client, version } = await connect({ 'x-probe': 'nobodys business' });
    afterFile(() => client.close());
    expect(version).toBe(name === 'the second generation of the SDK, stateless' ? '2026-07-28' : '2025-11-25');
    const { tools } = await client.listTools();
    expect(tools.map((tool) => [tool.name, tool.annotations?.readOnlyHint])).toEqual([
      ['echo', true],
      ['whoami', true],
      ['write_note', false],
    ]);
    const echoed = await client.callTool({ name: 'echo', arguments: { text: 'Hé\u0000llo' } });
    expect(echoed.content).toEqual([{ type: 'text', text: 'Hé\u0000llo' }]);
    const who = await client.callTool({ name: 'whoami', arguments: {}, _meta: { 'ai.svc/attestation': 'a.b.c' } });
    expect(who.structuredContent).toMatchObject({
      verified: false,
      headers: expect.arrayContaining(['accept', 'content-type', 'host', 'x-probe']),
      meta_keys: expect.arrayContaining(['ai.svc/attestation']),
    });
    expect(JSON.stringify(who)).not.toMatch(/nobodys business|a\.b\.c/);
    const before = (await notes()).all().length;
    const noted = await client.callTool({ name: 'write_note', arguments: { text: `from ${name}` } });
    expect(noted.structuredContent).toMatchObject({ kept: before + 1 });
    expect((await notes()).all().at(-1)?.text).toBe(`from ${name}`);
    const wrong = await client.callTool({ name: 'echo', arguments: {} }).catch((error: Error) => error);
    expect(wrong instanceof Error ? wrong.message : JSON.stringify(wrong)).toMatch(/text/);
  });
});

test.each([
  ['*/*', 200],
  ['application/*, Text/Event-Stream', 200],
  ['application/json', 406],
  ['application/json, text/event-stream;q=0', 406],
])('a request with Accept: %s is a %d', async (accept, status) => {
  expect((await post(call('echo', { text: 'a' }), { accept })).status).toBe(status);
});

describe('invalid requests', () => {
  test.each(['GET', 'DELETE', 'PUT'])('%s is a 405 with the allowed method', async (method) => {
    const answer = await send(address(), { method, headers: { accept: 'text/event-stream' } });
    expectEnvelope(answer, 405, 'method_not_allowed');
    expect(answer.headers.get('allow')).toBe('POST');
  });

  test.each<[string, string, Record<string, string>, number]>([
    ['not JSON', '{', {}, -32700],
    ['an empty body', '', {}, -32700],
    ['another type', JSON.stringify(call('echo', { text: 'a' })), { 'content-type': 'text/plain' }, -32700],
    ['a batch', JSON.stringify(Array.from({ length: 10 }, () => call('whoami'))), {}, -32600],
    ['JSON that is not JSON-RPC', '{"hello":1}', {}, -32600],
    ['a JSON-RPC response', '{"jsonrpc":"2.0","id":7,"result":{}}', {}, -32600],
  ])('%s is refused with a JSON-RPC error', async (what, body, headers, code) => {
    const answer = await post(body, headers);
    // The handshake revisions accept an unexpected response, which has no effect.
    if (what === 'a JSON-RPC response' && answer.status === 202) return expect(answer.text).toBe('');
    expect([answer.status, answer.body.error?.code]).toEqual([400, code]);
    expect((await post(call('echo', { text: 'a' }))).status).toBe(200);
  });

  test.each<[string, string, Record<string, string>, RegExp]>([
    ['text that is not JSON', '{bad', {}, /offset 1: expected a member name/],
    ['another type', '{}', { 'content-type': 'text/plain' }, /Content-Type: application\/json/],
    ['a member twice', '{"id":1,"id":2}', {}, /\/id: this member name is there twice/],
    ['a number that would change', '{"id":1e999}', {}, /\/id: the number 1e999 would be sent as another number/],
    ['another encoding', 'x', { 'content-encoding': 'gzip' }, /Content-Encoding/],
  ])('%s: the error says what is wrong, and where', async (_what, body, headers, message) => {
    expect((await post(body, headers)).body.error).toMatchObject({
      code: -32700,
      message: expect.stringMatching(message),
    });
  });

  test('a subscription is acknowledged, and there are at most sixteen', async () => {
    const listen = (id: number) =>
      fetch(address(), {
        method: 'POST',
        headers: { ...HEADERS, 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'subscriptions/listen' },
        body: JSON.stringify({
          jsonrpc: '2.0',
          id,
          method: 'subscriptions/listen',
          params: {
            notifications: { toolsListChanged: true },
            _meta: {
              'io.modelcontextprotocol/protocolVersion': '2026-07-28',
              'io.modelcontextprotocol/clientCapabilities': {},
            },
          },
        }),
      });
    const first = async (response: Response) =>
      new TextDecoder().decode((await response.body!.getReader().read()).value);
    const open = await Promise.all(Array.from({ length: 16 }, (_, i) => listen(i)));
    for (const response of open) expect(await first(response)).toContain('notifications/subscriptions/acknowledged');
    expect(await (await listen(17)).text()).toContain('Subscription limit reached');
    await world.restart();
    // Stopping the server ends subscriptions, without waiting for a minute.
    expect(await first(await listen(18))).toContain('acknowledged');
  });
});

test('schemas of the tools name no draft of JSON Schema, and arguments are still validated', async () => {
  const { tools } = messageOf(await post({ jsonrpc: '2.0', id: 1, method: 'tools/list' })).result;
  expect(tools.map(({ name }: { name: string }) => name)).toEqual(['echo', 'whoami', 'write_note']);
  expect(tools[0].inputSchema).toMatchObject({ type: 'object', required: ['text'] });
  expect(JSON.stringify(tools)).not.toContain('$schema');
  expect(messageOf(await post(call('echo', { text: 1 }))).result).toMatchObject({ isError: true });
});

test.each([
  ['initialize without parameters', { method: 'initialize' }, /^Invalid params: initialize takes protocolVersion/],
  [
    'initialize without a client',
    { method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {} } },
    /clientInfo/,
  ],
  ['tools/list with an unknown cursor', { method: 'tools/list', params: { cursor: 'x' } }, /^Invalid cursor/],
])('%s is an error -32602 with the reason', async (_what, message, words) => {
  const answered = messageOf(await post({ jsonrpc: '2.0', id: 7, ...message }));
  expect(answered).toEqual({ jsonrpc: '2.0', id: 7, error: { code: -32602, message: expect.stringMatching(words) } });
});

describe('DOS-11 limits', () => {
  const frame = JSON.stringify(call('echo', { text: '' }));
  const sized = (bytes: number) => JSON.stringify(call('echo', { text: 'x'.repeat(bytes - frame.length) }));

  test.each([
    [LAB_MAX_BODY_BYTES, 200],
    [LAB_MAX_BODY_BYTES + 1, 413],
  ])('a body of %i bytes: %i, with its length and in chunks', async (bytes, status) => {
    const body = sized(bytes);
    expect(Buffer.byteLength(body)).toBe(bytes);
    const answer = await post(body);
    expect(answer.status).toBe(status);
    if (status === 413) expectEnvelope(answer, 413, 'payload_too_large');
    else expect(messageOf(answer).result.content[0].text).toHaveLength(bytes - frame.length);
    const port = Number(new URL(world.running.baseUrl).port);
    const head = `POST /lab/mcp HTTP/1.1\r\nHost: localhost:${port}\r\nConnection: close\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`;
    const half = Math.floor(bytes / 2);
    const chunks = [body.slice(0, half), body.slice(half)].map((part) => `${part.length.toString(16)}\r\n${part}\r\n`);
    const raw = await exchange(port, `${head}${chunks.join('')}0\r\n\r\n`);
    expect(raw.status).toBe(status);
  });

  test('a compressed body counts by its decompressed size', async () => {
    const ask = (bytes: number) =>
      fetch(address(), {
        method: 'POST',
        headers: { ...HEADERS, 'content-encoding': 'gzip' },
        body: new Uint8Array(gzipSync(sized(bytes))),
      });
    expect((await ask(LAB_MAX_BODY_BYTES)).status).toBe(200);
    expect((await ask(50 * LAB_MAX_BODY_BYTES)).status).toBe(413);
  });

  test('the length and number of notes is limited', async () => {
    const write = (text: string) => post(call('write_note', { text }));
    expect(messageOf(await write('x'.repeat(MAX_NOTE_LENGTH + 1))).result.isError).toBe(true);
    for (let i = 0; i < MAX_NOTES + 5; i += 15)
      await Promise.all(Array.from({ length: 15 }, () => write('x'.repeat(MAX_NOTE_LENGTH))));
    expect((await notes()).all()).toHaveLength(MAX_NOTES);
  });

  test('60 requests per minute from one address are answered, then 429 with Retry-After', async () => {
    const limited = await startWorld('sqlite', { AGENT_BROKER_LIMIT_FACTOR: '1' });
    const ask = (from: string) =>
      send(`${limited.running.baseUrl}/lab/mcp`, {
        method: 'POST',
        headers: HEADERS,
        body: JSON.stringify(call('echo', { text: 'a' })),
        from,
      });
    const answers = await Promise.all(Array.from({ length: 61 }, () => ask('127.0.0.1')));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(60);
    const [refused] = answers.filter(({ status }) => status !== 200);
    expectEnvelope(refused!, 429, 'rate_limited');
    expect(Number(refused!.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await ask('127.0.0.3')).status).toBe(200);
  });
});

describe('pages of other sites (DNS rebinding)', () => {
  const body = JSON.stringify(call('echo', { text: 'a' }));
  const raw = (host: string, origin?: string) => {
    const port = Number(new URL(world.running.baseUrl).port);
    const head = `POST /lab/mcp HTTP/1.1\r\nHost: ${host}\r\n${origin === undefined ? '' : `Origin: ${origin}\r\n`}`;
    const rest = `Connection: close\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
    return exchange(port, head + rest);
  };

  test.each([
    ['localhost', undefined, 200],
    ['127.0.0.1', 'http://127.0.0.1:6274', 200],
    ['localhost', 'http://localhost:3000', 200],
    ['localhost', 'https://evil.example', 403],
    ['localhost', 'http://localhost.evil.example', 403],
    ['localhost', 'null', 403],
    ['localhost', 'http://localhost@evil.example', 403],
    ['evil.example', undefined, 421],
    ['evil.example', 'http://evil.example', 421],
  ])('Host %s, Origin %s: %i', async (host, origin, status) => {
    expect((await raw(host, origin)).status).toBe(status);
  });

  test('on a listener for all addresses too', async () => {
    const open = await startWorld('sqlite', { HOST: '0.0.0.0' });
    const port = Number(new URL(open.running.baseUrl).port);
    const ask = (host: string) =>
      exchange(
        port,
        `POST /lab/mcp HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      );
    expect((await ask('evil.example')).status).toBe(421);
    expect((await ask('localhost')).status).toBe(200);
  });
});
