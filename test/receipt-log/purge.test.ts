/** Rows whose retention has expired are deleted in steps, and the rest still verifies: the log proves which were deleted, and hides nothing else. */

import { hash } from 'node:crypto';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { verifyLogExport } from '../../broker/console/static/verify/log-export.js';
import { readVerifierKeys } from '../../broker/console/static/verify/note.js';
import { exportLog } from '../../broker/receipt-log/export-log.ts';
import { purgeJob } from '../../broker/receipt-log/purge.ts';
import { adoptRetentions, isOwnRetention } from '../../broker/retention-authenticity.ts';
import { expectStatus } from '../world/agent.ts';
import { makeRandom } from '../world/random.ts';
import { sized } from '../world/runner/thorough.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { fresh, givenWorld, READ, WRITE } from '../world/world.ts';
import { readAsOwner, recordReads, settledLog } from './read-log.ts';

const DAY_MS = 24 * 3600 * 1000;
const SEED = Number(process.env.TAMPER_SEED ?? Math.floor(Math.random() * 2 ** 32));
const digest = (bytes: Uint8Array) => hash('sha256', bytes, 'buffer');

type Row = { type: 'row'; index: number; row: Record<string, string | number | null>; row_hash: string };

describe.each(ONE_STORE)(`retention on %s (TAMPER_SEED=${SEED})${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = fresh(() => world.demoOrganisation());
  const agent = fresh(() => organisation.agent());

  // A round processes every organisation with a retention, also those of earlier tests.
  afterEach(() => world.db.updateTable('organisations').set({ retention: null }).execute());

  const fetched = (path: string) => readAsOwner(world, organisation, path);
  const settled = (atLeast: number) => settledLog(organisation, atLeast);
  const keep = async (retention: unknown) => await organisation.ask('POST', '/owner/organisation', { retention });
  /** Runs one round: it announces rows, which the next round deletes once a checkpoint covers the announcement. */
  const round = (days: number) => purgeJob(world.running.services)(Date.now() + days * DAY_MS);
  const purge = async (days: number) => {
    await Promise.all([round(days), round(days), round(days)]);
    await settled(1);
    await Promise.all([round(days), round(days)]);
  };
  const placesWithoutRows = async (count: number, finished_at: number) =>
    await world.db
      .insertInto('log_pending')
      .values(
        Array.from({ length: count }, () => ({
          organisation_id: organisation.id,
          row_id: crypto.randomUUID(),
          row_hash: '00'.repeat(32),
          finished_at,
        })),
      )
      .execute();
  const exported = async () => (await fetched('/owner/log/export')).trim().split('\n');
  const verify = async (lines: readonly string[], checkpoints: readonly string[] = []) =>
    await verifyLogExport(lines, {
      keys: await readVerifierKeys(await fetched(`/.well-known/svc-log/${organisation.id}`)),
      receiptKeys: JSON.parse(await fetched('/.well-known/svc-receipt-keys.json')).keys,
      checkpoints,
      digest,
    });
  const rowsIn = (lines: readonly string[]) =>
    lines.map((line) => JSON.parse(line)).filter(({ type }) => type === 'row') as Row[];

  test('retention is set by admins, is recorded, and no row is deleted before it expires', async () => {
    const none = { reads_days: null, calls_days: null, events_days: null };
    expect((await organisation.ask('GET', '/owner/organisation')).body.retention).toEqual(none);
    for (const wrong of [{ reads_days: 30 }, { reads_days: 1.5 }, { all_days: 90 }, { reads_days: 36_501 }, 90])
      expect([wrong, (await keep(wrong)).status]).toEqual([wrong, 400]);
    const approver = await organisation.addOwner('approver');
    await expectStatus(403, organisation.ask('POST', '/owner/organisation', { retention: none }, approver));
    const kept = { ...none, reads_days: 31 };
    expect((await keep({ reads_days: 31 })).body.retention).toEqual(kept);
    const [event] = (await organisation.ask('GET', '/owner/audit?reason=organisation_changed')).body.rows;
    expect(event.flags.change.retention).toEqual(kept);
    const { body } = await agent.act(READ);
    await settled(2);
    await purge(30);
    expect((await agent.request('GET', `/v1/audit/${body._meta.audit_id}/receipt`)).status).toBe(200);
    expect((await organisation.ask('GET', '/owner/audit?reason=audit_purged')).body.rows).toEqual([]);
    expect((await keep(none)).body.retention).toEqual(none);
    await purge(4_000);
    expect((await agent.request('GET', `/v1/audit/${body._meta.audit_id}/receipt`)).status).toBe(200);
  });

  test('rows with expired retention are deleted by kind; the export verifies, and rows deleted otherwise are reported', async () => {
    await keep({ reads_days: 31, calls_days: 60 });
    const reads = await recordReads(world, organisation, agent, 300);
    const held = await agent.act(WRITE);
    const refused = await agent.act({ ...READ, scope: 'demo:nothing' });
    await organisation.deny(held.body.approval_id);
    const size = await settled(304);
    const early = await fetched(`/orgs/${organisation.id}/checkpoint`);

    await round(40);
    // Announced rows are deleted only once a checkpoint covers the announcement, so that every export verifies.
    expect((await agent.request('GET', `/v1/audit/${reads[0]}/receipt`)).status).toBe(200);
    expect(await verify(await exported(), [early])).toMatchObject({ ok: true, purged: 0 });
    await purge(40);
    const events = (await organisation.ask('GET', '/owner/audit?reason=audit_purged')).body.rows;
    const rows = events.map((event: { flags: { change: { rows: number } } }) => event.flags.change.rows);
    expect(rows.reduce((sum: number, one: number) => sum + one, 0)).toBe(300);
    expect(events[0].flags.change).toMatchObject({ kind: 'reads', by: 'broker' });
    for (const id of [reads[0], reads.at(-1)])
      expect(await agent.request('GET', `/v1/audit/${id}/receipt`)).toMatchObject({
        status: 404,
        body: { detail: expect.stringContaining('deleted after its retention') },
      });
    const denied = `/v1/audit/${refused.body._meta.audit_id}/receipt`;
    expect((await agent.request('GET', denied)).status).toBe(200);

    await settled(size + events.length);
    const lines = await exported();
    const whole = await verify(lines, [early]);
    expect(whole.problems).toEqual([]);
    expect(whole).toMatchObject({ ok: true, purged: 300, rows: size - 300 + events.length });

    // Any other removed or changed row is still reported.
    const random = makeRandom(SEED);
    const present = rowsIn(lines);
    for (let round = 0; round < sized(4, 20); round++) {
      const gone = present[Math.floor(random() * present.length)]!;
      const isRemoved = random() < 0.5;
      const forged = lines.flatMap((line) => {
        const one = JSON.parse(line) as Row;
        if (one.type !== 'row' || one.index !== gone.index) return [line];
        return isRemoved ? [] : [JSON.stringify({ ...one, row: { ...one.row, detail: 'nothing to see' } })];
      });
      const { ok, problems } = await verify(forged, [early]);
      const context = `round ${round}: row ${gone.index}: ${JSON.stringify(problems.slice(0, 3))}`;
      expect(ok, context).toBe(false);
      const kind = isRemoved ? 'missing' : 'changed';
      const isNamed = problems.some(
        (one) => one.kind === kind && Number(one.first) <= gone.index && gone.index <= Number(one.last),
      );
      expect(isNamed, context).toBe(true);
    }

    // An event that was altered to cover another row proves nothing.
    const event = present.find(({ row }) => row.reason === 'audit_purged')!;
    const victim = present.find(({ row }) => row.reason === 'no_permission_record' || row.result === 'denied')!;
    const flags = JSON.parse(String(event.row.flags));
    const tile = String(Math.floor(victim.index / 256));
    flags.change.purged[tile] = Buffer.alloc(32, 255).toString('base64');
    const forged = lines.flatMap((line) => {
      const one = JSON.parse(line) as Row;
      if (one.type === 'row' && one.index === victim.index) return [];
      if (one.type !== 'row' || one.index !== event.index) return [line];
      return [JSON.stringify({ ...one, row: { ...one.row, flags: JSON.stringify(flags) } })];
    });
    const kinds = (await verify(forged, [early])).problems.flatMap(({ kind, first, last }) =>
      Number(first) <= victim.index && victim.index <= Number(last) ? [kind] : [],
    );
    expect(kinds).toContain('missing');

    await purge(70);
    expect((await agent.request('GET', denied)).status).toBe(404);
    expect((await organisation.ask('GET', '/owner/approvals')).status).toBe(200);
    expect((await organisation.ask('GET', `/owner/approvals/${held.body.approval_id}`)).status).toBe(200);
    await settled(size + events.length + 1);
    expect(await verify(await exported(), [early])).toMatchObject({ ok: true, problems: [] });
  }, 180_000);

  test('rows that expire during an export are kept until it ends, and the export verifies', async () => {
    await keep({ reads_days: 31 });
    await recordReads(world, organisation, agent, 300);
    await settled(301);
    const lines: string[] = [];
    const under = exportLog(world.running.broker, organisation.id, 0);
    const take = async (): Promise<boolean> => {
      const { value, done } = await under.next();
      if (!done) lines.push(...value.map((line) => JSON.stringify(line)));
      return !done;
    };
    // Only the header and the first tile are read: a slow client.
    for (let group = 0; group < 2; group++) await take();
    const { size } = (await organisation.ask('GET', '/owner/log')).body;
    await purge(40);
    await settled(size + 1);
    await purge(40);
    // An export that begins now has the announcement in its checkpoint, and holds no rows.
    const later = exportLog(world.running.broker, organisation.id, 0);
    await later.next();
    while (await take());
    const whole = await verify(lines);
    expect(whole.problems).toEqual([]);
    expect(whole).toMatchObject({ ok: true, purged: 0, rows: whole.size });
    await purge(40);
    expect(await verify(await exported())).toMatchObject({ ok: true, purged: 300 });
    await later.return(undefined);
    // An export whose client has disconnected holds no rows either.
    const leases = await world.db.selectFrom('leases').select('name').where('name', 'like', 'log export %').execute();
    expect(leases).toEqual([]);
  }, 180_000);

  test('a slow export holds its rows each minute again, and fails when it can hold them no longer', async () => {
    await recordReads(world, organisation, agent, 3);
    const size = await settled(3);
    const began = performance.now();
    const clock = vi.spyOn(performance, 'now');
    onTestFinished(() => clock.mockRestore());
    const setTime = (seconds: number) => clock.mockImplementation(() => began + seconds * 1000);
    const hold = async () => {
      const held = world.db.selectFrom('leases').selectAll().where('name', 'like', 'log export %');
      return (await held.executeTakeFirst())!;
    };
    const begin = async () => {
      setTime(0);
      const lines = exportLog(world.running.broker, organisation.id, 0);
      await lines.next();
      return lines;
    };
    const slow = await begin();
    const first = await hold();
    expect(Number(first.fence)).toBe(size);
    world.clock.skewMs += 60_000;
    setTime(60);
    await slow.next();
    expect(Number((await hold()).until)).toBeGreaterThanOrEqual(Number(first.until) + 60_000);
    await slow.return(undefined);
    expect(await hold()).toBeUndefined();

    // As after ten minutes without a renewal.
    const expired = await begin();
    await world.db.deleteFrom('leases').where('name', 'like', 'log export %').execute();
    setTime(61);
    await expect(expired.next()).rejects.toThrow('Start the export again');

    const late = await begin();
    setTime(24 * 3600 + 1);
    await expect(late.next()).rejects.toThrow('Start the export again');
    expect(await hold()).toBeUndefined();
  });

  test('announced rows are deleted even when no row of the kind follows them', async () => {
    await keep({ reads_days: 31 });
    const { body } = await agent.act(READ);
    const size = await settled(2);
    // Enough entries for more than one step.
    await placesWithoutRows(800, 1);
    await settled(size + 800);
    await purge(40);
    expect((await agent.request('GET', `/v1/audit/${body._meta.audit_id}/receipt`)).status).toBe(404);
  });

  test('rows that finished while the clock was ahead, and those after them, are deleted when they expire by the correct clock', async () => {
    await keep({ reads_days: 31 });
    const before = await agent.act(READ);
    const size = await settled(2);
    world.clock.skewMs = 400 * DAY_MS;
    agent.clock = () => world.running.broker.clock();
    const ahead = await expectStatus(200, agent.act(READ));
    await settled(size + 1);
    world.clock.skewMs = 0;
    const after = await agent.act(READ);
    // Two more tiles.
    await placesWithoutRows(512, Date.now());
    await settled(size + 2 + 512);
    await purge(30);
    const receipts = async () =>
      await Promise.all(
        [before, ahead, after].map(
          async ({ body }) => (await agent.request('GET', `/v1/audit/${body._meta.audit_id}/receipt`)).status,
        ),
      );
    expect(await receipts()).toEqual([200, 200, 200]);
    await purge(40);
    expect(await receipts()).toEqual([404, 404, 404]);
  }, 180_000);

  test('expired events are deleted, except announcements of deletions; a restored store deletes nothing before its review', async () => {
    const bob = await organisation.addOwner('viewer');
    expect((await organisation.ask('DELETE', `/owner/owners/${bob.id}`)).status).toBe(200);
    const former = async () => (await organisation.ask('GET', '/owner/owners')).body.former;
    await keep({ events_days: 31 });
    await settled(2);
    const restored = (value: string | null) =>
      world.db.updateTable('organisations').set({ restored: value }).where('id', '=', organisation.id).execute();
    await restored(JSON.stringify({ at: 1 }));
    await purge(40);
    const changes = async () => (await organisation.ask('GET', '/owner/audit?reason=organisation_changed')).body.rows;
    await restored(null);
    expect(await changes()).toHaveLength(1);
    expect(await former()).toMatchObject([{ email: bob.email }]);
    const made = await organisation.ask('POST', '/owner/audit-sinks', {
      name: 'siem',
      kind: 'webhook',
      format: 'json',
      url: 'https://siem.acme.test/audit',
      from: 'beginning',
    });
    expect(made.text).toContain('siem');
    await purge(40);
    // Rows that an active sink has not received yet are not deleted.
    expect(await changes()).toHaveLength(1);
    await world.db
      .updateTable('audit_sinks')
      .set({ status: 'paused' })
      .where('organisation_id', '=', organisation.id)
      .execute();
    await purge(40);
    expect(await changes()).toHaveLength(0);
    expect(await former()).toEqual([]);
    await settled(3);
    await purge(100);
    await purge(200);
    const purges = (await organisation.ask('GET', '/owner/audit?reason=audit_purged')).body.rows;
    expect(purges.length).toBeGreaterThan(0);
    expect(await verify(await exported())).toMatchObject({ ok: true });
  });

  test('every organisation is processed, however short the rounds are, and whatever fails for another organisation', async () => {
    const others = [await world.demoOrganisation(), await world.demoOrganisation()];
    for (const one of [organisation, ...others]) {
      await one.ask('POST', '/owner/organisation', { retention: { reads_days: 31 } });
      expect((await (await one.agent()).act(READ)).status).toBe(200);
      await vi.waitUntil(async () => (await one.ask('GET', '/owner/log')).body.size >= 2, { timeout: 15_000 });
    }
    const altered = others[0]!;
    const set = (retention: string | null) =>
      world.db.updateTable('organisations').set({ retention }).where('id', '=', altered.id).execute();
    await set('{"reads_days":1}');
    const announced = async (one: typeof organisation) =>
      (await one.ask('GET', '/owner/audit?reason=audit_purged')).body.rows.length;
    const { kept } = await world.db
      .selectFrom('organisations')
      .select((eb) => eb.fn.count<number>('id').as('kept'))
      .where('retention', 'is not', null)
      .executeTakeFirstOrThrow();
    // With no time, each round makes one step: three kinds per organisation.
    const chore = purgeJob(world.running.services, 0);
    const errors = new Set<string>();
    for (let at = 0; at < 3 * Number(kept); at++)
      await chore(Date.now() + 40 * DAY_MS).catch(({ message }) => errors.add(message));
    expect(await Promise.all([organisation, ...others].map(announced))).toEqual([1, 0, 1]);
    expect([...errors]).toEqual([
      `The retention of organisation ${altered.id} was not set by an admin, but in the database: nothing is deleted there until an admin sets it.`,
    ]);
    await set(null);
  });

  test('retention shortened in the database deletes no row until an admin sets it', async () => {
    const { body } = await agent.act(READ);
    await settled(1);
    const shorter = { reads_days: 31, calls_days: null, events_days: null };
    const stored = world.db.updateTable('organisations').where('id', '=', organisation.id);
    await stored.set({ retention: JSON.stringify(shorter) }).execute();
    await expect(purge(40)).rejects.toThrow(`organisation ${organisation.id} was not set by an admin`);
    const receipt = async () => (await agent.request('GET', `/v1/audit/${body._meta.audit_id}/receipt`)).status;
    expect(await receipt()).toBe(200);
    // A seal of another value is not valid.
    await keep({ reads_days: 60 });
    await stored.set({ retention: JSON.stringify(shorter) }).execute();
    await expect(purge(40)).rejects.toThrow('was not set by an admin');
    expect(await receipt()).toBe(200);
    expect((await keep(shorter)).body.retention).toEqual(shorter);
    expect((await organisation.ask('GET', '/owner/audit?reason=organisation_changed')).body.rows).toHaveLength(2);
    await settled(3);
    await purge(40);
    expect(await receipt()).toBe(404);
  }, 180_000);

  test('retention set before seals were introduced is sealed by the first start, once, with a warning', async () => {
    const { store, vault } = world.running.broker;
    const others = [await world.demoOrganisation(), await world.demoOrganisation()];
    const own = store.db.updateTable('organisations').set({ retention: '{"reads_days":31}' });
    const warnings: unknown[] = [];
    const log = { warn: (about: unknown) => void warnings.push(about) };
    const rows = async () =>
      await store.db
        .selectFrom('organisations')
        .selectAll()
        .where(
          'id',
          'in',
          others.map(({ id }) => id),
        )
        .orderBy('created_at')
        .execute();
    await store.db.deleteFrom('meta').where('name', '=', 'retention_sealed').execute();
    await own.where('id', '=', others[0]!.id).execute();
    await adoptRetentions(store, vault, log);
    await own.where('id', '=', others[1]!.id).execute();
    await adoptRetentions(store, vault, log);
    expect((await rows()).map((row) => [row.id === others[0]!.id, isOwnRetention(vault, row)])).toEqual(
      expect.arrayContaining([
        [true, true],
        [false, false],
      ]),
    );
    expect(warnings).toEqual([{ security: true, organisations: 1 }]);
    await store.db
      .updateTable('organisations')
      .set({ retention: null })
      .where(
        'id',
        'in',
        others.map(({ id }) => id),
      )
      .execute();
  });

  test('a row whose time, or whose tile’s time, was altered in the database to look old is not deleted', async () => {
    await keep({ reads_days: 90 });
    const young = await agent.act(READ);
    const altered = await agent.act(READ);
    await settled(3);
    await world.db
      .updateTable('log_entries')
      .set({ last_at: 1 })
      .where('organisation_id', '=', organisation.id)
      .execute();
    await world.db
      .updateTable('audit_rows')
      .set({ finished_at: 1 })
      .where('id', '=', altered.body._meta.audit_id)
      .execute();
    await purge(40);
    const left = await world.db
      .selectFrom('audit_rows')
      .select('id')
      .where('id', 'in', [young.body._meta.audit_id, altered.body._meta.audit_id])
      .execute();
    expect(left).toHaveLength(2);
    expect((await organisation.ask('GET', '/owner/audit?reason=audit_purged')).body.rows).toEqual([]);
  }, 180_000);
});
