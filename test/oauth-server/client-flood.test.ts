/** Strangers who register clients in crowds (RFC 7591). */
import { describe, expect, test } from 'vitest';
import { send } from '../world/agent.ts';
import { CALLBACK } from '../world/mcp-person.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { startWorld } from '../world/world.ts';

describe.each(ONE_STORE)(`registering clients on %s${postgresNote}`, (store) => {
  test('a flood of clients from some networks pushes out none that came from another', async () => {
    const world = await startWorld(store, { TRUSTED_PROXIES: 'loopback', AGENT_BROKER_LIMIT_FACTOR: '1000' });
    const from = async (address: string) => {
      const { status, body } = await send(`${world.running.baseUrl}/oauth/register`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-forwarded-for': address },
        body: JSON.stringify({ client_name: 'x', redirect_uris: [CALLBACK] }),
      });
      expect(status).toBe(201);
      return body.client_id as string;
    };
    const clients = async () =>
      (
        await world.running.broker.store.db
          .selectFrom('oauth_records')
          .select('id')
          .where('kind', '=', 'Client')
          .execute()
      ).map(({ id }) => id);
    const honest = [await from('192.0.2.1'), await from('2001:db8:1::1')];
    // A /48 counts as one network, however many /64s it has.
    for (let n = 0; n < 1_050; n++) await from(n % 2 === 0 ? `2001:db8:bad:${n.toString(16)}::1` : '198.51.100.7');
    const left = await clients();
    expect(left).toHaveLength(1_000);
    expect(left).toEqual(expect.arrayContaining(honest));
  }, 180_000);
});
