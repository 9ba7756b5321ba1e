/** Clients of platforms as npm has them, given the address of the broker by their line in docs/unmodified.md. */
import { Readable } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { shared } from '../world/given.ts';
import { CLIENTS, type Client, madeByLine } from './clients.ts';
import { load, withoutLab } from './installed.ts';
import { givenLab } from './lab-world.ts';

describe.skipIf(withoutLab)(`clients of platforms${withoutLab ? ` (skipped: ${withoutLab})` : ''}`, () => {
  const { world, agent: agentOf, approve } = givenLab();

  describe.each(CLIENTS)('$name', (client) => {
    const { platform, read, refused, held } = client;
    const agent = shared(() => agentOf(platform, client));
    /** By its line, and with these headers on each of its calls. */
    const made = (headers: Record<string, string> = {}) =>
      madeByLine(client, agent.token(), world.running.baseUrl, headers);
    const thrown = async (call: Client['refused']['call'], client: unknown): Promise<string> => {
      try {
        await call(client);
      } catch (error) {
        return String((error as Error).message);
      }
      throw new Error('this call was to be refused');
    };

    test('reads', async () => {
      expect(await read.call(made())).toMatchObject(read.is as object);
      expect(world.upstream.seen).toHaveLength(1);
    });

    test('throws what says why a call is refused', async () => {
      const message = await thrown(refused.call, made());
      expect(message).toContain('agent-broker: scope_not_granted');
      expect(message).toContain(client.without);
      expect(world.upstream.seen).toEqual([]);
    });

    test('gets the result of a call that was approved, which is made once', async () => {
      const message = await thrown(held.call, made({ 'X-Svc-Wait': '0' }));
      expect(world.upstream.seen).toEqual([]);
      await approve(message);
      expect(await held.call(made({ 'X-Svc-Wait': '0' }))).toMatchObject(held.is as object);
      expect(world.upstream.seen).toHaveLength(1);
    });
  });

  test('a stream that the S3 client sends in chunks, with a checksum after them, arrives as the bytes that it is', async () => {
    const s3 = CLIENTS.find(({ platform }) => platform === 's3')!;
    const agent = await agentOf('s3', { ...s3, heldScope: 's3:buckets.delete' });
    const { PutObjectCommand } = load('@aws-sdk/client-s3');
    let sent: Record<string, string> = {};
    const client = madeByLine(s3, agent.token(), world.running.baseUrl, {}) as {
      send(command: unknown): Promise<unknown>;
      middlewareStack: { add(middleware: unknown, options: unknown): void };
    };
    const watch = (next: (given: unknown) => unknown) => (given: { request: { headers: Record<string, string> } }) => {
      sent = given.request.headers;
      return next(given);
    };
    client.middlewareStack.add(watch, { step: 'finalizeRequest', priority: 'low' });
    for (const size of [2_000, 900_000]) {
      const text = 'x'.repeat(size);
      const pieces = Readable.from([Buffer.from(text.slice(0, 1_000)), Buffer.from(text.slice(1_000))]);
      await client.send(
        new PutObjectCommand({
          Bucket: 'bucket',
          Key: 'new.txt',
          Body: pieces,
          ContentLength: size,
          ContentType: 'text/plain',
        }),
      );
      expect(sent['content-encoding']).toBe('aws-chunked');
      const { headers, body } = world.upstream.seen.at(-1)!;
      expect([body === text, headers['content-encoding'], headers['content-length']]).toEqual([
        true,
        undefined,
        String(size),
      ]);
    }
  });
});
