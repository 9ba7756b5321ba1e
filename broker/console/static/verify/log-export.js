// Verifies an export of a receipt log offline, in Node and in browsers, from the export, verifier keys and checkpoints alone: reports any row that was
// changed, removed, inserted or moved since it was logged.
import { verifyReceipt } from '../receipt/verify.js';
import { lineIn, objectIn } from './export-lines.js';
import { Gaps, setBit } from './gaps.js';
import { bytesOfBase64, bytesOfHex, hexOf, readCheckpoint } from './note.js';
import { hashesIn, leafHash, rootOver, same, TILE_WIDTH, widthOf } from './tile-tree.js';

/**
 * `withoutReceipt`: number of events that never get a receipt, which anybody with write access to the database may have written.
 * `areReceiptsChecked`: whether the signatures of the receipts were checked; invalid ones are among the problems. `uncompared`: number of checkpoints
 * of which a partial export lacks the last rows, so that they say nothing about it.
 *
 * @typedef {{ ok: boolean, origin: string | undefined, size: number, rows: number, purged: number, receipts: number, withoutReceipt: number, areReceiptsChecked: boolean, uncompared: number, problems: LogProblem[], more: number }} LogVerdict
 */

/** @typedef {import('./gaps.js').LogProblem} LogProblem */
/** @typedef {import('./gaps.js').ProblemKind} ProblemKind */
/** @typedef {import('./gaps.js').Report} Report */
/** @typedef {import('./note.js').VerifierKey} VerifierKey */
/** `called`: begins sentences about it. @typedef {import('./note.js').Checkpoint & { called: string }} Checkpoint */
/** A signed note, and the name of its file. @typedef {{ name: string, note: string }} KeptCheckpoint */
/** @typedef {import('./tile-tree.js').Digest} Digest */
/** @typedef {import('./export-lines.js').Header} Header */
/** @typedef {import('./export-lines.js').RowLine} RowLine */
/** @typedef {import('./export-lines.js').TileLine} TileLine */
/**
 * `derived`: hashes computed from the rows in the file. `root`: of a complete tile whose present rows match its hashes, which are then not kept;
 * `absent`: bits of its absent rows.
 *
 * @typedef {{ declared: readonly Uint8Array[], derived: (Uint8Array | undefined)[], root?: Uint8Array, absent?: Uint8Array }} Tile
 */

/** Messages for a range of rows. */
const OF_ROWS = {
  missing: 'are missing',
  changed: 'are not what was logged',
  inserted: 'have no place here',
  moved: 'are at the place of other rows',
  hashes: 'have other hashes in the file',
  no_receipt: 'have no receipt in the file, and were given one',
};

/** Reasons of the events that never get a receipt: every other final row has one, in every version. */
export const WITHOUT_RECEIPT = ['breaker_opened', 'breaker_closed', 'connection_connected', 'connection_disconnected'];

/** Maximum number of problems that are reported individually. */
const MAX = 100;

/** SHA-256 by WebCrypto. @type {Digest} */
export const webDigest = async (bytes) =>
  new Uint8Array(await crypto.subtle.digest('SHA-256', /** @type {Uint8Array<ArrayBuffer>} */ (bytes)));

/**
 * @param {AsyncIterable<string> | Iterable<string>} lines of `GET /owner/log/export`
 * @param {{ keys: readonly VerifierKey[], checkpoints?: readonly (string | KeptCheckpoint)[], receiptKeys?: readonly import('../receipt/verify.js').Jwk[], digest?: Digest, first?: number }} by `checkpoints`: signed
 *   notes kept from earlier, with names that problems mention; `receiptKeys`: the key set of receipts, to check their signatures; without it no row counts as deleted; `first`: the
 *   row from which the export was requested on: earlier rows may be absent, and checkpoints of fewer rows cannot be compared
 * @returns {Promise<LogVerdict>}
 */
export async function verifyLogExport(lines, { keys, checkpoints = [], receiptKeys, digest = webDigest, first = 0 }) {
  /** @type {LogProblem[]} */
  const problems = [];
  let more = 0;
  /** @type {Report} */
  const report = (kind, detail, first, last = first) => {
    const before = problems.at(-1);
    // Consecutive rows with the same kind of problem are reported as one range.
    if (
      before?.kind === kind &&
      before.last !== undefined &&
      first === before.last + 1 &&
      Object.hasOwn(OF_ROWS, kind)
    ) {
      before.last = /** @type {number} */ (last);
      before.detail = `Rows ${before.first} to ${last} ${OF_ROWS[/** @type {keyof typeof OF_ROWS} */ (kind)]}.`;
    } else if (problems.length >= MAX) more++;
    else problems.push({ kind, detail, ...(first !== undefined && { first }), ...(last !== undefined && { last }) });
  };
  const counts = { rows: 0, purged: 0, receipts: 0, withoutReceipt: 0, uncompared: 0 };
  const gaps = new Gaps(receiptKeys !== undefined);
  /** @type {Map<string, Tile>} */
  const tiles = new Map();
  /** @type {Header | undefined} */
  let header;
  /** The rows read since the last tile line, by index. `isVouched`: whether the row has a valid receipt of the log's organisation. @type {Map<number, { line: RowLine, leaf: Uint8Array, isVouched: boolean }>} */
  let rows = new Map();
  /** The previous tile. @type {{ level: number, index: number }} */
  let last = { level: 0, index: -1 };
  /** @type {Checkpoint[]} */
  let heads = [];
  /** Tiles of level 0 in which the tree of one of the checkpoints ends. @type {Set<number>} */
  let kept = new Set();
  const verdict = () => ({
    ok: problems.length === 0,
    origin: header?.origin,
    size: header?.size ?? 0,
    ...counts,
    areReceiptsChecked: receiptKeys !== undefined,
    problems,
    more,
  });
  for await (const text of lines) {
    if (text.trim() === '') continue;
    const one = lineIn(text);
    if (header === undefined) {
      // The header comes first, since every other line is checked against it.
      if (one?.type !== 'log') break;
      header = one;
      heads = await readHeads(notesOf(header, checkpoints), keys, report);
      kept = new Set(heads.map(({ size }) => Math.floor(size / TILE_WIDTH)));
    } else if (one?.type === 'row') {
      const { index } = one;
      const hash = await rowHashOf(one, digest);
      counts.rows++;
      if (one.row_hash !== hash) report('hashes', `Row ${index} has another hash in the file.`, index);
      let isVouched = false;
      if (one.receipt !== null) {
        counts.receipts++;
        const problem = await receiptProblem(one, hash, receiptKeys);
        if (problem === undefined) isVouched = header.origin.endsWith(`/orgs/${one.row.organisation_id}`);
        else report('receipt', `The receipt of row ${index} ${problem}.`, index);
      } else if (hasReceipt(one.row))
        report('no_receipt', `Row ${index} has no receipt in the file, and was given one.`, index);
      else counts.withoutReceipt++;
      if (rows.has(index)) report('inserted', `There is more than one row ${index}.`, index);
      else rows.set(index, { line: one, leaf: await leafHash(digest, bytesOfHex(hash)), isVouched });
    } else if (one?.type === 'tile') {
      const { level, index } = one;
      const width = widthIn(header, one);
      const hashes = hashesIn(bytesOfBase64(one.hashes));
      if (width === 0 || hashes.length > width)
        report('inserted', `Tile ${index} of level ${level} has hashes that have no place here.`);
      const isInOrder = level > last.level || (level === last.level && index > last.index);
      if (!isInOrder) report('malformed', `Tile ${index} of level ${level} is there twice, or not in its order.`);
      last = one;
      /** @type {(Uint8Array | undefined)[]} */
      let derived = [];
      if (level === 0) {
        const start = index * TILE_WIDTH;
        derived = Array.from({ length: width }, (_, at) => rows.get(start + at)?.leaf);
        for (const [row, { line, isVouched }] of rows) {
          if (row < start || row >= start + width) report('inserted', `Row ${row} has no place here.`, row);
          else if (isInOrder && isVouched) gaps.readPurge(line);
        }
        for (const row of outOfOrder([...rows.keys()]))
          report('moved', `Row ${row} is in the place of another one.`, row);
        rows = new Map();
      }
      const declared = hashes.slice(0, width);
      if (isInOrder)
        tiles.set(`${level} ${index}`, await tileOf(declared, derived, level > 0 || kept.has(index), digest));
    } else report('malformed', 'A line is none of an export.');
  }
  if (header === undefined) {
    report('malformed', 'The file does not begin as an export of a receipt log.');
    return verdict();
  }
  const { size, origin } = header;
  const cut = takeCut(rows, last, header);
  if (cut !== undefined) {
    const { index, derived } = cut;
    const at = [...derived.keys()].filter((at) => derived[at] !== undefined).map((at) => index * TILE_WIDTH + at);
    report('truncated', 'The file ends before the hashes of its last rows: it is incomplete.', at[0], at.at(-1));
    tiles.set(`0 ${index}`, { declared: [], derived });
  }
  for (const index of rows.keys()) report('inserted', `Row ${index} is after the last tile.`, index);
  // Otherwise the file's author could omit rows that were changed.
  const begin = first - (first % TILE_WIDTH);
  if (header.first > begin)
    report(
      'missing',
      `The export begins with row ${header.first}, but the export was requested from row ${begin} on.`,
      begin,
      header.first - 1,
    );
  const own = heads.find((head) => head.size === size && head.origin === origin);
  for (const head of heads) {
    if (head.origin !== header.origin)
      report('forked', `${head.called} is of the log ${head.origin}, and the export of ${header.origin}.`);
    else if (head.size > header.size)
      report(
        'truncated',
        `${head.called} is of ${head.size} rows, and the export has ${header.size}.`,
        header.size,
        head.size - 1,
      );
  }
  if (!own) {
    // An empty log has no checkpoint; a key for its origin must still be given.
    if (size > 0 || !keys.some(({ name }) => name === origin))
      report('unsigned', `No checkpoint is of the ${size} rows of the export.`);
    return verdict();
  }
  await deriveAbove(tiles, header, digest);
  const isAuthentic = await authenticate(tiles, header, own, digest, { report, gaps });
  counts.purged = gaps.name(report);
  if (isAuthentic)
    for (const head of heads)
      if (head !== own && head.origin === own.origin && head.size <= own.size)
        if (!(await comparePrefix(tiles, header.first, head, { digest, report }))) counts.uncompared++;
  return verdict();
}

/**
 * Removes and returns the rows at the end of a file that was cut off, as by an interrupted download: those of the tile that would have followed the last one.
 *
 * @param {Map<number, { leaf: Uint8Array }>} rows after the last tile @param {{ level: number, index: number }} last @param {Header} header
 * @returns {{ index: number, derived: (Uint8Array | undefined)[] } | undefined}
 */
function takeCut(rows, last, { first, size }) {
  const index = Math.max(last.index + 1, Math.floor(first / TILE_WIDTH));
  const width = last.level === 0 ? widthOf(size, 0, index) : 0;
  const derived = Array.from({ length: width }, (_, at) => rows.get(index * TILE_WIDTH + at)?.leaf);
  if (derived.every((leaf) => leaf === undefined)) return undefined;
  for (const at of derived.keys()) rows.delete(index * TILE_WIDTH + at);
  return { index, derived };
}

/** Returns the fewest numbers to remove so that the rest increases: the complement of a longest increasing subsequence. @param {readonly number[]} numbers */
function outOfOrder(numbers) {
  /** For each length, the index of the smallest last number of an increasing sequence. @type {number[]} */
  const ends = [];
  const before = numbers.map((number, at) => {
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (Number(numbers[Number(ends[middle])]) < number) low = middle + 1;
      else high = middle;
    }
    ends[low] = at;
    return low > 0 ? ends[low - 1] : undefined;
  });
  const rising = new Set();
  for (let at = ends.at(-1); at !== undefined; at = before[at]) rising.add(at);
  return numbers.filter((_, at) => !rising.has(at));
}

/** Returns how many hashes a tile of an export may have. @param {Header} header @param {TileLine} line */
const widthIn = ({ first, size }, { level, index }) =>
  level === 0 && index * TILE_WIDTH < first ? 0 : widthOf(size, level, index);

/** @param {readonly Uint8Array[]} declared @param {(Uint8Array | undefined)[]} derived @param {boolean} isKept @param {Digest} digest @returns {Promise<Tile>} */
async function tileOf(declared, derived, isKept, digest) {
  const isDropped =
    !isKept &&
    declared.length === TILE_WIDTH &&
    declared.every((hash, at) => derived[at] === undefined || same(hash, derived[at]));
  if (!isDropped) return { declared, derived };
  const root = await rootOver(digest, declared);
  if (!derived.includes(undefined)) return { declared: [], derived: [], root };
  const absent = new Uint8Array(TILE_WIDTH / 8);
  for (const [at, hash] of derived.entries()) if (hash === undefined) setBit(absent, at);
  return { declared: [], derived: [], root, absent };
}

/** Returns the checkpoints to compare with, and how sentences about them begin. @param {Header} header @param {readonly (string | KeptCheckpoint)[]} kept */
const notesOf = ({ checkpoint }, kept) => [
  ...(checkpoint === null ? [] : [{ called: 'The checkpoint in the export', note: checkpoint }]),
  ...kept.map((one) =>
    typeof one === 'string'
      ? { called: 'A checkpoint', note: one }
      : { called: `The checkpoint ${one.name}`, note: one.note },
  ),
];

/** @param {readonly { called: string, note: string }[]} notes @param {readonly VerifierKey[]} keys @param {(kind: ProblemKind, detail: string) => void} report */
async function readHeads(notes, keys, report) {
  /** @type {Checkpoint[]} */
  const heads = [];
  for (const { called, note } of notes) {
    const head = await readCheckpoint(note, keys);
    if (typeof head === 'string') {
      report('unsigned', `${called} ${head}.`);
      continue;
    }
    const other = heads.find(({ origin, size }) => origin === head.origin && size === head.size);
    if (other && !same(other.root, head.root))
      report('forked', `${called} is of ${head.size} rows, like another one that is signed, and has another root.`);
    if (!other) heads.push({ ...head, called });
  }
  return heads;
}

/** Returns the SHA-256, in hexadecimal, of the canonical JSON (RFC 8785) of the flat columns. @param {RowLine} line @param {Digest} digest */
async function rowHashOf({ row }, digest) {
  const members = Object.keys(row)
    .sort()
    .map((name) => `${JSON.stringify(name)}:${JSON.stringify(row[name])}`);
  return hexOf(await digest(new TextEncoder().encode(`{${members.join(',')}}`)));
}

/** Whether a row gets a receipt; the hashes of the log do not cover receipts. @param {RowLine['row']} row */
const hasReceipt = ({ kind, reason }) => kind !== 'event' || !WITHOUT_RECEIPT.includes(String(reason));

/** @param {RowLine} line @param {string} hash @param {readonly import('../receipt/verify.js').Jwk[] | undefined} receiptKeys */
async function receiptProblem({ row, receipt }, hash, receiptKeys) {
  const jws = String(receipt);
  let payload = objectIn(textOfBase64url(jws.split('.')[1] ?? ''));
  if (receiptKeys !== undefined) {
    const checked = await verifyReceipt(jws, receiptKeys);
    if (!checked.ok) return `does not verify: ${checked.error}`;
    payload = checked.payload;
  }
  if (payload?.jti !== row.id) return 'is of another row';
  return payload?.row_hash === hash ? undefined : 'has another hash of the row';
}

/** @param {string} text */
function textOfBase64url(text) {
  try {
    return new TextDecoder().decode(bytesOfBase64(text.replaceAll('-', '+').replaceAll('_', '/')));
  } catch {
    return '';
  }
}

/**
 * Computes the tiles of higher levels from the rows, as far as rows are present.
 *
 * @param {Map<string, Tile>} tiles @param {{ first: number, size: number }} header @param {Digest} digest
 */
async function deriveAbove(tiles, { size }, digest) {
  for (let level = 1; widthOf(size, level, 0) > 0; level++)
    for (let index = 0; widthOf(size, level, index) > 0; index++) {
      const tile = tiles.get(`${level} ${index}`) ?? { declared: [], derived: [] };
      tiles.set(`${level} ${index}`, tile);
      for (let at = 0; at < widthOf(size, level, index); at++) {
        const below = tiles.get(`${level - 1} ${index * TILE_WIDTH + at}`);
        const hashes = below?.derived ?? [];
        const isWhole = hashes.length === TILE_WIDTH && hashes.every((hash) => hash !== undefined);
        tile.derived[at] = isWhole ? await rootOver(digest, /** @type {Uint8Array[]} */ (hashes)) : below?.root;
      }
    }
}

/** Returns the tiles at the right edge of a tree, lowest first. @param {number} size */
function edgeOf(size) {
  const edge = [];
  for (let level = 0; Math.floor(size / TILE_WIDTH ** level) > 0; level++) {
    const index = Math.floor(size / TILE_WIDTH ** (level + 1));
    const width = widthOf(size, level, index);
    if (width > 0) edge.push({ level, index, width });
  }
  return edge;
}

/** @param {readonly (readonly Uint8Array[])[]} edge hashes of tiles, lowest first @param {Digest} digest */
async function rootOfEdge(edge, digest) {
  /** @type {Uint8Array | undefined} */
  let below;
  for (const hashes of edge) below = await rootOver(digest, below === undefined ? hashes : [...hashes, below]);
  return below;
}

/**
 * Determines which hashes belong to the checkpoint, from the root down, and reports the rows that do not match.
 *
 * @param {Map<string, Tile>} tiles @param {{ first: number, size: number }} header @param {Checkpoint} head @param {Digest} digest
 * @param {{ report: Report, gaps: Gaps }} to
 * @returns {Promise<boolean>} whether the tiles at the edge are known; they are then in `declared`
 */
async function authenticate(tiles, { first, size }, head, digest, { report, gaps }) {
  if (size === 0) return true;
  const edge = edgeOf(size);
  const choices = edge.map(({ level, index, width }) => versionsOf(tiles.get(`${level} ${index}`), width));
  /** @type {(readonly Uint8Array[])[] | undefined} */
  let chosen;
  // Tries each combination: even a file with one wrong tile shows which of the rows are right.
  for (const some of combinations(choices))
    if (same(await rootOfEdge(some, digest), head.root)) {
      chosen = some;
      break;
    }
  if (!chosen) {
    nameDifferences(tiles, first, size, { report, gaps });
    report(
      'unknown',
      'The rows are not those of the checkpoint, and neither are the hashes in the file.',
      first,
      size - 1,
    );
    return false;
  }
  for (const [at, { level, index }] of edge.entries())
    await descend(
      tiles,
      { level, index, hashes: /** @type {readonly Uint8Array[]} */ (chosen[at]) },
      { first, digest, report, gaps },
    );
  return true;
}

/** Returns the candidates of a tile's hashes: declared in the file, or computed from its rows. @param {Tile | undefined} tile @param {number} width @returns {(readonly Uint8Array[])[]} */
function versionsOf(tile, width) {
  const whole = (/** @type {readonly (Uint8Array | undefined)[]} */ hashes) =>
    hashes.length === width && hashes.every((hash) => hash?.length === 32);
  const found = [tile?.declared ?? [], tile?.derived ?? []].filter(whole);
  return /** @type {(readonly Uint8Array[])[]} */ (found);
}

/** @template T @param {readonly (readonly T[])[]} choices @returns {Generator<T[]>} */
function* combinations([firsts, ...rest]) {
  if (firsts === undefined) yield [];
  else for (const others of combinations(rest)) for (const one of firsts) yield [one, ...others];
}

/**
 * @param {Map<string, Tile>} tiles @param {{ level: number, index: number, hashes: readonly Uint8Array[] }} known a tile whose hashes are verified
 * @param {{ first: number, digest: Digest, report: Report, gaps: Gaps }} by
 */
async function descend(tiles, { level, index, hashes }, by) {
  const tile = tiles.get(`${level} ${index}`);
  const { first, digest, report, gaps } = by;
  const span = TILE_WIDTH ** level;
  const start = index * TILE_WIDTH * span;
  if (start + hashes.length * span <= first && level === 0) return;
  const isDeclared =
    tile?.declared.length === hashes.length && hashes.every((hash, at) => same(hash, tile.declared[at]));
  if (!isDeclared)
    report(
      'hashes',
      `The hashes of tile ${index} of level ${level} are not those of the log.`,
      start,
      start + hashes.length * span - 1,
    );
  if (tile) tile.declared = hashes;
  if (level === 0) {
    for (const [at, hash] of hashes.entries()) {
      const derived = tile?.derived[at];
      if (derived === undefined) gaps.add(start + at);
      else if (!same(derived, hash)) report('changed', `Row ${start + at} is not what was logged.`, start + at);
      else gaps.confirm(start + at);
    }
    return;
  }
  for (const [at, hash] of hashes.entries()) {
    const below = index * TILE_WIDTH + at;
    const begin = start + at * span;
    const child = tiles.get(`${level - 1} ${below}`);
    if (begin + span <= first && level === 1) continue;
    if (same(child?.root, hash)) {
      gaps.addTile(below, child?.absent);
      gaps.confirmTile(below);
      continue;
    }
    let right;
    for (const version of versionsOf(child, TILE_WIDTH))
      if (same(await rootOver(digest, version), hash)) {
        right = version;
        break;
      }
    if (right) await descend(tiles, { level: level - 1, index: below, hashes: right }, by);
    else if (child === undefined && level === 1)
      report('missing', `Rows ${begin} to ${begin + span - 1} are missing.`, begin, begin + span - 1);
    else {
      const end = begin + span - 1;
      nameDifferences(tiles, Math.max(begin, first), end + 1, { report, gaps });
      report(
        'unknown',
        `Among the rows ${begin} to ${end} some are not what was logged, and their hashes in the file are wrong, too.`,
        begin,
        end,
      );
    }
  }
}

/** Reports rows whose hashes contradict those in the same file. @param {Map<string, Tile>} tiles @param {number} first @param {number} end @param {{ report: Report, gaps: Gaps }} to */
function nameDifferences(tiles, first, end, { report, gaps }) {
  for (let start = first - (first % TILE_WIDTH); start < end; start += TILE_WIDTH) {
    const tile = tiles.get(`0 ${start / TILE_WIDTH}`);
    if (tile?.root) {
      gaps.addTile(start / TILE_WIDTH, tile.absent);
      continue;
    }
    for (let at = 0; at < Math.min(TILE_WIDTH, end - start); at++) {
      const derived = tile?.derived[at];
      if (derived === undefined) gaps.add(start + at);
      else if (tile?.declared[at] !== undefined && !same(derived, tile.declared[at]))
        report('changed', `Row ${start + at} is not what its hash in the file says.`, start + at);
    }
  }
}

/**
 * Reports when the tree of a checkpoint is not a prefix of the tree whose tiles are verified. Returns false when an export that begins later lacks its
 * lowest tile, so that they cannot be compared.
 *
 * @param {Map<string, Tile>} tiles @param {number} first @param {Checkpoint} head @param {{ digest: Digest, report: Report }} by
 */
async function comparePrefix(tiles, first, { called, size, root }, { digest, report }) {
  const edge = edgeOf(size);
  if (edge.some(({ level, index }) => level === 0 && index * TILE_WIDTH < first)) return false;
  const hashes = edge.map(({ level, index, width }) =>
    (tiles.get(`${level} ${index}`)?.declared ?? []).slice(0, width),
  );
  if (hashes.some((one, at) => one.length < Number(edge[at]?.width)))
    report(
      'unknown',
      `${called} is of ${size} rows. Whether these are the beginning of this log is unknown: hashes are missing.`,
    );
  else if (!same(size === 0 ? await digest(new Uint8Array()) : await rootOfEdge(hashes, digest), root))
    report('forked', `${called} is of ${size} rows that are not the beginning of this log.`, 0, size - 1);
  return true;
}
