/** The checks of the log verifier, each with a source change that removes it, and a tampering that only this check detects. */

import { leafHash, rootOfEdge } from '../../broker/receipt-log/merkle.ts';
import { checkpointNote, logKey, signHead, vkeyOf } from '../../broker/receipt-log/note.ts';
import {
  copyOf,
  type Export,
  hashOf,
  linesOf,
  purgeEvent,
  type Row,
  rehash,
  resign,
  type Signer,
  unsignedReceipt,
} from './tampered.ts';
import type { Given, Mutation } from './verifier-process.ts';

/** Inputs for making tamperings. `early`: a checkpoint of `earlySize` rows, `current`: the one of the export. */
export type Bench = {
  whole: Export;
  keys: string;
  early: string;
  earlySize: number;
  current: string;
  receiptKeys: readonly object[];
  signer: Signer;
  /** Signs a genuine receipt of a row. */
  signReceipt(row: Row): string;
  below(most: number): number;
};
/** `names`: the kind of problem that the complete verifier reports, for row `at` if given. */
type Case = Partial<Given> & { lines: readonly string[]; names: string; at?: number };
type Check = { what: string; mutation: Mutation; tamper(some: Opened, bench: Bench): Case };

const EXPORT = 'verify/log-export.js';
const LINES = 'verify/export-lines.js';
const without = (find: string, put: string, file = EXPORT): Mutation => ({ file, find, put });

/** A copy of the export, with a row that may be changed. */
type Opened = Export & { at: number; row: Row; last: number };

export function open({ whole, below }: Bench): Opened {
  const some = copyOf(whole);
  // In the first tile, which is full, beyond the rows of the early checkpoint.
  const at = 100 + below(100);
  return { ...some, at, row: some.rows[at]!, last: 256 + below(whole.rows.length - 256) };
}
const change = (row: Row, detail = 'nothing to see'): void => {
  row.row = { ...row.row, detail };
  Object.assign(row, { row_hash: hashOf(row.row), receipt: unsignedReceipt(row) });
};
const foreign = (row: Row, index: number): Row => {
  const made = { ...row, index };
  change(made, 'never was');
  return made;
};
const byIndex = (some: Export) => linesOf(some, 'index');
/** Inserts lines before the first line that matches. */
const withLine = (some: Export, isBefore: (line: string) => boolean, ...more: readonly (Row | object)[]): string[] => {
  const lines = linesOf(some);
  const place = lines.findIndex(isBefore);
  return lines.toSpliced(place < 0 ? lines.length : place, 0, ...more.map((one) => JSON.stringify(one)));
};
const isRow = (index: number) => (line: string) => line.startsWith('{"type":"row"') && JSON.parse(line).index === index;
const isTile = (level: number, index: number) => (line: string) => {
  const one = JSON.parse(line);
  return one.type === 'tile' && one.level === level && one.index === index;
};
const withReceipt = ({ row }: { row: Row }, different: object): void => {
  const [header, payload, signature] = row.receipt!.split('.');
  const said = { ...JSON.parse(Buffer.from(payload!, 'base64url').toString()), ...different };
  row.receipt = [header, Buffer.from(JSON.stringify(said)).toString('base64url'), signature].join('.');
};
/** Changes hashes of a tile. */
const spoil = (some: Export, level: number, index: number, at: number, hash: Uint8Array): void => {
  const tile = some.tiles.find((one) => one.level === level && one.index === index)!;
  const hashes = Buffer.from(tile.hashes, 'base64');
  hashes.set(hash, at * 32);
  tile.hashes = hashes.toString('base64');
};
const leafOf = (row: Row) => leafHash(Buffer.from(hashOf(row.row), 'hex'));
/** Returns a signed log in which row `at` announces the deletion of a row of the first tile, with a genuine receipt. */
function purging(
  bench: Bench,
  { at, named, kind = 'event', of = {} }: { at: number; named: number; kind?: string; of?: Row['row'] },
): Export {
  const some = copyOf(bench.whole);
  const row = some.rows[at]!;
  Object.assign(row, purgeEvent({ ...row.row, ...of }, named, kind));
  row.receipt = bench.signReceipt(row);
  resign(some, bench.signer);
  return some;
}
const removing = (some: Export, gone: number, names = 'missing'): Case => ({
  lines: byIndex({ ...some, rows: some.rows.filter(({ index }) => index !== gone) }),
  checkpoints: [some.header.checkpoint!],
  names,
  at: gone,
});
/** Returns a log with another name, signed with the same key. */
function other({ signer }: Bench, origin: string): { origin: string; key: ReturnType<typeof logKey>; vkey: string } {
  const key = logKey(`${origin}0`, signer.publicKey);
  return { origin: `${origin}0`, key, vkey: vkeyOf(key) };
}

/** Changes a row, and its hash in the tile as well. */
function rowAndTile(some: Opened): Case {
  change(some.row);
  spoil(some, 0, 0, some.at, leafOf(some.row));
  return { lines: linesOf(some), names: 'unknown', at: some.at };
}

export const CHECKS: readonly Check[] = [
  {
    what: 'an index is a whole number',
    mutation: without('isIndex(index) && isObject(row)', 'isObject(row)', LINES),
    tamper: (some) => ({ lines: withLine(some, isRow(some.at), foreign(some.row, some.at - 0.5)), names: 'malformed' }),
  },
  {
    what: 'an index is there once',
    mutation: without('if (rows.has(index)) report', 'if (false) report'),
    tamper: (some) => ({
      lines: withLine(some, isRow(some.at), foreign(some.row, some.at)),
      names: 'inserted',
      at: some.at,
    }),
  },
  {
    what: 'a row is what its row_hash says',
    mutation: without('if (one.row_hash !== hash)', 'if (false)'),
    tamper: (some) => {
      some.row.row_hash = some.rows[some.at + 1]!.row_hash;
      return { lines: linesOf(some), names: 'hashes', at: some.at };
    },
  },
  {
    what: 'a row that was given a receipt has it',
    mutation: without('else if (hasReceipt(one.row))', 'else if (false)'),
    tamper: (some) => {
      some.row.receipt = null;
      return { lines: linesOf(some), names: 'no_receipt', at: some.at };
    },
  },
  {
    what: 'a receipt is signed',
    mutation: without('const matches = signature.length === 64 &&', 'const matches = true ||', 'receipt/verify.js'),
    tamper: (some, bench) => {
      withReceipt(some, { result: 'denied' });
      return { lines: linesOf(some), receiptKeys: bench.receiptKeys, names: 'receipt', at: some.at };
    },
  },
  {
    what: 'the signature of a receipt is asked for',
    mutation: without('if (!checked.ok) return', 'if (false) return'),
    tamper: (some, bench) => {
      withReceipt(some, { agent: 'agt_nobody' });
      return { lines: linesOf(some), receiptKeys: bench.receiptKeys, names: 'receipt', at: some.at };
    },
  },
  {
    what: 'a receipt names its row',
    mutation: without('if (payload?.jti !== row.id)', 'if (false)'),
    tamper: (some) => {
      withReceipt(some, { jti: some.rows[some.at + 1]!.row.id });
      return { lines: linesOf(some), names: 'receipt', at: some.at };
    },
  },
  {
    what: 'a receipt has the hash of its row',
    mutation: without('payload?.row_hash === hash ? undefined', 'true ? undefined'),
    tamper: (some) => {
      withReceipt(some, { row_hash: some.rows[some.at + 1]!.row_hash });
      return { lines: linesOf(some), names: 'receipt', at: some.at };
    },
  },
  {
    what: 'a row has a place in the tile behind it',
    mutation: without('row < start || row >= start + width', 'false'),
    tamper: (some) => ({ lines: withLine(some, isTile(0, 0), foreign(some.row, 999)), names: 'inserted', at: 999 }),
  },
  {
    what: 'a row stands in its order',
    mutation: without('of outOfOrder([...rows.keys()])', 'of []'),
    tamper: (some) => {
      some.rows.splice(some.at, 2, some.rows[some.at + 1]!, some.row);
      return { lines: linesOf(some), names: 'moved' };
    },
  },
  {
    what: 'a tile is there once',
    mutation: without('level > last.level || (level === last.level && index > last.index)', 'true'),
    tamper: (some) => {
      const tile = some.tiles.find(({ level, index }) => level === 0 && index === 0)!;
      return { lines: withLine(some, isRow(0), foreign(some.row, some.at), tile), names: 'malformed' };
    },
  },
  {
    what: 'tiles stand in their order',
    mutation: without('level > last.level || (level === last.level && index > last.index)', 'true'),
    tamper: (_some, { whole }) => {
      const lines = linesOf(whole);
      const end = lines.findIndex(isTile(0, 0)) + 1;
      const last = lines.findIndex(isTile(0, 1)) + 1;
      const [first, second] = [lines.slice(1, end), lines.slice(end, last)];
      return { lines: [...lines.slice(0, 1), ...second, ...first, ...lines.slice(last)], names: 'malformed' };
    },
  },
  {
    what: 'a tile has hashes of the tree alone',
    mutation: without('if (width === 0 || hashes.length > width)', 'if (false)'),
    tamper: (some) => {
      const tile = some.tiles.find(({ level, index }) => level === 0 && index === 1)!;
      tile.hashes = Buffer.concat([Buffer.from(tile.hashes, 'base64'), leafOf(some.row)]).toString('base64');
      return { lines: linesOf(some), names: 'inserted' };
    },
  },
  {
    what: 'a row is in the tree',
    mutation: without('row < start || row >= start + width', 'false'),
    tamper: (some) => {
      const size = some.rows.length;
      some.rows.push(foreign(some.row, size));
      return { lines: linesOf(some), names: 'inserted', at: size };
    },
  },
  {
    what: 'a line has one reading',
    mutation: without(' || JSON.stringify(line) !== text.trim()', '', LINES),
    tamper: (some) => {
      const lines = linesOf(some);
      const at = lines.findIndex(isRow(some.at));
      return { lines: lines.with(at, lines[at]!.replace('"row":', '"row":{},"row":')), names: 'malformed' };
    },
  },
  {
    what: 'a line has its own members alone',
    mutation: without("(type === 'row' && hasJust(line, MEMBERS.row) &&", "(type === 'row' &&", LINES),
    tamper: (some) => {
      const lines = linesOf(some);
      const at = lines.findIndex(isRow(some.at));
      const forged = { ...some.row, Row: { ...some.row.row, result: 'denied' } };
      return { lines: lines.with(at, JSON.stringify(forged)), names: 'malformed' };
    },
  },
  {
    what: 'a row has its columns alone',
    mutation: without('hasJust(row, COLUMNS) &&', '', LINES),
    tamper: (some) => {
      some.row.row = Object.fromEntries(Object.entries(some.row.row).reverse());
      return { lines: linesOf(some), names: 'malformed' };
    },
  },
  {
    what: 'an empty log is of one of the keys',
    mutation: without('if (size > 0 || !keys', 'if (size > 0 && !keys'),
    tamper: (_some, { whole }) => ({
      lines: [JSON.stringify({ ...whole.header, origin: 'other.test', size: 0, checkpoint: null })],
      checkpoints: [],
      names: 'unsigned',
    }),
  },
  {
    what: 'each line is one of an export',
    mutation: without("} else report('malformed', 'A line is none of an export.');", '}'),
    tamper: (some) => ({
      lines: withLine(some, isRow(some.at), { ...foreign(some.row, some.at), type: 'Row' }),
      names: 'malformed',
    }),
  },
  {
    what: 'no row stands behind the last tile',
    mutation: without('for (const index of rows.keys()) report(', 'for (const index of []) report('),
    tamper: (some) => {
      const size = some.rows.length;
      return { lines: [...linesOf(some), JSON.stringify(foreign(some.row, size))], names: 'inserted', at: size };
    },
  },
  {
    what: 'the export begins where it was asked to',
    mutation: without('if (header.first > begin)', 'if (false)'),
    tamper: (some) => {
      change(some.row);
      some.header.first = 256;
      const tiles = some.tiles.filter(({ level, index }) => level > 0 || index > 0);
      return { lines: byIndex({ ...some, tiles, rows: some.rows.slice(256) }), names: 'missing', at: some.at };
    },
  },
  {
    what: 'the export begins in the log, with a tile',
    mutation: without('isIndex(first) &&', '', LINES),
    tamper: (some) => {
      some.header.first = -256;
      return { lines: linesOf(some), names: 'malformed' };
    },
  },
  {
    what: 'nothing is before the first row',
    mutation: without('level === 0 && index * TILE_WIDTH < first ? 0 :', ''),
    tamper: (some) => {
      change(some.row);
      some.header.first = 256;
      return { lines: linesOf(some), first: 256, names: 'inserted', at: some.at };
    },
  },
  {
    what: 'a kept checkpoint is of the same log',
    mutation: without('if (head.origin !== header.origin)', 'if (false)'),
    tamper: (some, bench) => {
      const { origin, key, vkey } = other(bench, some.header.origin);
      change(some.row);
      const edge = rehash(some);
      const head = { origin, size: edge.size, root: rootOfEdge(edge) };
      const checkpoint = checkpointNote(head, signHead(head, key, bench.signer.privateKey));
      some.header = { ...some.header, origin, checkpoint };
      return { lines: linesOf(some), keys: `${vkey}\n${bench.keys}`, names: 'forked' };
    },
  },
  {
    what: 'the export is as long as a kept checkpoint',
    mutation: without('else if (head.size > header.size)', 'else if (false)'),
    tamper: (some, bench) => {
      some.rows.splice(some.last);
      resign(some, bench.signer);
      return { lines: linesOf(some), names: 'truncated', at: some.last };
    },
  },
  {
    what: 'a checkpoint is of all rows',
    mutation: without('if (size > 0 || !keys', 'if (!keys'),
    tamper: (some) => {
      some.rows.push(foreign(some.row, some.rows.length));
      rehash(some);
      some.header = { ...some.header, size: some.rows.length, checkpoint: null };
      return { lines: linesOf(some), names: 'unsigned' };
    },
  },
  {
    what: 'a checkpoint that cannot be read is told',
    mutation: without("report('unsigned', `$", "((..._) => {})('unsigned', `$"),
    tamper: (some, bench) => ({
      lines: linesOf(some),
      checkpoints: [bench.early.replace(/\n\d+\n/, `\n${some.at}\n`)],
      names: 'unsigned',
    }),
  },
  {
    what: 'two checkpoints of a size have one root',
    mutation: without('if (other && !same(other.root, head.root))', 'if (false)'),
    tamper: (some, bench) => {
      change(some.row);
      resign(some, bench.signer);
      return { lines: linesOf(some), names: 'forked' };
    },
  },
  {
    what: 'a checkpoint is signed',
    mutation: without(
      "if (await crypto.subtle.verify({ name: 'Ed25519' }, imported, signed.slice(4), new TextEncoder().encode(text)))",
      'if (imported)',
      'verify/note.js',
    ),
    tamper: (some, bench) => {
      change(some.row);
      const root = Buffer.from(rootOfEdge(rehash(some))).toString('base64');
      const [origin, size, , ...rest] = some.header.checkpoint!.split('\n');
      some.header.checkpoint = [origin, size, root, ...rest].join('\n');
      return { lines: linesOf(some), checkpoints: [bench.early], names: 'unsigned' };
    },
  },
  {
    what: 'a checkpoint is signed by the key of its log',
    mutation: without(' || key.name !== origin', '', 'verify/note.js'),
    tamper: (some, bench) => {
      const { origin, key, vkey } = other(bench, some.header.origin);
      change(some.row);
      const edge = rehash(some);
      const head = { origin: some.header.origin, size: edge.size, root: rootOfEdge(edge) };
      const signature = signHead(head, key, bench.signer.privateKey);
      some.header.checkpoint = checkpointNote(head, signature).replace(`— ${some.header.origin} `, `— ${origin} `);
      return {
        lines: linesOf(some),
        keys: `${vkey}\n${bench.keys}`,
        checkpoints: [bench.early],
        names: 'unsigned',
      };
    },
  },
  {
    what: 'the tree has the root of the checkpoint',
    mutation: without('if (same(await rootOfEdge(some, digest), head.root))', 'if (true)'),
    tamper: (some) => {
      change(some.row);
      rehash(some);
      return { lines: linesOf(some), names: 'unknown', at: some.at };
    },
  },
  {
    what: 'a tree without the root is told',
    mutation: without(
      "report(\n      'unknown',\n      'The rows are not",
      "((..._) => {})(\n      'unknown',\n      'The rows are not",
    ),
    tamper: (some) => {
      change(some.row);
      rehash(some);
      return { lines: linesOf(some), names: 'unknown', at: some.at };
    },
  },
  {
    what: 'the hashes in the file are those of the log',
    mutation: without('if (!isDeclared)', 'if (false)'),
    tamper: (some) => {
      spoil(some, 0, 1, 0, leafOf(some.row));
      return { lines: linesOf(some), names: 'hashes', at: 256 };
    },
  },
  {
    what: 'a row of the last tile is there',
    mutation: without(
      'if (derived === undefined) gaps.add(start + at);\n      else if (!same(derived, hash))',
      'if (derived === undefined);\n      else if (!same(derived, hash))',
    ),
    tamper: (some) => removing(some, some.last),
  },
  {
    what: 'a row of a whole tile is there',
    mutation: without('gaps.addTile(below, child?.absent);', ''),
    tamper: (some) => removing(some, some.at),
  },
  {
    what: 'a row is what was logged',
    mutation: without('else if (!same(derived, hash)) report', 'else if (false) report'),
    tamper: (some) => {
      change(some.rows[some.last]!);
      return { lines: linesOf(some), names: 'changed', at: some.last };
    },
  },
  {
    what: 'a whole tile is forgotten only when its rows fit',
    mutation: without('derived[at] === undefined || same(hash, derived[at])', 'true'),
    tamper: (some, bench) => {
      change(some.row);
      // The given checkpoint ends in a later tile.
      return { lines: linesOf(some), checkpoints: [bench.current], names: 'changed', at: some.at };
    },
  },
  {
    what: 'a tile that is forgotten is the one of the log',
    mutation: without('if (same(child?.root, hash))', 'if (child?.root)'),
    // The given checkpoint ends in a later tile, so the first tile is not kept in memory.
    tamper: (some, { current }) => ({ ...rowAndTile(some), checkpoints: [current] }),
  },
  {
    what: 'a tile that is kept is the one of the log',
    mutation: without('if (same(await rootOver(digest, version), hash))', 'if (true)'),
    tamper: rowAndTile,
  },
  {
    what: 'a tile that is not the one of the log is told',
    mutation: without("report(\n        'unknown',", "((..._) => {})(\n        'unknown',"),
    tamper: rowAndTile,
  },
  {
    what: 'a tile is there',
    mutation: without("report('missing', `Rows", "((..._) => {})('missing', `Rows"),
    tamper: (some, bench) => {
      const tiles = some.tiles.filter(({ level, index }) => level > 0 || index > 0);
      return {
        lines: byIndex({ ...some, tiles, rows: some.rows.slice(256) }),
        checkpoints: [bench.current],
        names: 'missing',
        at: some.at,
      };
    },
  },
  {
    what: 'the log goes on from a kept checkpoint',
    mutation: without('else if (!same(size === 0', 'else if (false && !same(size === 0'),
    tamper: (some, bench) => {
      const at = bench.below(bench.earlySize);
      change(some.rows[at]!);
      resign(some, bench.signer);
      return { lines: linesOf(some), checkpoints: [bench.early], names: 'forked' };
    },
  },
  {
    what: 'rows are deleted only as an event says',
    mutation: without('proof.index > index && hasBit(proof.bits, at)', 'proof.index > index', 'verify/gaps.js'),
    tamper: ({ at }, bench) => ({
      ...removing(purging(bench, { at: at + 10, named: at }), at - 1),
      receiptKeys: bench.receiptKeys,
    }),
  },
  {
    what: 'rows are deleted only after they were there',
    mutation: without('proof.index > index && hasBit', 'hasBit', 'verify/gaps.js'),
    tamper: ({ at }, bench) => ({
      ...removing(purging(bench, { at, named: at + 10 }), at + 10),
      receiptKeys: bench.receiptKeys,
    }),
  },
  {
    what: 'rows are deleted only by an event of the broker',
    mutation: without("kind !== 'event' || ", '', 'verify/gaps.js'),
    tamper: ({ at }, bench) => ({
      ...removing(purging(bench, { at: at + 10, named: at, kind: 'action' }), at),
      receiptKeys: bench.receiptKeys,
    }),
  },
  {
    what: 'rows are deleted only by an event of the organisation',
    mutation: without('isVouched = header.origin.endsWith(', 'isVouched = true || header.origin.endsWith('),
    tamper: ({ at }, bench) => {
      const { receiptKeys } = bench;
      const of = { organisation_id: crypto.randomUUID() };
      return { ...removing(purging(bench, { at: at + 10, named: at, of }), at), receiptKeys };
    },
  },
  {
    what: 'rows are deleted only by an event of which the receipt was checked',
    mutation: without('if (this.#isChecked || said.length === 0)', 'if (true)', 'verify/gaps.js'),
    tamper: ({ at }, bench) => removing(purging(bench, { at: at + 10, named: at }), at, 'unchecked'),
  },
  {
    what: 'rows that are missing are told',
    mutation: without("else report('missing',", "else ((..._) => {})('missing',", 'verify/gaps.js'),
    tamper: (some) => removing(some, some.at),
  },
];
