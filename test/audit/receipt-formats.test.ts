/**
 * Receipts are the same bytes for as long as their rows are kept. receipts/ has rows as each version wrote them, with the
 * receipt that was signed: of a format that is in use none of these lines is ever changed.
 */
import { createPublicKey } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Kysely, sql } from 'kysely';
import { beforeAll, describe, expect, test } from 'vitest';
import { RECEIPT_TYPE, receiptOf, rowHash, signRow } from '../../broker/audit/receipt.ts';
import { verifyReceipt as verifyOffline } from '../../broker/audit/verify-receipt.ts';
import { signCompact, verifyCompact } from '../../broker/crypto/jws.ts';
import { generateSigningKey, importSigningKey } from '../../broker/crypto/key-set.ts';
import { type AuditRow, findAuditRow } from '../../broker/store/audit.ts';
import { migrate } from '../../broker/store/migrate.ts';
import { derivedReceipts } from '../../broker/store/migrations/0019-derived-receipts.ts';
import { openPostgres } from '../../broker/store/postgres.ts';
import { openSqlite } from '../../broker/store/sqlite.ts';
import type { Store } from '../../broker/store/store.ts';
import { afterFile } from '../world/after-file.ts';
import type { TestAgent } from '../world/agent.ts';
import { auditIdOf, verifyReceipt } from '../world/evidence.ts';
import { auditRow } from '../world/rows.ts';
import { newDatabase, newFolder, postgresNote, STORES } from '../world/stores.ts';
import { type Organisation, startWorld, type World } from '../world/world.ts';

const GOLDEN = join(import.meta.dirname, 'receipts');
const KEY_SET = readFileSync(join(GOLDEN, 'keys.json'), 'utf8');
const KEYS = new Map(
  (JSON.parse(KEY_SET) as { keys: { kid: string }[] }).keys.map((jwk) => [
    jwk.kid,
    createPublicKey({ key: jwk, format: 'jwk' }),
  ]),
);

type Golden = { what: string; row: AuditRow; receipt: string | null };
const golden = (file: string): Golden[] =>
  readFileSync(join(GOLDEN, file), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
/** `whole.jsonl`: as written before there were formats. */
const FILES = readdirSync(GOLDEN).filter((name) => name.endsWith('.jsonl'));

test('every format that is in use has its rows', () => {
  const row = auditRow({ state: 'final', finished_at: 1, result: 'allowed' });
  signRow(row, importSigningKey(generateSigningKey()), signCompact, 'did:web:x');
  expect(FILES).toEqual([
    'format-1.jsonl',
    'format-2.jsonl',
    'format-3.jsonl',
    'format-4.jsonl',
    'format-5.jsonl',
    'format-6.jsonl',
    'whole.jsonl',
  ]);
  expect(FILES).toContain(`format-${row.receipt_format}.jsonl`);
  const push = auditRow({ state: 'final', finished_at: 1, result: 'allowed', flags: '{"pushed_refs":[]}' });
  signRow(push, importSigningKey(generateSigningKey()), signCompact, 'did:web:x');
  expect(FILES).toContain(`format-${push.receipt_format}.jsonl`);
  const ofPerson = auditRow({
    state: 'final',
    finished_at: 1,
    result: 'allowed',
    flags: '{"caller":{"verified":true}}',
  });
  signRow(ofPerson, importSigningKey(generateSigningKey()), signCompact, 'did:web:x');
  expect(FILES).toContain(`format-${ofPerson.receipt_format}.jsonl`);
  const byKey = auditRow({ state: 'final', finished_at: 1, result: 'allowed', flags: '{"static_key":"a"}' });
  signRow(byKey, importSigningKey(generateSigningKey()), signCompact, 'did:web:x');
  expect(FILES).toContain(`format-${byKey.receipt_format}.jsonl`);
  const standing = auditRow({
    state: 'final',
    finished_at: 1,
    result: 'allowed',
    flags: '{"standing_approval":{"id":"a","left":1}}',
  });
  signRow(standing, importSigningKey(generateSigningKey()), signCompact, 'did:web:x');
  expect(FILES).toContain(`format-${standing.receipt_format}.jsonl`);
  const traced = auditRow({ state: 'final', finished_at: 1, result: 'allowed', flags: '{"trace_id":"4b"}' });
  signRow(traced, importSigningKey(generateSigningKey()), signCompact, 'did:web:x');
  expect(FILES).toContain(`format-${traced.receipt_format}.jsonl`);
  const formats = (file: string) => [...new Set(golden(file).map(({ row }) => row.receipt_format ?? null))];
  expect(formats('whole.jsonl')).toEqual([null]);
  expect(formats('format-1.jsonl')).toEqual([1, null]);
  expect(formats('format-2.jsonl')).toEqual([2]);
  expect(formats('format-3.jsonl')).toEqual([3]);
  expect(formats('format-4.jsonl')).toEqual([4]);
  expect(formats('format-5.jsonl')).toEqual([5]);
  expect(formats('format-6.jsonl')).toEqual([6]);
});

describe.each(STORES)(`rows of every format on %s${postgresNote}`, (kind) => {
  let store: Store;
  beforeAll(async () => {
    store =
      kind === 'sqlite'
        ? openSqlite(join(newFolder(), 'store'))
        : openPostgres(await newDatabase(), { connections: 4, onError: () => {} });
    afterFile(() => store.close());
    await migrate(store);
    // As the version before formats left the store: its columns, its rows.
    for (const column of ['receipt_format', 'receipt_issuer'])
      await sql`alter table audit_rows drop column ${sql.ref(column)}`.execute(store.db);
    for (const { row } of golden('whole.jsonl')) await store.db.insertInto('audit_rows').values(row).execute();
    await derivedReceipts(store.db as Kysely<unknown>);
    for (const { row } of FILES.filter((file) => file.startsWith('format-')).flatMap(golden))
      await store.db
        .insertInto('audit_rows')
        .values({ ...row, organisation_id: `${row.organisation_id} 1` })
        .execute();
  });

  test.each(FILES.flatMap((file) => golden(file).map(({ what, ...rest }) => [file, what, rest] as const)))(
    '%s: %s',
    async (file, _what, { row, receipt }) => {
      const { organisation_id, id } = row;
      const place = file === 'whole.jsonl' ? organisation_id : `${organisation_id} 1`;
      const found = { ...(await findAuditRow(store.db, place, id))!, organisation_id };
      expect(found).toEqual({
        ...row,
        receipt_format: row.receipt_format ?? null,
        receipt_issuer: row.receipt_issuer ?? null,
      });
      expect(receiptOf(found)).toBe(receipt);
      expect(rowHash(found)).toBe(row.row_hash);
      if (receipt === null) return;
      const payload = { jti: id, row_hash: row.row_hash };
      expect(verifyCompact(receipt, KEYS, { typ: RECEIPT_TYPE })).toMatchObject({ ok: true, payload });
      expect(verifyOffline(receipt, KEY_SET)).toMatchObject({ ok: true, payload });
    },
  );
});

describe.each(STORES)(`receipts as they are read, on %s${postgresNote}`, (kind) => {
  let world: World;
  let organisation: Organisation;
  let agent: TestAgent;
  beforeAll(async () => {
    world = await startWorld(kind);
    organisation = await world.organisation();
    await organisation.platform();
    agent = await organisation.agent();
  });

  const call = async () =>
    auditIdOf(await agent.act({ platform: 'demo', endpoint: '/items', method: 'GET', scope: 'demo:read' }));
  const rowOf = async (id: string) => (await findAuditRow(world.running.broker.store.db, organisation.id, id))!;
  const change = (id: string, set: Partial<AuditRow>) =>
    world.running.broker.store.db.updateTable('audit_rows').set(set).where('id', '=', id).execute();
  const fetched = async (id: string): Promise<string> => (await agent.get(`/v1/audit/${id}/receipt`)).body.receipt;
  const exported = async (id: string) => {
    const { text } = await organisation.ask('GET', '/owner/audit/export');
    return text
      .trimEnd()
      .split('\n')
      .map((line: string) => JSON.parse(line))
      .find((line: AuditRow) => line.id === id);
  };

  test('a row has the signature of its receipt only, and all of it comes out', async () => {
    const id = await call();
    const row = await rowOf(id);
    expect(row).toMatchObject({ receipt_format: 1, receipt_issuer: world.running.broker.did });
    expect(row.receipt).toMatch(/^[\w-]{86}$/);
    const receipt = await fetched(id);
    expect(receipt.split('.')[2]).toBe(row.receipt);
    await verifyReceipt(world, receipt);
    expect((await exported(id)).receipt).toBe(receipt);
  });

  test('a row of an earlier version has the whole receipt, which comes out as it is', async () => {
    const id = await call();
    const receipt = await fetched(id);
    await change(id, { receipt, receipt_format: null, receipt_issuer: null });
    expect(await fetched(id)).toBe(receipt);
    const line = await exported(id);
    expect(line.receipt).toBe(receipt);
    expect(Object.keys(line)).not.toEqual(expect.arrayContaining(['receipt_format']));
    expect(Object.keys(line)).not.toEqual(expect.arrayContaining(['receipt_issuer']));
  });

  test('the broker may get another address: a receipt keeps the one that it was signed with', async () => {
    const id = await call();
    const receipt = await fetched(id);
    const { broker } = world.running;
    const { did } = broker;
    broker.did = 'did:web:elsewhere.example';
    try {
      expect(await fetched(id)).toBe(receipt);
    } finally {
      broker.did = did;
    }
  });

  test('the receipt of a row that was changed in the store does not verify', async () => {
    const keys = world.running.broker.keys.set('evidence').verifyKeys;
    for (const set of [
      { path: '/others' },
      { row_hash: '0'.repeat(64) },
      { decision: null },
      { receipt_issuer: 'x' },
    ]) {
      const id = await call();
      await change(id, set);
      expect(verifyCompact(await fetched(id), keys, { typ: RECEIPT_TYPE })).toMatchObject({ code: 'bad_signature' });
    }
  });

  test('a format that this version does not know is said, and no receipt is made up', async () => {
    const id = await call();
    const row = { ...(await rowOf(id)), receipt_format: 999 };
    expect(() => receiptOf(row)).toThrow(/format 999, which this version of agent-broker does not know/);
  });
});
