/** 500 tamperings of exports, drawn by a seed: a verifier that has only the export, a kept checkpoint and the key names each. */
import { hash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { type LogProblem, verifyLogExport } from '../../broker/console/static/verify/log-export.js';
import { readVerifierKeys, type VerifierKey } from '../../broker/console/static/verify/note.js';
import { logSigner } from '../../broker/receipt-log/log-keys.ts';
import { appendLeaves, type Edge, leafHash, rootOfEdge } from '../../broker/receipt-log/merkle.ts';
import { checkpointNote, logKey, signHead } from '../../broker/receipt-log/note.ts';
import { runCommand } from '../world/command.ts';
import { givenWorld, shared } from '../world/given.ts';
import { makeRandom } from '../world/random.ts';
import { READ } from '../world/requests.ts';
import { newFolder } from '../world/stores.ts';

const SEED = Number(process.env.TAMPER_SEED ?? Math.floor(Math.random() * 2 ** 32));
const TAMPERINGS = 500;
const ROWS = 300;

type Row = {
  type: 'row';
  index: number;
  row: Record<string, string | number | null>;
  row_hash: string;
  receipt: string | null;
};
type Tile = { type: 'tile'; level: number; index: number; hashes: string };
type Header = { type: 'log'; origin: string; first: number; size: number; checkpoint: string; keys: string[] };
type Export = { header: Header; rows: Row[]; tiles: Tile[] };

const digest = (bytes: Uint8Array) => hash('sha256', bytes, 'buffer');
/** Of each row once: a tampered copy shares all rows but one or two with the export, and a changed row is another object. */
const hashed = new WeakMap<Row['row'], string>();
function hashOf(row: Row['row']): string {
  const known = hashed.get(row);
  if (known !== undefined) return known;
  const members = Object.keys(row)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${JSON.stringify(row[name])}`);
  const made = hash('sha256', `{${members.join(',')}}`);
  hashed.set(row, made);
  return made;
}

describe(`tampering with exports (TAMPER_SEED=${SEED})`, () => {
  const world = givenWorld();
  const organisation = shared(() => world.demoOrganisation());
  let whole: Export;
  let keys: VerifierKey[];
  let kept: string[];
  let receiptKeys: { kid: string }[];

  const fetched = async (path: string) => {
    const headers = { authorization: `Bearer ${mintOwnerSession(world.running.broker, organisation.owner).token}` };
    return await (await fetch(`${world.running.baseUrl}${path}`, { headers })).text();
  };

  beforeAll(async () => {
    const agent = await organisation.agent();
    await agent.act(READ);
    await vi.waitUntil(async () => (await organisation.ask('GET', '/owner/log')).body.checkpoint, { timeout: 30_000 });
    const early = await fetched(`/orgs/${organisation.id}/checkpoint`);
    for (let at = 0; at < ROWS; at += 20) await Promise.all(Array.from({ length: 20 }, () => agent.act(READ)));
    await vi.waitUntil(
      async () => {
        const { size, waiting, checkpoint } = (await organisation.ask('GET', '/owner/log')).body;
        return waiting === 0 && checkpoint.size === size && size > ROWS;
      },
      { timeout: 30_000 },
    );
    kept = [early, await fetched(`/orgs/${organisation.id}/checkpoint`)];
    keys = await readVerifierKeys(await fetched(`/.well-known/svc-log/${organisation.id}`));
    receiptKeys = JSON.parse(await fetched('/.well-known/svc-receipt-keys.json')).keys;
    whole = parse((await fetched('/owner/log/export')).trim().split('\n'));
  });

  const parse = (lines: string[]): Export => {
    const parsed = lines.map((line) => JSON.parse(line));
    return {
      header: parsed[0],
      rows: parsed.filter(({ type }) => type === 'row'),
      tiles: parsed.filter(({ type }) => type === 'tile'),
    };
  };
  /** The lines in the order of an export. */
  const linesOf = ({ header, rows, tiles }: Export): string[] => {
    const low = tiles.filter(({ level }) => level === 0);
    const lines: object[] = [header];
    let at = 0;
    for (const tile of low) {
      const end = tile === low.at(-1) ? rows.length : (tile.index + 1) * 256;
      lines.push(...rows.slice(at, end), tile);
      at = end;
    }
    lines.push(...tiles.filter(({ level }) => level > 0));
    return lines.map((line) => JSON.stringify(line));
  };
  /** Makes the hashes in the file those of its rows, as who tampers well does. */
  const rehash = (some: Export): Edge => {
    const edge: Edge = { size: 0, tiles: [] };
    const tiles = new Map<string, Tile>();
    for (const row of some.rows)
      for (const { level, index, hashes } of appendLeaves(edge, [leafHash(Buffer.from(hashOf(row.row), 'hex'))]))
        tiles.set(`${level} ${index}`, {
          type: 'tile',
          level,
          index,
          hashes: Buffer.concat(hashes).toString('base64'),
        });
    some.tiles = [...tiles.values()].toSorted((a, b) => a.level - b.level || a.index - b.index);
    return edge;
  };
  /** Signs the rows anew, as an operator could who has the key. */
  const resign = async (some: Export): Promise<void> => {
    const edge = rehash(some);
    const { origin } = some.header;
    const signer = await logSigner(world.running.broker);
    const head = { origin, size: edge.size, root: rootOfEdge(edge) };
    const signature = signHead(head, logKey(origin, signer.publicKey), signer.privateKey);
    some.header = { ...some.header, size: edge.size, checkpoint: checkpointNote(head, signature) };
  };
  const verify = async (some: Export, checkpoints = kept) =>
    await verifyLogExport(linesOf(some), { keys, checkpoints, digest });
  const renumber = (rows: Row[]) => rows.map((row, index) => ({ ...row, index }));
  const covers = (problems: LogProblem[], index: number) =>
    problems.some(({ first, last = first }) => first !== undefined && first <= index && index <= (last as number));

  test('what was exported verifies, with every receipt, and from any row on', async () => {
    const verdict = await verifyLogExport(linesOf(whole), { keys, checkpoints: kept, receiptKeys, digest });
    expect(verdict.problems).toEqual([]);
    expect(verdict).toMatchObject({ ok: true, size: whole.header.size, rows: whole.rows.length });
    expect(verdict.receipts).toBeGreaterThan(ROWS - 1);
    const later = (await fetched('/owner/log/export?first=280')).trim().split('\n');
    const part = await verifyLogExport(later, { keys, checkpoints: kept, digest });
    expect([part.problems, part.rows]).toEqual([[], whole.rows.length - 256]);
    expect((await verifyLogExport([], { keys, digest })).ok).toBe(false);
  });

  test('a row that was deleted from the database is named, and so is one that was changed there', async () => {
    const { db } = world.running.broker.store;
    const [gone, other] = [whole.rows[7]!, whole.rows[270]!];
    const of = { organisation_id: organisation.id };
    const row = await db
      .selectFrom('audit_rows')
      .selectAll()
      .where('id', '=', String(gone.row.id))
      .executeTakeFirstOrThrow();
    await db.deleteFrom('audit_rows').where('id', '=', row.id).execute();
    const change = (detail: string | number | null) =>
      db
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
      await db.insertInto('audit_rows').values(row).execute();
      await db.deleteFrom('log_pending').where('row_id', '=', row.id).execute();
    }
  });

  test('the command names what was changed, and fails', async () => {
    const cwd = newFolder();
    const write = (name: string, text: string) => writeFileSync(join(cwd, name), text);
    write('key', await fetched(`/.well-known/svc-log/${organisation.id}`));
    write('receipt-keys.json', await fetched('/.well-known/svc-receipt-keys.json'));
    write('early', kept[0]!);
    write('log.jsonl', `${linesOf(whole).join('\n')}\n`);
    const words = ['verify', 'export', 'log.jsonl', '--key', 'key', '--checkpoint', 'early'];
    const good = await runCommand([...words, '--receipt-keys', 'receipt-keys.json'], { cwd });
    expect(good.stderr).toBe('');
    expect(good.code).toBe(0);
    expect(good.stdout).toContain(`Nothing was changed, removed, inserted or moved: ${whole.rows.length} rows`);
    expect(good.stdout).toContain('and genuine');
    const rows = whole.rows.map((row) =>
      row.index === 41 ? { ...row, row: { ...row.row, detail: 'nothing to see' } } : row,
    );
    write('log.jsonl', linesOf({ ...whole, rows }).join('\n'));
    const bad = await runCommand(words, { cwd });
    expect(bad.code).toBe(1);
    expect(bad.stderr).toContain('changed: Row 41 is not what was logged.');
    write('key', 'no key');
    expect((await runCommand(words, { cwd })).stderr).toContain(
      'The keys in key cannot be used. A line is not a verifier key',
    );
  });

  test('a saved folder is all that the check needs; each time it has one more checkpoint, and never fewer keys', async () => {
    const cwd = newFolder();
    const options = [
      '--url',
      world.running.baseUrl,
      '--owner-token',
      mintOwnerSession(world.running.broker, organisation.owner).token,
    ];
    const save = async () => await runCommand(['verify', 'save', 'kept', ...options], { cwd });
    const check = async () => await runCommand(['verify', 'export', 'kept'], { cwd });
    expect((await save()).stderr).toBe('');
    const first = readdirSync(join(cwd, 'kept/checkpoints'));
    expect(first).toHaveLength(1);
    // The next checkpoint has the row of this change.
    expect((await organisation.ask('POST', '/owner/organisation', { approval_ttl_seconds: 61 })).status).toBe(200);
    await expect
      .poll(async () => (await organisation.ask('GET', '/owner/log')).body.checkpoint.size, { timeout: 15_000 })
      .toBeGreaterThan(Number(first[0]));
    expect((await save()).stdout).toContain('kept has 2 checkpoints');
    const good = await check();
    expect(good.stderr).toBe('');
    expect(good.stdout).toContain('Nothing was changed');
    expect(good.stdout).toContain('receipts are of these rows, and genuine');
    const log = readFileSync(join(cwd, 'kept/log.jsonl'), 'utf8');
    writeFileSync(join(cwd, 'kept/log.jsonl'), log.replace('approval_ttl_seconds', 'approval_ttl_second'));
    expect((await check()).stderr).toContain('The export does not verify');
    const keys = readFileSync(join(cwd, 'kept/log.key'), 'utf8');
    const other = 'broker.example/log+00000000+AdHB/RF5YACLff23/75HHQmTnP8tIQnOVq7UEhT0ZYZa';
    writeFileSync(join(cwd, 'kept/log.key'), `${other}\n${keys}`);
    const refused = await save();
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(other);
    expect(readFileSync(join(cwd, 'kept/log.key'), 'utf8'), 'what was saved stays').toContain(other);
  });

  test(`KEY-08 ${TAMPERINGS} tamperings of seven kinds are named`, async () => {
    const random = makeRandom(SEED);
    const below = (most: number) => Math.floor(random() * most);
    const counts: Record<string, number> = {};
    for (let round = 0; round < TAMPERINGS; round++) {
      const some: Export = {
        header: { ...whole.header },
        rows: whole.rows.map((row) => ({ ...row })),
        tiles: whole.tiles.map((tile) => ({ ...tile })),
      };
      const at = below(some.rows.length);
      const row = some.rows[at]!;
      const kind = (['changed', 'removed', 'inserted', 'moved', 'forked', 'truncated', 'receipt'] as const)[round % 7]!;
      counts[kind] = (counts[kind] ?? 0) + 1;
      const changed = [at];
      const isCareful = random() < 0.5;
      switch (kind) {
        case 'changed': {
          const columns = Object.keys(row.row).filter((name) => name !== 'organisation_id');
          const column = columns[below(columns.length)]!;
          const value = row.row[column]!;
          row.row = { ...row.row, [column]: typeof value === 'number' ? value + 1 : `${value ?? ''}x` };
          if (isCareful) Object.assign(row, { row_hash: hashOf(row.row), receipt: null });
          break;
        }
        case 'removed':
          some.rows.splice(at, 1);
          if (isCareful) some.rows = renumber(some.rows);
          break;
        case 'inserted':
          some.rows.splice(at, 0, { ...row, row: { ...row.row, id: crypto.randomUUID() }, receipt: null });
          if (isCareful) some.rows = renumber(some.rows);
          break;
        case 'moved': {
          const other = (at + 1 + below(some.rows.length - 1)) % some.rows.length;
          [some.rows[at], some.rows[other]] = [some.rows[other]!, row];
          // Of two neighbours that changed places either can be the one that was moved.
          changed.push(other);
          if (isCareful) some.rows = renumber(some.rows);
          break;
        }
        case 'forked':
          row.row = { ...row.row, reason: 'allowed_by_nobody' };
          row.receipt = null;
          await resign(some);
          break;
        case 'truncated':
          some.rows.splice(at);
          if (isCareful) await resign(some);
          break;
        case 'receipt':
          row.receipt = some.rows[(at + 1) % some.rows.length]!.receipt;
          break;
      }
      // Who can, makes the hashes in the file fit what was done.
      if (random() < 0.3 && kind !== 'forked' && !(kind === 'truncated' && isCareful)) rehash(some);
      const { ok, problems } = await verify(some);
      const told = `round ${round}: ${kind} at ${at}${isCareful ? ', careful' : ''}: ${JSON.stringify(problems.slice(0, 3))}`;
      expect(ok, told).toBe(false);
      if (kind === 'forked')
        expect(
          problems.map((one) => one.kind),
          told,
        ).toContain('forked');
      else if (kind === 'truncated') expect(covers(problems, whole.rows.length - 1), told).toBe(true);
      else
        expect(
          changed.some((index) => covers(problems, index)),
          told,
        ).toBe(true);
    }
    expect(Object.values(counts).every((count) => count >= 71)).toBe(true);
  }, 120_000);
});
