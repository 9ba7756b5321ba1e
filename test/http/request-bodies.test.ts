/** When a body is read and parsed: only for callers who may use the route, and within its limits. One store is enough. */
import http from 'node:http';
import net from 'node:net';
import { beforeAll, describe, expect, test } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { parsePublicKey } from '../../broker/crypto/public-key.ts';
import { send } from '../world/agent.ts';
import { evidenceOf, expectEnvelope, withoutCalls } from '../world/evidence.ts';
import { givenWorld, READ, shared } from '../world/world.ts';

// biome-ignore lint/suspicious/noExplicitAny: any JSON.
type Json = any;

/** Returns the limit of a field of a request body. `caller.id`: of the asserted form. */
function maxLengthOf(document: Json, path: string, field: string): number {
  const resolve = (schema: Json): Json =>
    schema.$ref === undefined ? schema : document.components.schemas[schema.$ref.split('/').at(-1)];
  const [name = '', inner] = field.split('.');
  const { properties } = resolve(document.paths[path].post.requestBody.content['application/json'].schema);
  const found = resolve(properties[name]);
  const choices: Json[] = (found.anyOf ?? [found]).map(resolve);
  const lengths = choices.map((one) => (inner === undefined ? one : one.properties[inner])?.maxLength);
  return lengths.find((length) => length !== undefined);
}

describe('request bodies', () => {
  let port: number;
  const world = givenWorld('sqlite', { AGENT_BROKER_LIMIT_FACTOR: '1' });
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent());
  beforeAll(() => {
    port = Number(new URL(world.running.baseUrl).port);
  });

  test('a text may have as many characters as the OpenAPI document says: code points, not UTF-16 code units', async () => {
    const document = (await send(`${world.running.baseUrl}/v1/openapi.json`, {})).body;
    const caller = { source: 'slack', id: '' };
    const grants = [{ platform: 'demo', scopes: ['demo:read'] }];
    for (const [path, field, status, body] of [
      ['/v1/actions', 'reason', 200, (reason: string) => ({ ...READ, reason })],
      ['/v1/actions', 'caller.id', 200, (id: string) => ({ ...READ, caller: { ...caller, id } })],
      ['/v1/agents/children', 'name', 201, (name: string) => ({ name, grants })],
      ['/v1/agents/self/diagnostics', 'endpoint', 201, (endpoint: string) => ({ message: 'm', endpoint })],
    ] as const) {
      const most = maxLengthOf(document, path, field);
      const ask = (text: string) => agent.post(path, body(text));
      for (const text of ['a'.repeat(most), '😀'.repeat(most), `${'😀'.repeat(most - 1)}a`]) {
        const answer = await ask(text);
        expect(answer.status, answer.text).toBe(status);
      }
      for (const text of ['a'.repeat(most + 1), '😀'.repeat(most + 1), `${'😀'.repeat(most)}a`]) {
        const answer = await ask(text);
        expectEnvelope(answer, 400, 'invalid_request');
        expect(answer.body.detail).toContain(
          field === 'caller.id' ? 'caller' : `${field}: must have at most ${most} characters`,
        );
      }
    }
  });

  /** Announces a body of 1 MB and sends none of it. Returns status and error code of the answer. */
  function announce(path: string, headers: readonly string[]): Promise<[number, string]> {
    const lines = [`POST ${path} HTTP/1.1`, 'Host: localhost', 'Content-Type: application/json', ...headers];
    return new Promise((resolve, reject) => {
      const socket = net.connect(port, '127.0.0.1');
      let received = '';
      socket.setTimeout(5_000, () => socket.destroy(new Error('the broker waits for the body')));
      socket.setEncoding('utf8').on('data', (text) => {
        received += text;
        const [head = '', body] = received.split('\r\n\r\n');
        if (!body?.endsWith('}')) return;
        socket.destroy();
        resolve([Number(head.split(' ')[1]), JSON.parse(body).error]);
      });
      socket.on('error', reject);
      socket.write(`${lines.join('\r\n')}\r\nContent-Length: 1000000\r\n\r\n{`);
    });
  }
  const bearer = (token: string) => `Authorization: Bearer ${token}`;

  describe('a caller without a valid bearer is refused before the body is read', () => {
    test.each([
      ['no bearer', [], 'missing_token'],
      ['another scheme', ['Authorization: Basic YTpi'], 'invalid_token'],
      ['an invalid bearer', [bearer('abc')], 'invalid_token'],
      ['a gzip body without a bearer', ['Content-Encoding: gzip'], 'missing_token'],
    ])('%s', async (_name, headers, error) => {
      for (const path of ['/v1/actions', '/v1/agents/children', '/v1/access-request', '/owner/policies'])
        expect(await announce(path, headers), path).toEqual([401, error]);
    });

    test('a token of an unknown agent, and one with a wrong signature, repeated or not', async () => {
      const other = await organisation.agent({ keys: world.keys() });
      const wrong = () => agent.token({ agent_id: other.agentId, owner_id: other.ownerId });
      const unknown = agent.token({ agent_id: `agt_${'0'.repeat(20)}` });
      expect(await announce('/v1/actions', [bearer(unknown)])).toEqual([401, 'invalid_signature']);
      expect(await announce('/v1/actions', [bearer(wrong())])).toEqual([401, 'invalid_signature']);
      expect((await other.act(READ)).status).toBe(200);
      expect(await announce('/v1/actions', [bearer(wrong())])).toEqual([401, 'invalid_signature']);
      await world.forgive();
    });

    test('a replaced key, and the new key at its first call', async () => {
      const rotating = await organisation.agent({ keys: world.keys() });
      expect((await rotating.act(READ)).status).toBe(200);
      const before = rotating.token();
      rotating.keys = world.keys();
      const next = parsePublicKey(rotating.keys.publicPem);
      if (!next.ok) throw new Error(next.error);
      await world.db
        .updateTable('agents')
        .set({ public_key_pem: next.pem, key_fingerprint: next.fingerprint })
        .where('id', '=', rotating.id)
        .execute();
      // The agent's last key passes the check before the body, and fails the one after it.
      const late = await rotating.act(READ, { authorization: `Bearer ${before}` });
      expectEnvelope(late, 401, 'invalid_signature');
      expect(await announce('/v1/actions', [bearer(before)])).toEqual([401, 'invalid_signature']);
      expect((await rotating.act(READ)).status).toBe(200);
      await world.forgive();
    });
  });

  describe('an optional body, in chunks and without a Content-Type, as some proxies send a POST', () => {
    /** `body`: content of the chunks. */
    function sendChunks(path: string, body: string, type?: string): Promise<{ status: number; body: Json }> {
      const { token } = mintOwnerSession(world.running.broker, organisation.owner);
      const headers = { authorization: bearer(token).slice('Authorization: '.length), 'transfer-encoding': 'chunked' };
      return new Promise((resolve, reject) => {
        const request = http.request(world.running.baseUrl + path, {
          method: 'POST',
          headers: { ...headers, ...(type !== undefined && { 'content-type': type }) },
        });
        request.on('error', reject).on('response', async (response) => {
          const text = Buffer.concat(await response.toArray()).toString();
          resolve({ status: response.statusCode ?? 0, body: JSON.parse(text) });
        });
        request.end(body);
      });
    }

    test.each([undefined, 'application/json', 'Application/JSON ; charset=utf-8'])(
      'counts as missing when empty: %s',
      async (type) => {
        expect((await sendChunks('/v1/approvals/passkeys/register/begin', '', type)).status).toBe(200);
      },
    );

    test('needs its type when not empty', async () => {
      for (const type of [undefined, 'text/plain', 'application/jsonx'])
        expect((await sendChunks('/v1/approvals/passkeys/register/begin', '{}', type)).body).toMatchObject({
          error: 'invalid_request',
          detail: expect.stringContaining('Content-Type: application/json'),
        });
      expect((await sendChunks('/v1/approvals/passkeys/register/begin', '{}', 'application/json')).status).toBe(200);
    });
  });

  describe('a body that is too large', () => {
    const post = (path: string, body: string) =>
      send(world.running.baseUrl + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      });
    const large = JSON.stringify({ ...READ, reason: 'x'.repeat(1024 * 1024) });

    test('of a governed call has an audit row and a receipt', async () => {
      const answer = await withoutCalls(world, () => agent.act(large));
      expectEnvelope(answer, 413, 'payload_too_large');
      const { row } = await evidenceOf(world, agent, answer.body.audit_id);
      expect(row).toMatchObject({ result: 'errored', reason: 'payload_too_large', platform_id: null });
      expect(answer.headers.get('ratelimit')).toMatch(/"actions";r=\d+/);
    });

    test('is not counted as a malformed call: the agent is not halted', async () => {
      for (let i = 0; i < 51; i++) expect((await agent.act(large)).body.error).toBe('payload_too_large');
      expect((await agent.act(READ)).status).toBe(200);
    });

    test('counts against the limit of the address, and is answered in the dialect of the route', async () => {
      const path = '/v1/trqp/recognition';
      const answers = [];
      for (let i = 0; i < 61; i++) answers.push(await post(path, 'x'.repeat(17 * 1024)));
      expect(answers.map(({ status }) => status)).toEqual([...Array(60).fill(413), 429]);
      expect(answers[0]!.headers.get('ratelimit')).toMatch(/r=59/);
      expect(answers[0]!.headers.get('content-type')).toBe('application/problem+json');
      expect(answers[60]!.headers.get('retry-after')).toMatch(/^\d+$/);
    });
  });
});
