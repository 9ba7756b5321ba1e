/** Two brokers on one PostgreSQL: a stream at one reports changes made at the other. */
import { setTimeout as pause } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { expectStatus, type TestAgent } from '../world/agent.ts';

import { type EventReader, readEvents } from '../world/event-stream.ts';
import { keepNoticesDown } from '../world/notice-connections.ts';
import { givenReplica } from '../world/replica.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { givenWorld, type Organisation, shared, WRITE } from '../world/world.ts';

describe.runIf(STORES.includes('postgres'))(`events and replicas on postgres${postgresNote}`, () => {
  let there: TestAgent;
  let mine: EventReader;
  let theirs: EventReader;
  const count = (reader: EventReader): number => reader.events.at(-1)?.data.waiting.approvals;

  const world = givenWorld('postgres');
  const organisation = shared(() => world.demoOrganisation());
  const second = givenReplica(world);
  beforeAll(async () => {
    there = second.asks(await organisation.agent());
    const listen = async ({ owner }: Organisation) =>
      await readEvents(`${world.running.baseUrl}/owner/events`, {
        authorization: `Bearer ${mintOwnerSession(world.running.broker, owner).token}`,
      });
    mine = await listen(organisation);
    theirs = await listen(await world.organisation());
  });

  const hold = () => expectStatus(202, there.act(WRITE));

  test('a call that is held at the other replica is reported here, to its own organisation only', async () => {
    await mine.until(({ events }) => events.length > 0);
    await theirs.until(({ events }) => events.length > 0);
    await hold();
    await mine.until((reader) => count(reader) === 1);
    await pause(500);
    expect(theirs.events.map(({ data }) => data.waiting.approvals).filter((waits) => waits !== 0)).toEqual([]);
  });

  test('MR-06 while no notices arrive, the store is polled instead', async () => {
    const repair = keepNoticesDown(world);
    await pause(1_000);
    await hold();
    const began = performance.now();
    await mine.until((reader) => count(reader) === 2);
    expect(performance.now() - began).toBeLessThan(scaledTimeout(8_000));
    await repair();
  });
});
