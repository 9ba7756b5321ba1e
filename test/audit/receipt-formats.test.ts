/**
 * Receipts stay the same bytes for as long as their rows are kept. receipts/ has rows as written by each version, with the signed receipt. For a
 * format in use none of these lines may ever change.
 */
import { createPublicKey } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { decodeJwt } from 'jose';
import { type Kysely, sql } from 'kysely';
import { beforeAll, describe, expect, test } from 'vitest';
import { RECEIPT_TYPE, receiptOf, rowHash, signRow } from '../../broker/audit/receipt.ts';
import { verifyReceipt as verifyOffline } from '../../broker/audit/verify-receipt.ts';
import { signCompact, verifyCompact } from '../../broker/crypto/jws.ts';
import { generateSigningKey, importSigningKey } from '../../broker/crypto/key-set.ts';
import { type AuditRow, findAuditRow } from '../../broker/store/audit.ts';
import { migrate } from '../../broker/store/migrate.ts';
import { derivedReceipts } from '../../broker/store/migrations/0019-derived-receipts.ts';
import { openPostgres } from '../../broker/store/postgres/postgres.ts';
import { openSqlite } from '../../broker/store/sqlite/sqlite.ts';
import type { Store } from '../../broker/store/store.ts';
import { auditIdOf, verifyReceipt } from '../world/evidence.ts';
import { auditRow } from '../world/rows.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { newDatabase, newFolder, postgresNote, STORES } from '../world/stores.ts';
import { givenWorld, shared } from '../world/world.ts';

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
/** `whole.jsonl`: rows from before formats were introduced. */
const FILES = readdirSync(GOLDEN).filter((name) => name.endsWith('.jsonl'));

const signed = (row: Partial<AuditRow>): AuditRow => {
  const whole = auditRow({ state: 'final', finished_at: 1, result: 'allowed', ...row });
  signRow(whole, importSigningKey(generateSigningKey()), signCompact, 'did:web:x');
  return whole;
};

test.each<[format: number, row: Partial<AuditRow>]>([
  [1, {}],
  [2, { flags: '{"pushed_refs":[]}' }],
  [3, { flags: '{"caller":{"verified":true}}' }],
  [4, { flags: '{"static_key":"a"}' }],
  [5, { flags: '{"standing_approval":{"id":"a","left":1}}' }],
  [6, { flags: '{"trace_id":"4b"}' }],
  [7, { kind: 'event', agent_id: null, agent_public_id: null }],
  [8, { flags: '{"workload":"a"}' }],
  [9, { flags: '{"refused_refs":["refs/heads/a"]}' }],
  [9, { flags: '{"push_report":"not_asked"}' }],
])('a new receipt has the lowest format that carries all data of its row: %i', (format, row) => {
  expect(signed(row).receipt_format).toBe(format);
  expect([...new Set(golden(`format-${format}.jsonl`).map((one) => one.row.receipt_format ?? null))]).toEqual(
    // Some events have no receipt.
    format === 1 ? [1, null] : [format],
  );
});

test('rows in whole.jsonl have no format, and receipts/ has exactly one file per format besides', () => {
  expect(FILES).toEqual([...[1, 2, 3, 4, 5, 6, 7, 8, 9].map((format) => `format-${format}.jsonl`), 'whole.jsonl']);
  expect(golden('whole.jsonl').every(({ row }) => row.receipt_format === undefined)).toBe(true);
});

test('the highest format carries the members of all earlier ones, and appends its own at the end', () => {
  const flags = {
    trace_id: '4b',
    standing_approval: { id: 'a', left: 1 },
    static_key: 'k',
    workload: 'w',
    push_report: 'missing',
    refused_refs: ['refs/heads/a'],
    caller: { verified: false, person_id: 'p' },
    pushed_refs: [{ ref: 'refs/heads/a', action: 'create' }],
  };
  const payload = decodeJwt(receiptOf(signed({ flags: JSON.stringify(flags) }))!);
  expect(Object.entries(payload).slice(-9)).toEqual([
    ['row_hash', expect.stringMatching(/^[0-9a-f]{64}$/)],
    ['pushed_refs', flags.pushed_refs],
    ['caller', { identity: 'asserted', person_id: 'p' }],
    ['static_key', 'k'],
    ['standing_approval', flags.standing_approval],
    ['trace_id', '4b'],
    ['workload', 'w'],
    ['refused_refs', flags.refused_refs],
    ['push_report', 'missing'],
  ]);
});

test('registered claims have the types of RFC 7519, which libraries check: without an agent there is no sub', () => {
  const byOwner = decodeJwt(receiptOf(signed({ kind: 'event', agent_id: null, agent_public_id: null }))!);
  expect(byOwner).toMatchObject({ iss: 'did:web:x', jti: expect.any(String), iat: 0, agent: null });
  expect(byOwner).not.toHaveProperty('sub');
  const byAgent = decodeJwt(receiptOf(signed({ agent_public_id: 'agt_a' }))!);
  expect(byAgent).toMatchObject({ sub: 'did:web:x:agents:agt_a', agent: 'agt_a' });
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
    // As the version before formats left the store: only its columns and rows.
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

describe.each(STORES)(`reading receipts on %s${postgresNote}`, (kind) => {
  const world = givenWorld(kind);
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent());

  const call = async () =>
    auditIdOf(await agent.act({ platform: 'demo', endpoint: '/items', method: 'GET', scope: 'demo:read' }));
  const rowOf = async (id: string) => (await findAuditRow(world.db, organisation.id, id))!;
  const change = (id: string, set: Partial<AuditRow>) =>
    world.db.updateTable('audit_rows').set(set).where('id', '=', id).execute();
  const fetched = async (id: string): Promise<string> => (await agent.get(`/v1/audit/${id}/receipt`)).body.receipt;
  const exported = async (id: string) => {
    const { text } = await organisation.ask('GET', '/owner/audit/export');
    return text
      .trimEnd()
      .split('\n')
      .map((line: string) => JSON.parse(line))
      .find((line: AuditRow) => line.id === id);
  };

  test('a row stores only the signature, and the whole receipt is rebuilt from it', async () => {
    const id = await call();
    const row = await rowOf(id);
    expect(row).toMatchObject({ receipt_format: 1, receipt_issuer: world.running.broker.did });
    expect(row.receipt).toMatch(/^[\w-]{86}$/);
    const receipt = await fetched(id);
    expect(receipt.split('.')[2]).toBe(row.receipt);
    await verifyReceipt(world, receipt);
    expect((await exported(id)).receipt).toBe(receipt);
  });

  test('a row of an earlier version stores the whole receipt, which is returned unchanged', async () => {
    const id = await call();
    const receipt = await fetched(id);
    await change(id, { receipt, receipt_format: null, receipt_issuer: null });
    expect(await fetched(id)).toBe(receipt);
    const line = await exported(id);
    expect(line.receipt).toBe(receipt);
    expect(Object.keys(line)).not.toEqual(expect.arrayContaining(['receipt_format']));
    expect(Object.keys(line)).not.toEqual(expect.arrayContaining(['receipt_issuer']));
  });

  test('a receipt keeps its issuer when the URL of the broker changes', async () => {
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

  test('the receipt of a row that was altered in the store does not verify', async () => {
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

  test('an unknown receipt format is an error that names it, and no receipt is returned', async () => {
    const id = await call();
    const row = { ...(await rowOf(id)), receipt_format: 999 };
    expect(() => receiptOf(row)).toThrow(/format 999, which this version of agent-broker does not know/);
  });
});
