/** Exports of a receipt log, and the ways to tamper with one, with the file alone or with the key of the log as well. */
import { hash, type KeyObject } from 'node:crypto';
import { appendLeaves, type Edge, leafHash, rootOfEdge } from '../../broker/receipt-log/merkle.ts';
import { checkpointNote, logKey, signHead } from '../../broker/receipt-log/note.ts';

export type Row = {
  type: 'row';
  index: number;
  row: Record<string, string | number | null>;
  row_hash: string;
  receipt: string | null;
};
export type Tile = { type: 'tile'; level: number; index: number; hashes: string };
type Header = { type: 'log'; origin: string; first: number; size: number; checkpoint: string | null; keys: string[] };
export type Export = { header: Header; rows: Row[]; tiles: Tile[] };
export type Signer = { publicKey: Buffer; privateKey: KeyObject };

/** Hashes by row: a tampered copy shares all rows but one or two with the export, and a changed row is a new object. */
const hashed = new WeakMap<Row['row'], string>();
export function hashOf(row: Row['row']): string {
  const known = hashed.get(row);
  if (known !== undefined) return known;
  const members = Object.keys(row)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${JSON.stringify(row[name])}`);
  const made = hash('sha256', `{${members.join(',')}}`);
  hashed.set(row, made);
  return made;
}

export function parseExport(lines: readonly string[]): Export {
  const parsed = lines.map((line) => JSON.parse(line));
  return {
    header: parsed[0],
    rows: parsed.filter(({ type }) => type === 'row'),
    tiles: parsed.filter(({ type }) => type === 'tile'),
  };
}

export const copyOf = ({ header, rows, tiles }: Export): Export => ({
  header: { ...header },
  rows: rows.map((row) => ({ ...row })),
  tiles: tiles.map((tile) => ({ ...tile })),
});

/** Serialised rows, cached likewise. */
const written = new WeakMap<Row['row'], string>();
function lineOf({ type, index, row, row_hash, receipt }: Row): string {
  const text = written.get(row) ?? JSON.stringify(row);
  written.set(row, text);
  return `${JSON.stringify({ type, index }).slice(0, -1)},"row":${text},${JSON.stringify({ row_hash, receipt }).slice(1)}`;
}

/** Returns the lines in the order of an export. `by`: a row is written before the tile of its position in the list, or of its index. */
export function linesOf({ header, rows, tiles }: Export, by: 'place' | 'index' = 'place'): string[] {
  const low = tiles.filter(({ level }) => level === 0);
  const lines = [JSON.stringify(header)];
  for (const tile of low) {
    const [start, end] = [tile.index * 256, tile === low.at(-1) ? Number.POSITIVE_INFINITY : (tile.index + 1) * 256];
    const isBefore = (place: number) => start <= place && place < end;
    lines.push(
      ...rows.filter(({ index }, at) => isBefore(by === 'place' ? at : index)).map(lineOf),
      JSON.stringify(tile),
    );
  }
  lines.push(...tiles.filter(({ level }) => level > 0).map((tile) => JSON.stringify(tile)));
  return lines;
}

/** Recomputes the hashes in the file from its rows, as a careful attacker would. */
export function rehash(some: Export): Edge {
  const edge: Edge = { size: 0, tiles: [] };
  const tiles = new Map<string, Tile>();
  for (const row of some.rows)
    for (const { level, index, hashes } of appendLeaves(edge, [leafHash(Buffer.from(hashOf(row.row), 'hex'))]))
      tiles.set(`${level} ${index}`, { type: 'tile', level, index, hashes: Buffer.concat(hashes).toString('base64') });
  some.tiles = [...tiles.values()].toSorted((a, b) => a.level - b.level || a.index - b.index);
  return edge;
}

/** Builds an unsigned receipt of a row. It is accepted when the keys of receipts are not given. */
export const unsignedReceipt = ({ row }: Row): string => {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'ES256', typ: 'svc-receipt+jwt' })}.${part({ jti: row.id, row_hash: hashOf(row) })}.`;
};

/** Builds the row of an event that announces the deletion of a row of the log by retention. */
export function purgeEvent(row: Row['row'], named: number, kind: string): Pick<Row, 'row' | 'row_hash'> {
  const bits = Buffer.alloc(32);
  bits[(named % 256) >> 3]! |= 1 << (named & 7);
  const flags = { change: { purged: { [Math.floor(named / 256)]: bits.toString('base64') } } };
  const made = { ...row, kind, reason: 'audit_purged', flags: JSON.stringify(flags) };
  return { row: made, row_hash: hashOf(made) };
}

/** Signs the rows again, as an operator with the key could. */
export function resign(some: Export, { publicKey, privateKey }: Signer): void {
  const edge = rehash(some);
  const { origin } = some.header;
  const head = { origin, size: edge.size, root: rootOfEdge(edge) };
  const signature = signHead(head, logKey(origin, publicKey), privateKey);
  some.header = { ...some.header, size: edge.size, checkpoint: checkpointNote(head, signature) };
}

export const renumber = (rows: Row[]): Row[] => rows.map((row, index) => ({ ...row, index }));

export const KINDS = [
  'changed',
  'removed',
  'inserted',
  'moved',
  'forked',
  'truncated',
  'receipt',
  'no_receipt',
  'purged',
] as const;
export type Kind = (typeof KINDS)[number];
/** A tampered export: `rows`, the indexes that may be reported for it; `by`: as in `linesOf`; `told`: a description. */
export type Tampered = { some: Export; kind: Kind; rows: number[]; by?: 'index'; told: string };

/** Tampers in the given way, at a random place. */
export function tamper(whole: Export, kind: Kind, random: () => number, signer: Signer): Tampered {
  const below = (most: number) => Math.floor(random() * most);
  const some = copyOf(whole);
  const at = below(some.rows.length);
  const row = some.rows[at]!;
  const rows = [at];
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
      // Of two neighbours that were swapped, either may be reported as moved.
      rows.push(other);
      if (isCareful) some.rows = renumber(some.rows);
      break;
    }
    case 'forked':
      row.row = { ...row.row, reason: 'allowed_by_nobody' };
      row.receipt = null;
      resign(some, signer);
      break;
    case 'truncated':
      some.rows.splice(at);
      if (isCareful) resign(some, signer);
      break;
    case 'receipt':
      row.receipt = some.rows[(at + 1) % some.rows.length]!.receipt;
      break;
    case 'no_receipt': {
      // Removes all receipts, or one.
      const had = some.rows.filter(({ receipt }) => receipt !== null);
      const gone = isCareful ? had : [had[at % had.length]!];
      for (const one of gone) one.receipt = null;
      rows.splice(0, 1, ...gone.map(({ index }) => index));
      break;
    }
    case 'purged': {
      // An attacker who can only write to the database gets an event logged and covered by a checkpoint, and deletes the row that it covers.
      const event = { ...row, ...purgeEvent(row.row, at, 'event'), index: some.rows.length };
      if (isCareful) event.receipt = unsignedReceipt(event);
      some.rows.push(event);
      resign(some, signer);
      some.rows.splice(at, 1);
      return { some, kind, rows, by: 'index', told: `${kind} at ${at}${isCareful ? ', careful' : ''}` };
    }
  }
  // In some cases the hashes in the file are made to fit.
  if (random() < 0.3 && kind !== 'forked' && !(kind === 'truncated' && isCareful)) rehash(some);
  return { some, kind, rows, told: `${kind} at ${at}${isCareful ? ', careful' : ''}` };
}

/** Values for a tampered member, in addition to variants of its own value. */
const STRANGE = [undefined, null, true, -1, 0, 1, 1.5, 2 ** 53, '', '50\u200b', [], {}] as const;

/** Returns the lines of a tile with these rows, as at this place of a log. */
export function extraTile(rows: readonly Row[], level: number, index: number): string[] {
  const placed = rows.map((row, at) => ({ ...row, index: index * 256 + at, row_hash: hashOf(row.row), receipt: null }));
  const leaves = placed.map((row) => leafHash(Buffer.from(row.row_hash, 'hex')));
  const tile = { type: 'tile', level, index, hashes: Buffer.concat(leaves).toString('base64') };
  return [...(level === 0 ? placed : []), tile].map((one) => JSON.stringify(one));
}

/** Tampers with a random line of the file, without making anything else fit. */
export function tamperLines(whole: Export, random: () => number): { lines: string[]; told: string } {
  const below = (most: number) => Math.floor(random() * most);
  const oneOf = <T>(some: readonly T[]): T => some[below(some.length)]!;
  const lines = linesOf(whole);
  // Headers and tiles are few among the lines, so half of the cases choose one of them.
  const fewer = lines.flatMap((line, at) => (line.startsWith('{"type":"row"') ? [] : [at]));
  const at = random() < 0.5 ? oneOf(fewer) : below(lines.length);
  const line = lines[at]!;
  const to = random() < 0.3 ? oneOf([0, lines.length]) : below(lines.length);
  const how = oneOf(['moved', 'doubled', 'removed', 'a member of', 'a tile beside'] as const);
  const told = `${how} line ${at} (${line.slice(0, 40)})`;
  switch (how) {
    case 'moved':
      return { lines: lines.toSpliced(at, 1).toSpliced(to, 0, line), told: `${told}, to ${to}` };
    case 'doubled':
      return { lines: lines.toSpliced(to, 0, line), told: `${told}, at ${to}` };
    case 'removed':
      return { lines: lines.toSpliced(at, 1), told };
    case 'a member of': {
      const one = JSON.parse(line) as Record<string, unknown>;
      const member = oneOf(Object.keys(one));
      const value = one[member];
      const made = typeof value === 'number' ? [value + 1, value + 256, value - 256, `${value}`] : [`${value}x`];
      one[member] = oneOf<unknown>([...STRANGE, ...made, ...made]);
      return { lines: lines.with(at, JSON.stringify(one)), told: `${told}: ${member} ${JSON.stringify(one[member])}` };
    }
    case 'a tile beside': {
      const rows = Array.from({ length: 1 + below(3) }, () => {
        const row = oneOf(whole.rows);
        return { ...row, row: { ...row.row, detail: 'never was' } };
      });
      const [level, index] = [oneOf([0, 0, 0, 1, 2, -1]), oneOf([0, 1, 2, 3, 1000, -1])];
      return {
        lines: lines.toSpliced(to, 0, ...extraTile(rows, level, index)),
        told: `${told}: ${level} ${index} at ${to}`,
      };
    }
  }
}

/** Returns what a reader takes from a file: the log's name and size, and each row with its index. */
export const readingOf = (lines: readonly string[]): unknown[] =>
  lines.flatMap((line) => {
    const { type, origin, first, size, index, row } = JSON.parse(line);
    return type === 'tile' ? [] : [[type, origin, first, size, index, row]];
  });

type Problem = { kind: string; first?: number; last?: number };

/** Whether the reported problems cover the tampering. */
export function isNamed(
  { kind, rows }: Pick<Tampered, 'kind' | 'rows'>,
  problems: readonly Problem[],
  whole: Export,
): boolean {
  const isNamedBy = ({ first, last = first }: Problem, index: number) =>
    first !== undefined && first <= index && index <= (last as number);
  const covers = (index: number) => problems.some((one) => isNamedBy(one, index));
  if (kind === 'forked') return problems.some((one) => one.kind === 'forked');
  if (kind === 'truncated') return covers(whole.rows.length - 1);
  if (kind === 'purged')
    return problems.some((one) => /^(missing|unchecked)$/.test(one.kind) && isNamedBy(one, rows[0]!));
  if (kind === 'no_receipt') return problems.some((one) => one.kind === kind) && rows.every(covers);
  return rows.some(covers);
}
