/** Clients that wait and retry by themselves, when the broker refuses a call because too many are in flight. */
import { describe, expect, test } from 'vitest';
import { CLIENTS, madeByLine } from './clients.ts';
import { withoutLab } from './installed.ts';
import { givenLab } from './lab-world.ts';

/** `@octokit/rest` and `@linear/sdk` retry nothing by default, and `@notionhq/client` only errors whose `code` is Notion's own. */
const OTHERS = ['@octokit/rest', '@linear/sdk', '@notionhq/client'];
const RETRYING = CLIENTS.filter(({ name }) => !OTHERS.includes(name));

describe.skipIf(withoutLab)(`clients at a busy broker${withoutLab ? ` (skipped: ${withoutLab})` : ''}`, () => {
  const { world, organisation, agent: agentOf } = givenLab('sqlite', { AGENT_BROKER_LIMIT_FACTOR: '1' });

  test.each(RETRYING)('$name retries a call that was refused, and gets its result', async (client) => {
    const agent = await agentOf(client.platform, client);
    const { budget } = world.running.services;
    const leases = Array.from({ length: 256 }, (_, i) =>
      budget.lease({ family: `family ${i % 16}`, organisation: organisation.id }),
    );
    try {
      expect(leases.filter((lease) => lease.begin())).toHaveLength(256);
      const result = client.read.call(madeByLine(client, agent.token(), world.running.baseUrl, {}));
      result.catch(() => {});
      const refused = async (): Promise<{ reason: string }[]> =>
        (await organisation.ask('GET', `/owner/audit?agent=${agent.agentId}&result=blocked`)).body.rows;
      await expect.poll(refused, { timeout: 10_000 }).toMatchObject([{ reason: 'too_many_calls' }]);
      for (const lease of leases) lease.release();
      expect(await result).toMatchObject(client.read.is as object);
      expect(world.upstream.seen).toHaveLength(1);
    } finally {
      for (const lease of leases) lease.release();
    }
  });
});
