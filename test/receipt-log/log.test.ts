/** The receipt log end to end: every final row gets one index, checkpoints are signed, tiles and proofs follow C2SP. */
import { createPublicKey, verify } from 'node:crypto';
import { sql } from 'kysely';
import { describe, expect, test } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { rotateLogKey } from '../../broker/receipt-log/log-keys.ts';
import { thinCheckpoints } from '../../broker/store/thin-checkpoints.ts';
import { send } from '../world/agent.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { longestTurn } from '../world/longest-turn.ts';
import { leafOf, mth, sha256 } from '../world/rfc9162.ts';
import { postgresNote, STORES, testOnOne } from '../world/stores.ts';
import { fresh, givenWorld, READ, WRITE } from '../world/world.ts';

/** Poll interval: a log is signed every 5 s, and polling many times per second, as `expect.poll` does, would be most of the work here. */
const POLLING = { interval: 500 };

/** Verifies a checkpoint with a verifier key, without code of the broker. */
function readCheckpoint(note: string, vkey: string): { size: number; root: Buffer } {
  const [, name, id, material] = /^([^+]+)\+([0-9a-f]{8})\+(.+)$/.exec(vkey)!;
  const [text, lines] = note.split('\n\n');
  const line = lines!.split('\n').find((one) => one.startsWith(`— ${name} `))!;
  const signed = Buffer.from(line.split(' ')[2]!, 'base64');
  expect(signed.subarray(0, 4).toString('hex')).toBe(id);
  const head = Buffer.from('302a300506032b6570032100', 'hex');
  const der = Buffer.concat([head, Buffer.from(material!, 'base64').subarray(1)]);
  const key = createPublicKey({ key: der, format: 'der', type: 'spki' });
  expect(verify(null, Buffer.from(`${text}\n`), key, signed.subarray(4))).toBe(true);
  const [origin, size, root] = text!.split('\n');
  expect(origin).toBe(name);
  return { size: Number(size), root: Buffer.from(root!, 'base64') };
}

describe.each(STORES)(`the receipt log on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = fresh(() => world.demoOrganisation());
  const agent = fresh(() => organisation.agent());

  const ownersBearer = () => mintOwnerSession(world.running.broker, organisation.owner).token;
  const text = async (path: string, bearer = ownersBearer()) =>
    await send(`${world.running.baseUrl}${path}`, { headers: { authorization: `Bearer ${bearer}` } });
  const bytes = async (path: string) => {
    const headers = { authorization: `Bearer ${ownersBearer()}` };
    const answer = await fetch(`${world.running.baseUrl}${path}`, { headers });
    return { status: answer.status, body: Buffer.from(await answer.arrayBuffer()) };
  };
  const status = async () => (await organisation.ask('GET', '/owner/log')).body;
  /** Waits until all existing rows have indexes and a checkpoint covers them. */
  const settled = async () => {
    await expect
      .poll(async () => {
        const { size, waiting, checkpoint } = await status();
        return waiting === 0 && size > 0 && checkpoint?.size === size;
      }, POLLING)
      .toBe(true);
    return await status();
  };
  const finalRows = async () =>
    await world.db
      .selectFrom('audit_rows')
      .select(['id', 'row_hash'])
      .where('organisation_id', '=', organisation.id)
      .where('state', '=', 'final')
      .execute();
  const entries = async (size: number) => {
    const { body } = await bytes(`/orgs/${organisation.id}/tile/entries/000.p/${size}`);
    return Array.from({ length: size }, (_, at) => body.subarray(at * 34 + 2, at * 34 + 34).toString('hex'));
  };

  test('every final row of any entry point has one index, and the checkpoint has the root over all of them', async () => {
    await agent.act(READ);
    const held = await agent.act(WRITE);
    await organisation.deny(held.body.approval_id);
    await agent.act({ ...READ, scope: 'demo:nothing' });
    const { size, origin, keys } = await settled();
    const rows = await finalRows();
    expect(size).toBe(rows.length);
    const logged = await entries(size);
    expect(logged.toSorted()).toEqual(rows.map(({ row_hash }) => row_hash).toSorted());
    const vkeys = await send(`${world.running.baseUrl}/.well-known/svc-log/${organisation.id}`, {});
    expect(vkeys.text.trim().split('\n')).toEqual(keys);
    expect(origin).toBe(`${new URL(world.running.baseUrl).host}/orgs/${organisation.id}`);
    const note = await text(`/orgs/${organisation.id}/checkpoint`);
    const head = readCheckpoint(note.text, keys[0]);
    expect(head.size).toBe(size);
    expect(head.root.equals(mth(logged.map(leafOf)))).toBe(true);
    const tile = await bytes(`/orgs/${organisation.id}/tile/0/000.p/${size}`);
    expect(tile.body.equals(Buffer.concat(logged.map(leafOf)))).toBe(true);
  });

  testOnOne(store)('answers to an agent carry the newest checkpoint, and receipts an inclusion proof', async () => {
    await agent.act(READ);
    const { keys } = await settled();
    await expect.poll(async () => (await agent.act(READ)).body._meta.log?.size, POLLING).toBeGreaterThan(0);
    const { body } = await agent.act(READ);
    const { size, root, at, sig } = body._meta.log;
    expect(Date.parse(at)).toBeGreaterThan(0);
    const name = keys[0].split('+', 1)[0];
    expect(readCheckpoint(`${name}\n${size}\n${root}\n\n— ${name} ${sig}\n`, keys[0]).size).toBe(size);
    const path = `/v1/audit/${body._meta.audit_id}/receipt`;
    await expect.poll(async () => (await agent.request('GET', path)).body.inclusion, POLLING).toBeDefined();
    const receipt = (await agent.request('GET', path)).body;
    const { inclusion } = receipt;
    const head = readCheckpoint(inclusion.checkpoint, keys[0]);
    expect(head.size).toBe(inclusion.size);
    const { row_hash } = JSON.parse(Buffer.from(receipt.receipt.split('.')[1], 'base64url').toString());
    const logged = await entries(inclusion.size);
    expect(logged[inclusion.index]).toBe(row_hash);
    expect(head.root.equals(mth(logged.map(leafOf)))).toBe(true);
    const { first, second, proof } = (
      await organisation.ask('GET', `/owner/log/consistency?first=1&second=${inclusion.size}`)
    ).body;
    expect([first, second]).toEqual([1, inclusion.size]);
    expect(proof.length).toBeGreaterThan(0);
    for (const query of ['first=2&second=1', 'first=1&second=1000000'])
      expectEnvelope(await organisation.ask('GET', `/owner/log/consistency?${query}`), 400, 'invalid_request');
  });

  testOnOne(store)(
    'a new key is announced in the log, and earlier checkpoints still verify with the old key',
    async () => {
      await agent.act(READ);
      const { keys } = await settled();
      const old = (await text(`/orgs/${organisation.id}/checkpoint`)).text;
      await rotateLogKey(world.running.broker);
      await agent.act(READ);
      await expect
        .poll(
          async () => (await organisation.ask('GET', '/owner/audit?reason=log_key_announced')).body.rows.length,
          POLLING,
        )
        .toBeGreaterThan(0);
      const now = await settled();
      expect(now.keys.slice(1)).toEqual(keys);
      readCheckpoint((await text(`/orgs/${organisation.id}/checkpoint`)).text, now.keys[0]);
      readCheckpoint(old, now.keys[1]);
      const [announced] = (await organisation.ask('GET', '/owner/audit?reason=log_key_announced')).body.rows;
      expect(announced.flags.change.vkey).toBe(now.keys[0]);
    },
  );

  testOnOne(store)(
    'a log keeps its name when the URL of the broker changes, and earlier checkpoints still verify',
    async () => {
      await agent.act(READ);
      const { size, origin, keys } = await settled();
      const old = (await text(`/orgs/${organisation.id}/checkpoint`)).text;
      const { environment } = world;
      const port = new URL(world.running.baseUrl).port;
      environment.BASE_URL = `http://127.0.0.1:${port}`;
      try {
        await world.restart();
        const young = await world.demoOrganisation();
        await (await young.agent()).act(READ);
        await (await organisation.agent()).act(READ);
        await expect.poll(async () => (await status()).size, POLLING).toBeGreaterThan(size);
        const now = await settled();
        expect([now.origin, now.keys]).toEqual([origin, keys]);
        expect(new URL(world.running.baseUrl).host).not.toBe(new URL(`http://${origin}`).host);
        const note = (await text(`/orgs/${organisation.id}/checkpoint`)).text;
        expect(readCheckpoint(note, keys[0]).size).toBeGreaterThan(readCheckpoint(old, keys[0]).size);
        const header = JSON.parse((await text('/owner/log/export')).text.split('\n', 1)[0]!);
        expect([header.origin, header.keys]).toEqual([origin, keys]);
        expect((await young.ask('GET', '/owner/log')).body.origin).toBe(`127.0.0.1:${port}/orgs/${young.id}`);
      } finally {
        delete environment.BASE_URL;
        await world.restart();
      }
    },
  );

  test('only the last checkpoint of each past hour is kept', async () => {
    await agent.act(READ);
    const { size: signed } = await settled();
    const hour = 3_600_000;
    const at = [0, 1, 2, hour, hour + 1, 3 * hour, 4 * hour - 1, 4 * hour].map((after) => hour * 1_000 + after);
    const made = at.map((when, index) => ({
      organisation_id: organisation.id,
      size: signed + 1 + index,
      root: `${index}`,
      at: when,
      signature: 'none',
      cosignatures: null,
    }));
    await world.db.insertInto('log_checkpoints').values(made).execute();
    const left = async () =>
      (
        await world.db
          .selectFrom('log_checkpoints')
          .select('at')
          .where('organisation_id', '=', organisation.id)
          .where('signature', '=', 'none')
          .orderBy('at')
          .execute()
      ).map((one) => (Number(one.at) - hour * 1_000) / hour);
    // Without the mark, as in a store from before thinning was introduced.
    await world.db.deleteFrom('meta').where('name', '=', 'checkpoints_thinned_until').execute();
    await thinCheckpoints(world.db, hour * 1_001.5);
    expect(await left()).toEqual([2 / hour, 1, 1 + 1 / hour, 3, 4 - 1 / hour, 4]);
    await thinCheckpoints(world.db, hour * 2_000);
    expect(await left()).toEqual([2 / hour, 1 + 1 / hour, 4 - 1 / hour, 4]);
    expect((await status()).checkpoint.size).toBe(signed);
  });

  // Only on SQLite, whose queries block this thread: there is nothing to measure for PostgreSQL.
  const testOnSqlite = store === 'sqlite' ? test : () => {};
  testOnSqlite(
    'thinning the checkpoints of a busy week reads one hour at a time, and processes every hour while no broker ran',
    async () => {
      const hour = 3_600_000;
      const now = Date.now();
      const first = now - (now % hour) - 200 * hour;
      // One per 5 s, generated by the store: sending 144,000 rows would cost a hundred times as much.
      await sql`insert into log_checkpoints (organisation_id, size, root, at, signature)
      with recursive made(n) as (select 0 union all select n + 1 from made where n < ${sql.lit(200 * 720 - 1)})
      select ${organisation.id}, 1000000 + n, 'root', ${sql.lit(first)} + ${sql.lit(5_000)} * n, 'none' from made`.execute(
        world.db,
      );
      const left = async (until: number) =>
        await world.db
          .selectFrom('log_checkpoints')
          .select('at')
          .where('organisation_id', '=', organisation.id)
          .where('at', '<', until)
          .execute();
      await world.db.deleteFrom('meta').where('name', '=', 'checkpoints_thinned_until').execute();
      // Rounds of a day each.
      const turn = await longestTurn(async () => {
        await thinCheckpoints(world.db, first + 30 * hour);
        await thinCheckpoints(world.db, first + 30 * hour);
        await thinCheckpoints(world.db, first + 31 * hour);
      });
      expect(await left(first + 31 * hour)).toHaveLength(31);
      expect(await left(first + 32 * hour)).toHaveLength(31 + 720);
      // Each hour is read once, and separately.
      expect(turn).toBeLessThan(300);
      await world.db.deleteFrom('log_checkpoints').where('signature', '=', 'none').execute();
    },
    60_000,
  );

  testOnOne(store)('requests for unknown tiles, or for logs of other organisations, answer 404', async () => {
    await agent.act(READ);
    const { size } = await settled();
    const other = await world.demoOrganisation();
    for (const path of [
      `/orgs/${other.id}/checkpoint`,
      `/orgs/${other.id}/tile/0/000.p/1`,
      `/orgs/${organisation.id}/tile/0/000`,
      `/orgs/${organisation.id}/tile/0/000.p/${size + 1}`,
      `/orgs/${organisation.id}/tile/0/000.p/0`,
      `/orgs/${organisation.id}/tile/0/000.p/256`,
      `/orgs/${organisation.id}/tile/0/x000/000.p/1`,
      `/orgs/${organisation.id}/tile/64/000.p/1`,
      `/orgs/${organisation.id}/tile/entries/001.p/1`,
      `/orgs/${organisation.id}/tile/`,
    ])
      expect([path, (await text(path)).status]).toEqual([path, 404]);
    expect((await text(`/orgs/${organisation.id}/checkpoint`, 'nobody')).status).toBe(401);
    expect((await send(`${world.running.baseUrl}/.well-known/svc-log/not-a-uuid`, {})).status).toBe(404);
  });

  testOnOne(store)(
    'a damaged log is not continued, and no contradicting checkpoint is signed; logs of other organisations continue',
    async () => {
      const other = await world.demoOrganisation();
      const neighbour = await other.agent();
      await agent.act(READ);
      const { size, checkpoint } = await settled();
      const mine = () => world.db.updateTable('log_entries').where('organisation_id', '=', organisation.id);
      const { row_hashes } = await world.db
        .selectFrom('log_entries')
        .select('row_hashes')
        .where('organisation_id', '=', organisation.id)
        .executeTakeFirstOrThrow();
      const changed = Buffer.from(row_hashes);
      changed[0]! ^= 1;
      const damages = {
        changed: { row_hashes: changed },
        cut: { row_hashes: changed.subarray(32) },
      };
      for (const [what, damage] of Object.entries(damages)) {
        await mine().set(damage).execute();
        // A restarted process reads the damaged log from the store.
        await world.restart();
        for (let calls = 0; calls < 3; calls++) {
          expect((await agent.act(READ)).status).toBe(200);
          expect((await neighbour.act(READ)).status).toBe(200);
        }
        const theirs = async () => (await other.ask('GET', '/owner/log')).body;
        await expect.poll(async () => (await theirs()).waiting, { message: what, ...POLLING }).toBe(0);
        await expect
          .poll(async () => (await theirs()).checkpoint?.size, { message: what, ...POLLING })
          .toBe((await theirs()).size);
        expect(await status(), what).toMatchObject({ size, checkpoint: { size, root: checkpoint.root } });
        expect((await status()).waiting, what).toBeGreaterThan(0);
      }
      // When repaired, the log continues with all pending rows.
      await mine().set({ row_hashes }).execute();
      await world.restart();
      expect((await settled()).size).toBe((await finalRows()).length);
    },
  );

  testOnOne(store)('invalid pending rows block only the log of their organisation', async () => {
    const other = await world.demoOrganisation();
    const neighbour = await other.agent();
    const row = { organisation_id: organisation.id, row_id: 'x', row_hash: 'zz', finished_at: 1 };
    await world.db.insertInto('log_pending').values(row).execute();
    await agent.act(READ);
    for (let calls = 0; calls < 3; calls++) await neighbour.act(READ);
    await expect
      .poll(async () => (await other.ask('GET', '/owner/log')).body, POLLING)
      .toMatchObject({ size: 3, waiting: 0 });
    expect(await status()).toMatchObject({ size: 0, waiting: 2 });
    await world.db.deleteFrom('log_pending').where('organisation_id', '=', organisation.id).execute();
  });

  test('many rows fill tiles, and the root over all of them is correct', async () => {
    await agent.act(READ);
    const { size: before } = await settled();
    const added = Array.from({ length: 600 }, (_, at) => ({
      organisation_id: organisation.id,
      row_id: crypto.randomUUID(),
      row_hash: sha256(Buffer.from(`${at}`)).toString('hex'),
      finished_at: at,
    }));
    for (let at = 0; at < added.length; at += 100)
      await world.db
        .insertInto('log_pending')
        .values(added.slice(at, at + 100))
        .execute();
    await expect.poll(async () => (await status()).size, POLLING).toBe(before + 600);
    const { size, keys } = await settled();
    const whole = (await bytes(`/orgs/${organisation.id}/tile/entries/000`)).body;
    const second = (await bytes(`/orgs/${organisation.id}/tile/entries/001`)).body;
    const third = (await bytes(`/orgs/${organisation.id}/tile/entries/002.p/${size - 512}`)).body;
    const logged = [whole, second, third].flatMap((body) =>
      Array.from({ length: body.length / 34 }, (_, at) => body.subarray(at * 34 + 2, at * 34 + 34).toString('hex')),
    );
    expect(logged).toHaveLength(size);
    const head = readCheckpoint((await text(`/orgs/${organisation.id}/checkpoint`)).text, keys[0]);
    expect(head.root.equals(mth(logged.map(leafOf)))).toBe(true);
    const level1 = (await bytes(`/orgs/${organisation.id}/tile/1/000.p/2`)).body;
    expect(
      level1.equals(Buffer.concat([mth(logged.slice(0, 256).map(leafOf)), mth(logged.slice(256, 512).map(leafOf))])),
    ).toBe(true);
  });
});
