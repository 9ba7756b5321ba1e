/** Two replicas on one PostgreSQL: a tool that waits for a person at one replica is notified of a consent completed at the other. */
import { describe, expect, test } from 'vitest';
import { consentLinkIn, STDIO } from '../world/mcp/people.ts';
import { consentAsserted } from '../world/people.ts';
import { givenPeople, slack } from '../world/people-world.ts';
import { givenReplica } from '../world/replica.ts';
import { postgresNote, STORES } from '../world/stores.ts';

describe.runIf(STORES.includes('postgres'))(`people and replicas on postgres${postgresNote}`, () => {
  const { server, world, organisation } = givenPeople('postgres');
  const replica = givenReplica(world);

  test('the call is repeated as soon as the person has finished at the other replica', async () => {
    const call = await STDIO(world, organisation, { at: replica.asks });
    const told = Promise.withResolvers<string>();
    const onprogress = ({ message }: { message?: string }) => {
      const url = consentLinkIn(message);
      if (url) told.resolve(url);
    };
    const args = { platform: 'docs', scope: 'docs:read', endpoint: '/items', caller: slack('U-ANN') };
    const answer = call('read_platform', args, { onprogress });
    answer.catch(told.reject);
    // The test waits for less time than the tool does.
    const { pathname } = new URL(await told.promise);
    await consentAsserted(server, `${world.running.baseUrl}${pathname}`, 'ann');
    expect((await answer).detail).toContain('An owner has to confirm');
  });
});
