import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from 'vitest';
import { jsonPost, send, type TestAgent } from '../world/agent.ts';
import { expectEnvelope, withoutCalls } from '../world/evidence.ts';
import { exchange } from '../world/raw.ts';
import { givenWorld, READ } from '../world/world.ts';

const BODY = JSON.stringify(READ);

/** These bodies do not reach the store: one store is enough. */
describe('BD-08 the size limit of request bodies', () => {
  let agent: TestAgent;
  const world = givenWorld();
  beforeAll(async () => {
    const organisation = await world.organisation();
    await organisation.platform();
    agent = await organisation.agent();
  });

  const big = () =>
    JSON.stringify({ ...READ, method: 'POST', scope: 'demo:write', data: { a: 'x'.repeat(1024 * 1024) } });

  test('a body over 1 MiB answers 413: with a length, chunked, and as a gzip bomb', async () => {
    const url = `${world.running.baseUrl}/v1/actions`;
    const headers = { authorization: `Bearer ${agent.token()}`, 'content-type': 'application/json' };
    expectEnvelope(
      await withoutCalls(world, () => send(url, { method: 'POST', headers, body: big() })),
      413,
      'payload_too_large',
    );
    const bomb = gzipSync(Buffer.from(`{"a":"${'x'.repeat(50 * 1024 * 1024)}"}`));
    expect(bomb.length).toBeLessThan(100_000);
    const zipped = { method: 'POST', headers: { ...headers, 'content-encoding': 'gzip' }, body: bomb };
    expectEnvelope(await withoutCalls(world, () => send(url, zipped)), 413, 'payload_too_large');
    const text = big();
    const port = Number(new URL(url).port);
    const head = [
      'POST /v1/actions HTTP/1.1',
      'Host: localhost',
      `Authorization: Bearer ${agent.token()}`,
      'Content-Type: application/json',
      'Transfer-Encoding: chunked',
      'Connection: close',
    ];
    const chunked = `${head.join('\r\n')}\r\n\r\n${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`;
    const answer = await withoutCalls(world, () => exchange(port, chunked));
    // The reset may lose the answer, because the body was not read completely.
    expect([0, 413]).toContain(answer.status);
  });

  test('the refusal names the size limit of its route', async () => {
    const tooMuch = async (path: string, size: number) =>
      (
        await send(
          world.running.baseUrl + path,
          jsonPost({ a: 'x'.repeat(size) }, { authorization: `Bearer ${agent.token()}` }),
        )
      ).body.detail;
    expect(await tooMuch('/v1/actions', 1024 * 1024)).toBe('The body is too large: 1 MiB at most.');
    expect(await tooMuch('/v1/approvals/passkeys/sign/begin', 64 * 1024)).toBe(
      'The body is too large: 64 KiB at most.',
    );
  });

  test('a gzip body is accepted; one declared as gzip that is not answers 400', async () => {
    const url = `${world.running.baseUrl}/v1/actions`;
    const headers = {
      authorization: `Bearer ${agent.token()}`,
      'content-type': 'application/json',
      'content-encoding': 'gzip',
    };
    expect((await send(url, { method: 'POST', headers, body: gzipSync(BODY) })).status).toBe(200);
    const garbage = await send(url, { method: 'POST', headers, body: BODY });
    expectEnvelope(garbage, 400, 'invalid_request');
    expect(garbage.body.detail).toBe('The body is not what its Content-Encoding says: send it plain or gzip.');
    const unknown = { ...headers, 'content-encoding': 'compress' };
    expectEnvelope(await send(url, { method: 'POST', headers: unknown, body: BODY }), 400, 'invalid_request');
  });
});
