/** Hundreds of seeded random tamperings of exports: a verifier with only the export, a saved checkpoint and the key reports each. */

import { hash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { REASONS_WITHOUT_RECEIPT, RECEIPT_TYPE } from '../../broker/audit/receipt.ts';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { COLUMNS } from '../../broker/console/static/verify/export-lines.js';
import { verifyLogExport, WITHOUT_RECEIPT } from '../../broker/console/static/verify/log-export.js';
import { readVerifierKeys, type VerifierKey } from '../../broker/console/static/verify/note.js';
import { remarksOf } from '../../broker/console/static/verify/remarks.js';
import { signCompact } from '../../broker/crypto/jws.ts';
import { logSigner } from '../../broker/receipt-log/log-keys.ts';
import { HASHED_COLUMNS } from '../../broker/store/audit-columns.ts';
import { ROOT } from '../world/checkout.ts';
import { commandHost, runCommand } from '../world/command.ts';
import { makeRandom } from '../world/random.ts';
import { sized, thorough } from '../world/runner/thorough.ts';
import { newFolder } from '../world/stores.ts';
import { givenWorld, READ, shared } from '../world/world.ts';
import { readAsOwner, recordReads } from './read-log.ts';
import {
  copyOf,
  type Export,
  extraTile,
  hashOf,
  isNamed,
  KINDS,
  linesOf,
  parseExport,
  type Row,
  readingOf,
  resign,
  type Signer,
  tamper,
  tamperLines,
} from './tampered.ts';
import { type Bench, CHECKS, open } from './verifier-checks.ts';
import { startVerifier } from './verifier-process.ts';

const hosted = commandHost();

const SEED = Number(process.env.TAMPER_SEED ?? Math.floor(Math.random() * 2 ** 32));
/** Each of the nine kinds, and each way to tamper with lines, occurs several times. */
const TAMPERINGS = sized(45, 500);
const ROWS = 280;

const digest = (bytes: Uint8Array) => hash('sha256', bytes, 'buffer');

describe(`tampering with exports (TAMPER_SEED=${SEED})`, () => {
  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation());
  let whole: Export;
  let keyLines: string;
  let keys: VerifierKey[];
  let kept: string[];
  let receiptKeys: { kid: string }[];
  let signer: Signer;

  const fetched = (path: string) => readAsOwner(world, organisation, path);

  beforeAll(async () => {
    const agent = await organisation.agent();
    await agent.act(READ);
    // Opens its breaker: an event that has no receipt.
    const failing = await organisation.agent();
    for (let i = 0; i < 50; i++) await failing.act({ ...READ, endpoint: '//x' });
    await vi.waitUntil(async () => (await organisation.ask('GET', '/owner/log')).body.checkpoint, {
      timeout: 30_000,
      interval: 500,
    });
    const early = await fetched(`/orgs/${organisation.id}/checkpoint`);
    await recordReads(world, organisation, agent, ROWS);
    await vi.waitUntil(
      async () => {
        const { size, waiting, checkpoint } = (await organisation.ask('GET', '/owner/log')).body;
        return waiting === 0 && checkpoint.size === size && size > ROWS;
      },
      { timeout: 30_000, interval: 500 },
    );
    kept = [early, await fetched(`/orgs/${organisation.id}/checkpoint`)];
    keyLines = await fetched(`/.well-known/svc-log/${organisation.id}`);
    keys = await readVerifierKeys(keyLines);
    signer = await logSigner(world.running.broker);
    receiptKeys = JSON.parse(await fetched('/.well-known/svc-receipt-keys.json')).keys;
    whole = parseExport((await fetched('/owner/log/export')).trim().split('\n'));
  });

  test('an export verifies, with every receipt, and from any row on', async () => {
    const verdict = await verifyLogExport(linesOf(whole), { keys, checkpoints: kept, receiptKeys, digest });
    expect(verdict.problems).toEqual([]);
    expect(verdict).toMatchObject({ ok: true, size: whole.header.size, rows: whole.rows.length });
    expect(verdict.receipts).toBeGreaterThan(ROWS - 1);
    const reasons = whole.rows.filter(({ receipt }) => receipt === null).map(({ row }) => row.reason);
    expect(reasons).toEqual(['breaker_opened']);
    expect(verdict.withoutReceipt).toBe(1);
    const later = (await fetched('/owner/log/export?first=280')).trim().split('\n');
    const part = await verifyLogExport(later, { keys, checkpoints: kept, digest, first: 280 });
    expect([part.problems, part.rows]).toEqual([[], whole.rows.length - 256]);
    // A checkpoint from before the first row of a partial export proves nothing about it, and the verdict says so.
    expect([verdict.uncompared, part.uncompared]).toEqual([
      0,
      kept.filter((note) => Number(note.split('\n')[1]) < 256).length,
    ]);
    expect(part.uncompared).toBeGreaterThan(0);
    expect(remarksOf(part).join(' ')).toMatch(/checkpoints? (was|were) not compared/);
    expect((await verifyLogExport([], { keys, digest })).ok).toBe(false);
  });

  test('the list of rows without receipt in the verifier is right for this and all earlier versions', () => {
    expect(WITHOUT_RECEIPT).toEqual([...REASONS_WITHOUT_RECEIPT]);
    expect(COLUMNS).toEqual(HASHED_COLUMNS);
    const folder = join(ROOT, 'test/audit/receipts');
    const stored = readdirSync(folder)
      .filter((name) => name.endsWith('.jsonl'))
      .flatMap((name) => readFileSync(join(folder, name), 'utf8').trim().split('\n'))
      .map((line) => JSON.parse(line));
    expect(stored.length).toBeGreaterThan(50);
    for (const { row, receipt } of stored)
      expect(receipt === null, row.reason).toBe(row.kind === 'event' && WITHOUT_RECEIPT.includes(row.reason));
  });

  test('a row deleted from the database, and one changed there, are reported', async () => {
    const [gone, other] = [whole.rows[7]!, whole.rows[270]!];
    const of = { organisation_id: organisation.id };
    const row = await world.db
      .selectFrom('audit_rows')
      .selectAll()
      .where('id', '=', String(gone.row.id))
      .executeTakeFirstOrThrow();
    await world.db.deleteFrom('audit_rows').where('id', '=', row.id).execute();
    const change = (detail: string | number | null) =>
      world.db
        .updateTable('audit_rows')
        .set({ ...of, detail: detail as string | null })
        .where('id', '=', String(other.row.id))
        .execute();
    await change('nothing to see');
    try {
      const exported = (await fetched('/owner/log/export')).trim().split('\n');
      const { problems } = await verifyLogExport(exported, { keys, checkpoints: kept, digest });
      const kinds = problems.map(({ kind, first }) => `${kind} ${first}`);
      expect(kinds).toEqual(expect.arrayContaining(['missing 7', 'changed 270']));
      expect(kinds.filter((one) => /^(missing|changed)/.test(one))).toHaveLength(2);
    } finally {
      await change(other.row.detail ?? null);
      await world.db.insertInto('audit_rows').values(row).execute();
      await world.db.deleteFrom('log_pending').where('row_id', '=', row.id).execute();
    }
  });

  test('the command reports what was changed, and fails', async () => {
    const cwd = newFolder();
    const write = (name: string, text: string) => writeFileSync(join(cwd, name), text);
    write('key', await fetched(`/.well-known/svc-log/${organisation.id}`));
    write('receipt-keys.json', await fetched('/.well-known/svc-receipt-keys.json'));
    write('early', kept[0]!);
    write('log.jsonl', `${linesOf(whole).join('\n')}\n`);
    const words = ['verify', 'export', 'log.jsonl', '--key', 'key', '--checkpoint', 'early'];
    const good = await hosted([...words, '--receipt-keys', 'receipt-keys.json'], { cwd });
    expect(good.stderr).toBe('');
    expect(good.code).toBe(0);
    expect(good.stdout).toContain(`Nothing was changed, removed, inserted or moved: ${whole.rows.length} rows`);
    expect(good.stdout).toContain('and genuine');
    expect(good.stdout).toContain('1 event carries no receipt: its author is unknown.');
    const rows = whole.rows.map((row) =>
      row.index === 41 ? { ...row, row: { ...row.row, detail: 'nothing to see' } } : row,
    );
    write('log.jsonl', linesOf({ ...whole, rows }).join('\n'));
    const bad = await hosted(words, { cwd });
    expect(bad.code).toBe(1);
    expect(bad.stderr).toContain('changed: Row 41 is not what was logged.');
    // The rows before could have been left out by the author of the file, so a partial export must be requested explicitly.
    write('log.jsonl', await fetched('/owner/log/export?first=280'));
    const part = await hosted(words, { cwd });
    expect(part.code).toBe(1);
    expect(part.stderr).toContain(
      'missing: The export begins with row 256, but the export was requested from row 0 on.',
    );
    const asked = await hosted([...words, '--first', '280'], { cwd });
    expect([asked.code, asked.stderr]).toEqual([0, '']);
    const keyless = await hosted([...words, '--receipt-keys', 'no-such-file'], { cwd });
    expect([keyless.code, keyless.stderr]).toEqual([1, expect.stringContaining('no-such-file cannot be read.')]);
    const wrong = await hosted([...words, '--receipt-keys', 'key'], { cwd });
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('key is no key set.')]);
    write('key', 'no key');
    expect((await hosted(words, { cwd })).stderr).toContain(
      'The keys in key cannot be used. A line is not a verifier key',
    );
  });

  test('a saved folder is sufficient for the check; each save adds a checkpoint, and never removes keys', async () => {
    const cwd = newFolder();
    const options = [
      '--url',
      world.running.baseUrl,
      '--owner-token',
      mintOwnerSession(world.running.broker, organisation.owner).token,
    ];
    const save = async () => await hosted(['verify', 'save', 'kept', ...options], { cwd });
    const check = async () => await hosted(['verify', 'export', 'kept'], { cwd });
    expect((await save()).stderr).toBe('');
    const first = readdirSync(join(cwd, 'kept/checkpoints'));
    expect(first).toHaveLength(1);
    // The next checkpoint covers the row of this change.
    expect((await organisation.ask('POST', '/owner/organisation', { approval_ttl_seconds: 61 })).status).toBe(200);
    await expect
      .poll(async () => (await organisation.ask('GET', '/owner/log')).body.checkpoint.size, {
        timeout: 15_000,
        interval: 500,
      })
      .toBeGreaterThan(Number(first[0]));
    expect((await save()).stdout).toContain('kept has 2 checkpoints');
    // Simulates that the broker has signed a different log of the same size before.
    const newest = join(
      cwd,
      'kept/checkpoints',
      `${Math.max(...readdirSync(join(cwd, 'kept/checkpoints')).map(Number))}`,
    );
    const note = readFileSync(newest, 'utf8');
    const [origin, size, root = '', ...signatures] = note.split('\n');
    const before = [origin, size, `${root.startsWith('A') ? 'B' : 'A'}${root.slice(1)}`, ...signatures].join('\n');
    writeFileSync(newest, before);
    writeFileSync(join(cwd, 'kept/log.jsonl'), 'as it was');
    const forked = await save();
    expect(forked.code).toBe(1);
    expect(forked.stderr).toContain(`The broker signed another log of ${size} rows`);
    expect(readFileSync(newest, 'utf8'), 'what was saved stays').toBe(before);
    expect(readFileSync(join(cwd, 'kept/log.jsonl'), 'utf8'), 'what was saved stays').toBe('as it was');
    // A checkpoint may be cosigned by witnesses later.
    writeFileSync(newest, `${note.split('\n\n')[0]}\n\n— broker.example/log AAAA\n`);
    expect((await save()).stdout).toContain('kept has 2 checkpoints');
    expect(readFileSync(newest, 'utf8')).toBe(note);
    const good = await check();
    expect(good.stderr).toBe('');
    expect(good.stdout).toContain('Nothing was changed');
    expect(good.stdout).toContain('receipts are of these rows, and genuine');
    const log = readFileSync(join(cwd, 'kept/log.jsonl'), 'utf8');
    writeFileSync(join(cwd, 'kept/log.jsonl'), log.replace('approval_ttl_seconds', 'approval_ttl_second'));
    expect((await check()).stderr).toContain('The export does not verify');
    const { broker } = world.running;
    const { kid } = await broker.keys.rotate('evidence', broker.clock());
    expect((await save()).stdout).toContain(`a key of receipts that it did not publish before: ${kid}.`);
    expect((await save()).stdout).not.toContain(kid);
    const keys = readFileSync(join(cwd, 'kept/log.key'), 'utf8');
    const other = `${keys.split('+')[0]}+00000000+AdHB/RF5YACLff23/75HHQmTnP8tIQnOVq7UEhT0ZYZa`;
    writeFileSync(join(cwd, 'kept/log.key'), `${other}\n${keys}`);
    const refused = await save();
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(other);
    expect(readFileSync(join(cwd, 'kept/log.key'), 'utf8'), 'what was saved stays').toContain(other);
  });

  test('KEY-08 the command accepts rows with other line separators than the line feed, from a file and from standard input', async () => {
    const agent = await organisation.agent();
    const { size } = (await organisation.ask('GET', '/owner/log')).body;
    expect((await agent.act({ ...READ, reason: 'one\u2028two\u2029three\u0085\u000b' })).status).toBe(200);
    await expect
      .poll(async () => (await organisation.ask('GET', '/owner/log')).body.checkpoint.size, {
        timeout: 15_000,
        interval: 500,
      })
      .toBeGreaterThan(size);
    const exported = await fetched('/owner/log/export');
    expect(exported).toContain('one\u2028two\u2029three');
    const cwd = newFolder();
    writeFileSync(join(cwd, 'log.jsonl'), exported);
    writeFileSync(join(cwd, 'key'), keyLines);
    for (const given of [{ file: ['log.jsonl'] }, { file: [], input: exported }]) {
      const { code, stderr } = await runCommand(['verify', 'export', ...given.file, '--key', 'key'], { cwd, ...given });
      expect([code, stderr]).toEqual([0, '']);
    }
    const by = { keys: keyLines, checkpoints: kept };
    expect(await startVerifier().ask({ lines: exported.trim().split('\n'), ...by })).toEqual({
      ok: true,
      problems: [],
    });
    const absent = await hosted(['verify', 'export', 'absent', '--key', 'key'], { cwd });
    expect(absent.stderr).toContain('The export absent cannot be read (ENOENT).');
  });

  test('KEY-08 the command, with only an export, checkpoints and the key, reports tamperings of each kind', async () => {
    const random = makeRandom(SEED);
    // The test below covers the verifier for each kind. This one covers the command's own reading: rows, checkpoints and the end of the export.
    for (const kind of thorough ? KINDS : (['moved', 'forked', 'truncated'] as const)) {
      const tampered = tamper(whole, kind, random, signer);
      const cwd = newFolder();
      writeFileSync(join(cwd, 'export'), linesOf(tampered.some, tampered.by).join('\n'));
      writeFileSync(join(cwd, 'key'), keyLines);
      for (const [at, note] of kept.entries()) writeFileSync(join(cwd, `checkpoint${at}`), note);
      const words = [
        'verify',
        'export',
        'export',
        '--key',
        'key',
        '--checkpoint',
        'checkpoint0',
        'checkpoint1',
        '--json',
      ];
      const { code, stdout, stderr } = await hosted(words, { cwd });
      const { ok, problems } = JSON.parse(stdout);
      expect([code, ok, isNamed(tampered, problems, whole)], `${tampered.told}: ${stderr}`).toEqual([1, false, true]);
    }
  }, 180_000);

  test(`KEY-08 ${TAMPERINGS} tamperings of nine kinds are reported, in a process that has only exports, checkpoints and keys`, async () => {
    const random = makeRandom(SEED);
    const verifier = startVerifier();
    const by = { keys: keyLines, checkpoints: kept };
    expect(await verifier.ask({ lines: linesOf(whole), ...by })).toEqual({ ok: true, problems: [] });
    const look = async (round: number) => {
      const tampered = tamper(whole, KINDS[round % KINDS.length]!, random, signer);
      // A forged purge is reported differently with the keys of receipts, so half of the rounds have them.
      const receipts = tampered.kind === 'purged' && round % 2 === 0 ? { receiptKeys } : {};
      const lines = linesOf(tampered.some, tampered.by);
      const { ok, problems, thrown } = await verifier.ask({ lines, ...by, ...receipts });
      const told = `round ${round}: ${tampered.told}: ${JSON.stringify(problems.slice(0, 3))}`;
      expect([thrown, ok, isNamed(tampered, problems, whole)], told).toEqual([undefined, false, true]);
    };
    // The next tamperings are made while one is being verified.
    for (let round = 0; round < TAMPERINGS; round += 5)
      await Promise.all(Array.from({ length: 5 }, (_, at) => look(round + at)));
  }, 360_000);

  test(`KEY-08 ${TAMPERINGS} tamperings with lines: whatever verifies has the same content as the export`, async () => {
    const random = makeRandom(SEED);
    const reading = JSON.stringify(readingOf(linesOf(whole)));
    let refused = 0;
    for (let round = 0; round < TAMPERINGS; round++) {
      const { lines, told } = tamperLines(whole, random);
      const { ok } = await verifyLogExport(lines, { keys, checkpoints: kept, digest });
      if (ok) expect(JSON.stringify(readingOf(lines)) === reading, `round ${round}: ${told}`).toBe(true);
      else refused++;
    }
    // The rest changed only the header's keys, which nothing depends on, or nothing at all.
    expect(refused).toBeGreaterThan(TAMPERINGS * 0.9);
  }, 180_000);

  test('KEY-08 an export whose header is not first, or has no valid size, is rejected as malformed', async () => {
    const rewritten = copyOf(whole);
    const [row] = rewritten.rows;
    row!.row = { ...row!.row, kind: 'event', reason: 'breaker_opened', detail: 'rewritten' };
    Object.assign(row!, { row_hash: hashOf(row!.row), receipt: null });
    resign(rewritten, signer);
    const [header, ...rest] = linesOf(rewritten);
    const verify = async (lines: readonly string[]) =>
      await verifyLogExport(lines, { keys, checkpoints: [kept[0]!], receiptKeys, digest });
    expect((await verify([header!, ...rest])).problems.map(({ kind }) => kind)).toEqual(['forked']);
    const nothing = { ok: false, origin: undefined, size: 0, rows: 0, problems: [{ kind: 'malformed' }] };
    expect(await verify([...rest, header!])).toMatchObject(nothing);
    for (const size of [undefined, null, '320', '50\u200b', -1, 1.5, 2 ** 53]) {
      const forged = rewritten.rows.slice(0, 50);
      const lines = [JSON.stringify({ ...rewritten.header, size, checkpoint: null }), ...extraTile(forged, 0, 0)];
      expect(await verify(lines), String(size)).toMatchObject(nothing);
    }
    const cwd = newFolder();
    writeFileSync(join(cwd, 'key'), keyLines);
    writeFileSync(join(cwd, 'early'), kept[0]!);
    writeFileSync(join(cwd, 'log.jsonl'), [...rest, header].join('\n'));
    const told = await hosted(['verify', 'export', 'log.jsonl', '--key', 'key', '--checkpoint', 'early'], { cwd });
    expect([told.code, told.stdout]).toEqual([1, '']);
    expect(told.stderr).toContain('malformed: The file does not begin as an export of a receipt log.');
  });

  test('KEY-08 a file that was cut off, as by an interrupted download, is reported as incomplete, and the rows in it are neither inserted nor missing', async () => {
    const problemsOf = async (lines: readonly string[]) =>
      (await verifyLogExport(lines, { keys, receiptKeys, digest })).problems.map(
        ({ kind, first, last }) => `${kind} ${first} ${last}`,
      );
    const lines = linesOf(whole);
    const size = whole.rows.length;
    const upTo = (row: number) => lines.findIndex((line) => line.startsWith(`{"type":"row","index":${row},`)) + 1;
    const all = `unknown 0 ${size - 1}`;
    expect(await problemsOf(lines.slice(0, upTo(99)))).toEqual(['truncated 0 99', all, `missing 100 ${size - 1}`]);
    expect(await problemsOf(lines.slice(0, upTo(259)))).toEqual(['truncated 256 259', all, `missing 260 ${size - 1}`]);
    // Every row is there, only the hashes are not.
    expect(await problemsOf(lines.slice(0, upTo(size - 1)))).toEqual([
      `truncated 256 ${size - 1}`,
      `hashes 256 ${size - 1}`,
      'hashes 0 255',
    ]);
  });

  test('KEY-08 rows in a tile beyond the tree are reported as inserted, and do not explain missing rows', async () => {
    const verify = async (lines: readonly string[]) => {
      const verdict = await verifyLogExport(lines, { keys, checkpoints: kept, receiptKeys, digest });
      return [verdict.purged, ...verdict.problems.map(({ kind, first }) => `${kind} ${first ?? 'tile'}`)];
    };
    const [base] = whole.rows;
    const never = { ...base!, row: { ...base!.row, detail: 'never was' } };
    const low = linesOf(whole).findIndex((line) => line.startsWith('{"type":"tile","level":1'));
    const behind = (some: Export, row: Row) =>
      linesOf(some, 'index').toSpliced(low - (whole.rows.length - some.rows.length), 0, ...extraTile([row], 0, 1000));
    expect(await verify(behind(whole, never))).toEqual([0, 'no_receipt 256000', 'inserted tile', 'inserted 256000']);
    const purge = {
      ...base!,
      row: {
        ...base!.row,
        kind: 'event',
        reason: 'audit_purged',
        flags: JSON.stringify({ change: { purged: { 0: Buffer.alloc(32, 255).toString('base64') } } }),
      },
    };
    const removed = { ...whole, rows: whole.rows.filter(({ index }) => index !== 100) };
    expect(await verify(behind(removed, purge))).toEqual([
      0,
      'no_receipt 256000',
      'inserted tile',
      'inserted 256000',
      'missing 100',
    ]);
    const empty = JSON.stringify({ ...whole.header, size: 0, checkpoint: null });
    const { problems } = await verifyLogExport([empty, ...extraTile([never], 0, 0)], { keys, digest });
    expect(problems.map(({ kind }) => kind)).toEqual(['no_receipt', 'inserted', 'inserted']);
  });

  test('KEY-08 each check of the verifier is needed: without it a tampering passes that the complete verifier reports', async () => {
    const random = makeRandom(SEED);
    // The complete verifier is asked about each tampering; in CI a third of the checks is removed in turn, another one by the seed.
    const isMutated = (at: number) => thorough || at % 3 === SEED % 3;
    const mutated = CHECKS.filter((_, at) => isMutated(at)).map(({ what, mutation }) => [what, mutation]);
    const verifier = startVerifier(Object.fromEntries(mutated));
    const [early, current] = kept as [string, string];
    const bench: Bench = {
      whole,
      keys: keyLines,
      early,
      earlySize: Number(early.split('\n')[1]),
      current,
      receiptKeys,
      signer,
      signReceipt: ({ row }) => {
        const evidence = world.running.broker.keys.signer('evidence', Date.now());
        return signCompact(evidence, { typ: RECEIPT_TYPE }, { jti: row.id!, row_hash: hashOf(row) });
      },
      below: (most) => Math.floor(random() * most),
    };
    const wrong: string[] = [];
    for (const [at, { what, tamper: make }] of CHECKS.entries()) {
      const { names, at: row, ...given } = make(open(bench), bench);
      const all = { keys: keyLines, checkpoints: kept, ...given };
      const { ok, problems, thrown } = await verifier.ask(all);
      const isTold = problems.some(
        ({ kind, first, last = first }) =>
          kind === names && (row === undefined || (first !== undefined && first <= row && row <= last!)),
      );
      if (ok || !isTold) wrong.push(`${what}: not named: ${thrown ?? JSON.stringify(problems)}`);
      if (!isMutated(at)) continue;
      const mutant = await verifier.ask(all, what);
      if (!mutant.ok) wrong.push(`${what}: named without it: ${mutant.thrown ?? JSON.stringify(mutant.problems)}`);
    }
    expect(wrong).toEqual([]);
  }, 180_000);
});
