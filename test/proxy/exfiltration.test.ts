/**
 * Attempts of a compromised agent to get the credential or to exfiltrate data: each is refused or leaves without it, and each is recorded.
 */

import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Answer, TestAgent } from '../world/agent.ts';
import { evidenceOf, withoutCalls } from '../world/evidence.ts';
import { listAuditRows } from '../world/rows.ts';
import { ALLOW_ALL, CANARY, givenWorld, shared } from '../world/world.ts';
import { type Asked, rawClient } from './raw-client.ts';

let agent: TestAgent;
const world = givenWorld();
const organisation = shared(() => world.demoOrganisation());
beforeAll(async () => {
  await organisation.platform({ id: 'other' });
  agent = await organisation.agent({
    rules: [...ALLOW_ALL, { effect: 'deny', when: 'request.body.to != "ann"', scopes: ['demo:write'] }],
    grants: { demo: { scopeList: ['demo:read', 'demo:write'] } },
  });
});
const ask = rawClient(() => agent);

/** The credential, in each form in which it could be read out of an answer. */
const FORMS = [
  CANARY,
  Buffer.from(CANARY).toString('base64'),
  Buffer.from(CANARY).toString('hex'),
  [...CANARY].map((letter) => `%${letter.charCodeAt(0).toString(16)}`).join(''),
  [...CANARY].reverse().join(''),
];

/** The row of the agent's newest request. */
async function newestRow() {
  const rows = await listAuditRows(world.db, organisation.id, { limit: 20 });
  return rows.find((row) => row.agent_id === agent.id);
}

async function answering(answer: (response: ServerResponse) => void, asked: () => Promise<Answer>): Promise<Answer> {
  world.upstream.answer = (_, response) => answer(response);
  try {
    return await asked();
  } finally {
    world.upstream.answer = undefined;
  }
}

describe('a platform that leaks the credential', () => {
  const read = () => ask('GET', '/proxy/demo-main/items');
  const text = (of: string) => (response: ServerResponse) =>
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ seen: of }));

  test.each<[string, (response: ServerResponse) => void]>([
    ['repeats it', text(`Bearer ${CANARY}`)],
    ['repeats it in base64', text(Buffer.from(`Bearer ${CANARY}`).toString('base64'))],
    ['repeats it in hexadecimal', text(Buffer.from(CANARY).toString('hex'))],
    ['repeats it percent-encoded', text(FORMS[3] ?? '')],
    ['repeats it in a header', (response) => response.setHeader('x-debug', `auth=${CANARY}`).end('{}')],
    [
      'repeats it compressed',
      (response) =>
        response
          .writeHead(200, { 'content-type': 'text/plain', 'content-encoding': 'gzip' })
          .end(gzipSync(`auth ${CANARY}`)),
    ],
    [
      'repeats it in pieces',
      (response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        for (const letter of CANARY) response.write(letter);
        response.end('\n\n');
      },
    ],
    [
      'repeats it in a picture',
      (response) =>
        response
          .writeHead(200, { 'content-type': 'image/png', 'content-length': 4 + CANARY.length })
          .end(Buffer.from(`\x89PNG${CANARY}`, 'latin1')),
    ],
  ])('it %s', async (_, answer) => {
    const answered = await answering(answer, read).catch((error: Error) => error);
    const seen = answered instanceof Error ? '' : `${answered.text} ${JSON.stringify([...answered.headers])}`;
    for (const form of FORMS) expect(seen).not.toContain(form);
    const row = await newestRow();
    expect([row?.result, row?.flags]).toEqual(
      answered instanceof Error || answered.status === 502
        ? ['blocked', expect.stringMatching(/credential_found|redacted/)]
        : ['allowed', expect.stringContaining('"redacted":true')],
    );
  });
});

const METHOD = { headers: { 'x-http-method-override': 'DELETE' } };
const AS_TEXT = { headers: { 'content-type': 'text/plain' } };
const TWO_KEYS = { headers: { 'x-svc-authorization': 'Bearer TOKEN', authorization: 'Bearer mine' } };
const ANN = { body: '{"to":"ann"}' };

/** `TOKEN` stands for the agent's token. */
describe('an agent that requests more than it is allowed', () => {
  test.each<[string, string, string, Asked?]>([
    ['another connection', '404 not_found', 'GET /proxy/other-main/items'],
    ['an endpoint of no scope', '403 endpoint_scope_mismatch', 'GET /proxy/demo-main/admin'],
    ['a scope that it was not granted', '403 scope_not_granted', 'DELETE /proxy/demo-main/items/1'],
    ['another path by dots', '400 invalid_endpoint', 'GET /proxy/demo-main/items/..%2f..%2fadmin'],
    ['another host by slashes', '400 invalid_endpoint', 'GET /proxy/demo-main//evil.example/items'],
    ['another host by user info', '403 endpoint_scope_mismatch', 'GET /proxy/demo-main/@evil.example/items'],
    ['another host by a backslash', '400 invalid_endpoint', 'GET /proxy/demo-main/%5cevil.example'],
    ['another method by a header', '200', 'POST /proxy/demo-main/items', { ...ANN, ...METHOD }],
    ['another method by the query', '400 invalid_endpoint', 'POST /proxy/demo-main/items?_method=DELETE', ANN],
    [
      'a recipient that no rule allows',
      '403 denied_by_policy',
      'POST /proxy/demo-main/items',
      { body: '{"to":"eve"}' },
    ],
    ['a recipient in a text', '403 denied_by_policy', 'POST /proxy/demo-main/items', { body: 'to=eve', ...AS_TEXT }],
    [
      'its token in the body',
      '400 invalid_request',
      'POST /proxy/demo-main/items',
      { body: '{"to":"ann","t":"TOKEN"}' },
    ],
    ['its token in the address', '400 invalid_request', 'GET /proxy/demo-main/items?t=TOKEN'],
    [
      'its token in a header',
      '400 invalid_request',
      'GET /proxy/demo-main/items',
      { headers: { 'if-none-match': 'TOKEN' } },
    ],
    ['a key of its own', '200', 'GET /proxy/demo-main/items', TWO_KEYS],
    [
      'a credential of one hop',
      '200',
      'GET /proxy/demo-main/items',
      { headers: { connection: 'close, authorization' } },
    ],
  ])('%s: %s', async (_, expected, line, asked) => {
    const token = agent.token();
    const put = (value: string) => value.replace('TOKEN', token);
    const [method = '', path = ''] = line.split(' ');
    const headers = Object.entries(asked?.headers ?? {}).map(([name, value]) => [name, put(value)]);
    const before = world.upstream.seen.length;
    const answer = await ask(method, put(path), {
      headers: { authorization: `Bearer ${token}`, ...Object.fromEntries(headers) },
      ...(asked?.body !== undefined && { body: put(String(asked.body)) }),
    });
    const [status, reason] = expected.split(' ');
    expect(answer.status, answer.text).toBe(Number(status));
    const sent = world.upstream.seen.slice(before);
    expect(sent.length).toBe(status === '200' ? 1 : 0);
    for (const { headers: seen, method: made } of sent) {
      expect([made, seen.authorization]).toEqual([method, `Bearer ${CANARY}`]);
      expect(JSON.stringify(seen)).not.toContain(token);
      expect(seen).not.toHaveProperty('x-http-method-override');
    }
    const { row } = await evidenceOf(world, agent, answer.headers.get('x-svc-audit-id') ?? '');
    if (reason === undefined) expect(row.result).toBe('allowed');
    else expect([row.result, row.reason]).toEqual([status === '403' ? 'denied' : 'errored', reason]);
    expect(JSON.stringify(row)).not.toContain(token);
  });

  describe('the agent’s token in a streamed body', () => {
    const writer = shared(() => organisation.agent({ rules: ALLOW_ALL }));
    const LONG = 'x'.repeat(1024 * 1024);
    const write = (body: string, token: string, type: string) =>
      rawClient(() => writer)('POST', '/proxy/demo-main/items', {
        body,
        headers: { authorization: `Bearer ${token}`, 'content-type': type },
      });

    test.each([
      ['within a text', 'text/plain', (token: string) => `${LONG} ${token} ${LONG}`],
      ['at the end of a file', 'application/octet-stream', (token: string) => `${LONG}${token}`],
      ['in JSON', 'application/json', (token: string) => JSON.stringify({ to: 'ann', a: LONG, token })],
    ])('%s: the body is cut off there', async (_, type, bodyOf) => {
      const token = writer.token();
      const answer = await withoutCalls(world, () => write(bodyOf(token), token, type));
      expect([answer.status, answer.text]).toEqual([502, expect.stringContaining('contains the token of the agent')]);
      const { row } = await evidenceOf(world, writer, answer.headers.get('x-svc-audit-id') ?? '');
      expect([row.result, row.reason]).toEqual(['errored', 'upstream_unreachable']);
    });

    test('a prefix of the token, also at the end of the body, is passed on completely', async () => {
      const token = writer.token();
      const body = `${token.slice(0, 60).repeat(30_000)}${token.slice(0, -1)}`;
      expect((await write(body, token, 'text/plain')).status).toBe(200);
      expect(world.upstream.seen.at(-1)!.body === body).toBe(true);
    });
  });
});
