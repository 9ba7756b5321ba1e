/** Floods of client registrations by strangers (RFC 7591). */
import { describe, expect, test } from 'vitest';
import { jsonPost, send } from '../world/agent.ts';
import { CALLBACK } from '../world/mcp/person.ts';
import { sized } from '../world/runner/thorough.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { startWorld } from '../world/world.ts';

describe.each(ONE_STORE)(`registering clients on %s${postgresNote}`, (store) => {
  test('a flood of clients from some networks displaces no client that registered from another network', async () => {
    const world = await startWorld(store, { TRUSTED_PROXIES: 'loopback', AGENT_BROKER_LIMIT_FACTOR: '1000' });
    const from = async (address: string) => {
      const { status, body } = await send(
        `${world.running.baseUrl}/oauth/register`,
        jsonPost({ client_name: 'x', redirect_uris: [CALLBACK] }, { 'x-forwarded-for': address }),
      );
      expect(status).toBe(201);
      return body.client_id as string;
    };
    const clients = async () =>
      (await world.db.selectFrom('oauth_records').select('id').where('kind', '=', 'Client').execute()).map(
        ({ id }) => id,
      );
    const honest = [await from('192.0.2.1'), await from('2001:db8:1::1')];
    // A /48 counts as one network, however many /64s it has.
    const flood = (n: number) => from(n % 2 === 0 ? `2001:db8:bad:${n.toString(16)}::1` : '198.51.100.7');
    // Most rows are copies of the first two: a thousand real registrations would add nothing.
    const { db } = world.running.broker.store;
    for (const id of [await flood(0), await flood(1)]) {
      const row = await db.selectFrom('oauth_records').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
      const copies = Array.from({ length: sized(490, 1) }, () => ({ ...row, id: crypto.randomUUID() }));
      await db.insertInto('oauth_records').values(copies).execute();
    }
    expect(await clients()).toHaveLength(2 + 2 + 2 * sized(490, 1));
    for (let n = 2; n < sized(70, 1_050); n++) await flood(n);
    const left = await clients();
    expect(left).toHaveLength(1_000);
    expect(left).toEqual(expect.arrayContaining(honest));
  }, 180_000);
});
