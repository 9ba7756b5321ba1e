/** A store with a high latency: calls on behalf of a person are slow, but succeed. */
import { describe, test } from 'vitest';
import { HOLDERS, place } from '../oauth-client/holders.ts';
import { expectStatus } from '../world/agent.ts';
import { startFaultProxy } from '../world/servers/fault-proxy.ts';
import { newDatabase, postgresNote, STORES } from '../world/stores.ts';

describe.runIf(STORES.includes('postgres'))(`a PostgreSQL 120 ms away${postgresNote}`, () => {
  test.each(HOLDERS)('calls with tokens in $table succeed', async ({ perPerson, call, give }) => {
    const wire = await startFaultProxy(await newDatabase());
    const made = await place('sqlite', { DATABASE_URL: wire.url }, perPerson);
    await give(made);
    wire.slow(60);
    await expectStatus(200, made.agent.act(call));
  });
});
