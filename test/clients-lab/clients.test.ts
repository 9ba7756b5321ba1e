/** The platforms' npm clients, configured with the broker's URL as in their line of docs/unmodified.md. */
import { describe, expect, test } from 'vitest';
import { shared } from '../world/world.ts';
import { CLIENTS, type Client, madeByLine } from './clients.ts';
import { withoutLab } from './installed.ts';
import { givenLab } from './lab-world.ts';

describe.skipIf(withoutLab)(`clients of platforms${withoutLab ? ` (skipped: ${withoutLab})` : ''}`, () => {
  const { world, agent: agentOf, approve } = givenLab();

  describe.each(CLIENTS)('$name', (client) => {
    const { platform, read, refused, held } = client;
    const agent = shared(() => agentOf(platform, client));
    /** Creates the client by its line, with these headers on each of its calls. */
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

    test('reads through the broker', async () => {
      expect(await read.call(made())).toMatchObject(read.is as object);
      expect(world.upstream.seen).toHaveLength(1);
    });

    test('throws an error with the reason when a call is refused', async () => {
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
});
