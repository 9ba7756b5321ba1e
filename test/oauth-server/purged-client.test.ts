/** A client without authorisations is deleted while an owner authorises it: the client is kept, so that its code can be redeemed. */
import { describe, expect, test } from 'vitest';
import { uuidv4 } from '../../broker/crypto/ids.ts';
import { endMcpAuthorisation, putMcpAuthorisation } from '../../broker/store/mcp-authorisations.ts';
import {
  capUnusedClients,
  findOAuthRecord,
  keepOAuthRecord,
  purgeIdleClients,
  putOAuthRecord,
} from '../../broker/store/oauth-records.ts';
import { inTransaction } from '../../broker/store/transaction.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { givenWorld } from '../world/world.ts';

const HOUR_MS = 3_600_000;
type Remove = (db: Parameters<typeof purgeIdleClients>[0], now: number) => Promise<void>;

describe.runIf(STORES.includes('postgres'))(`deleting clients while owners authorise them${postgresNote}`, () => {
  const world = givenWorld('postgres');
  test.each<[string, boolean, Remove]>([
    ['idle clients', true, purgeIdleClients],
    ['clients beyond the limit', false, (db) => capUnusedClients(db, 0)],
  ])('a client that is being authorised is not deleted with %s', async (_, isIdle, remove) => {
    const organisation = await world.organisation();
    const agent = await organisation.agent();
    const now = Date.now();
    const [client, other] = [uuidv4(), uuidv4()];
    for (const id of [client, other]) {
      const of = { kind: 'Client', id, authorisation_id: null, payload: '{}', created_at: now, source: 'net' };
      await putOAuthRecord(world.db, { ...of, expires_at: isIdle ? null : now + HOUR_MS });
    }
    const id = uuidv4();
    let removed: Promise<void> | undefined;
    await inTransaction(world.db, async (tx) => {
      await keepOAuthRecord(tx, 'Client', client);
      removed = remove(world.db, now);
      // Until the deletion has ended, or waits for this transaction.
      await Promise.race([removed, new Promise((resolve) => setTimeout(resolve, 500))]);
      await putMcpAuthorisation(tx, {
        organisation_id: organisation.id,
        id,
        agent_id: agent.id,
        owner_id: organisation.owner.id,
        client_id: client,
        client_name: 'A client',
        redirect_host: 'localhost',
        scope: 'openid',
        created_at: now,
        expires_at: now + HOUR_MS,
      });
    });
    await removed;
    expect(await findOAuthRecord(world.db, 'Client', client, now)).toBeDefined();
    expect(await findOAuthRecord(world.db, 'Client', other, now)).toBeUndefined();
    await endMcpAuthorisation(world.db, id, 'owner', now - 48 * HOUR_MS);
    await purgeIdleClients(world.db, now);
    expect(await findOAuthRecord(world.db, 'Client', client, now)).toBeUndefined();
  });
});
