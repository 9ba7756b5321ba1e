/** A connection to PostgreSQL that is lost while the server is still committing: what the intent of a call consumes is consumed once. */
import net from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { expectStatus } from '../world/agent.ts';
import { slowCommits } from '../world/slow-commits.ts';
import { newMigratedDatabase, postgresNote, STORES } from '../world/stores.ts';
import { ALLOW_ALL, startWorld, WRITE } from '../world/world.ts';

const COMMIT = 'commit\0';

/** Passes everything on; closes the client's side of the next connection that commits, and lets the server finish. */
async function startCommitCuttingProxy(url: string) {
  const target = new URL(url);
  let isArmed = false;
  let cuts = 0;
  const sockets = new Set<net.Socket>();
  const server = net.createServer((near) => {
    const far = net.connect(Number(target.port || 5432), target.hostname);
    let isCut = false;
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => {});
    }
    near.on('data', (chunk) => {
      far.write(chunk);
      if (!isArmed || !chunk.includes(COMMIT)) return;
      isArmed = false;
      isCut = true;
      cuts++;
      near.destroy();
    });
    near.on('close', () => !isCut && far.destroy());
    far.on('data', (chunk) => !isCut && near.write(chunk));
    far.on('close', () => near.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const through = new URL(url);
  through.hostname = '127.0.0.1';
  through.port = String((server.address() as net.AddressInfo).port);
  return {
    url: through.href,
    cutNextCommit: () => {
      isArmed = true;
    },
    cuts: () => cuts,
  };
}

async function lossyWorld() {
  const proxy = await startCommitCuttingProxy(await newMigratedDatabase());
  const world = await startWorld('sqlite', { DATABASE_URL: proxy.url, DATABASE_CONNECTIONS: '8' });
  onTestFinished(() => world.running.stop());
  const organisation = await world.demoOrganisation();
  return { proxy, world, organisation };
}

describe.runIf(STORES.includes('postgres'))(`a commit that outlasts its connection${postgresNote}`, () => {
  test('a limit is charged once for one call', async () => {
    const { proxy, world, organisation } = await lossyWorld();
    const agent = await organisation.agent({ rules: ALLOW_ALL });
    await organisation.guardrails([
      { name: 'three-a-day', effect: 'deny', scopes: ['demo:write'], limit: { most: 3, per: 'day' } },
    ]);
    await slowCommits(world.db, 'limit_counts', 'insert');
    proxy.cutNextCommit();
    const answer = await agent.act(WRITE);
    expect([answer.status, proxy.cuts()], answer.text).toEqual([200, 1]);
    expect(world.upstream.seen).toHaveLength(1);
    expect((await world.db.selectFrom('limit_counts').select('used').execute()).map(({ used }) => used)).toEqual([1]);
    expect(answer.body._meta.limits).toMatchObject([{ used: 1, left: 2 }]);
  });

  test('the last use of a standing approval is spent on the call that spends it', async () => {
    const { proxy, world, organisation } = await lossyWorld();
    const agent = await organisation.agent();
    const id = await agent.hold(WRITE);
    const standing = { count: 1, for_seconds: 3600, free: [] };
    await expectStatus(200, organisation.approve(id, { standing }));
    world.upstream.seen.length = 0;
    await slowCommits(world.db, 'standing_approvals', 'update');
    proxy.cutNextCommit();
    const answer = await agent.act(WRITE);
    expect([answer.status, proxy.cuts()], answer.text).toEqual([200, 1]);
    expect(world.upstream.seen).toHaveLength(1);
  });
});
