/** Saves the copies that an auditor keeps apart from the broker: the receipt log, its verifier keys, its checkpoints and the keys of receipts. */
import { hash, randomUUID } from 'node:crypto';
import {
  createReadStream,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { ProblemKind } from '../../broker/console/static/verify/gaps.js';
import { parseStrictJson } from '../../json/strict.ts';
import type { BrokerConnection, ConnectionOptions } from '../connection.ts';
import { CommandFailed } from '../failure.ts';
import { openOwnerApi } from '../owner-api.ts';
import { replaceFile } from '../replace-file.ts';
import { saveDownload } from '../save-download.ts';

/** Problems that cannot be checked without the keys of receipts, or that concern the saved files instead of the rows. */
const NOT_OF_ROWS: readonly ProblemKind[] = ['unchecked', 'unsigned', 'receipt', 'no_receipt'];

/** Names of the files in the folder. */
const LOG = 'log.jsonl';
const LOG_KEYS = 'log.key';
const RECEIPT_KEYS = 'receipt-keys.json';
const CHECKPOINTS = 'checkpoints';
/** Age from which a partial download is one of a killed process. */
const ABANDONED_MS = 24 * 3600 * 1000;

/** `newReceiptKeys`: the `kid`s of keys that were not in the folder before. */
export type SavedLog = { size: number; checkpoints: number; newLogKeys: number; newReceiptKeys: string[] };

/**
 * Saves the log up to its newest checkpoint into a folder, replacing the saved log, and adds the checkpoint to the saved ones. Keys that were
 * saved before stay. Throws CommandFailed, and keeps the saved files unchanged, when the broker lost a verifier key that it had, signed a
 * different log of the same size before, or exports rows that differ from the saved checkpoints: the saved files may then be the only copy of
 * what was logged.
 */
export async function saveLog(folder: string, options: ConnectionOptions): Promise<SavedLog> {
  const { broker, ask } = await openOwnerApi(options);
  const { id } = await ask('GET', '/owner/organisation');
  const served = linesOf(await textAt(broker, `/.well-known/svc-log/${id}`));
  const saved = linesOf(savedText(folder, LOG_KEYS));
  if (saved.length === 0) refuseOthersFiles(folder);
  const [ours, theirs] = [saved, served].map(([key]) => key?.split('+')[0]);
  if (ours !== undefined && ours !== theirs)
    throw new CommandFailed(
      `${folder} has the log ${ours}, and the broker's is ${theirs}. Nothing was saved: each organisation has a log of its own, so save this one into another folder. If it should be the same log, find out why before you trust it: the name of a log never changes.`,
    );
  const gone = saved.filter((key) => !served.includes(key));
  if (gone.length > 0)
    throw new CommandFailed(
      `The broker does not name a verifier key that ${join(folder, LOG_KEYS)} has: ${gone[0]}. Nothing was saved. A log never loses a key: find out why before you trust another log.`,
    );
  // Read before the export, which then includes at least as many rows.
  const note = await textAt(broker, `/orgs/${id}/checkpoint`);
  const size = Number(note.split('\n')[1]);
  const noted = savedText(folder, join(CHECKPOINTS, `${size}`));
  if (noted !== '' && signedTextOf(noted) !== signedTextOf(note))
    throw new CommandFailed(
      `The broker signed another log of ${size} rows than the one of ${join(folder, CHECKPOINTS, `${size}`)}. Nothing was saved: rows were changed since, and this folder is the evidence of what they were. Keep it as it is, and save into another one.`,
    );
  const known = savedReceiptKeys(folder);
  const published = receiptKeysIn(await textAt(broker, '/.well-known/svc-receipt-keys.json')) ?? [];
  const more = without(published, known);
  const keys = { keys: [...published, ...without(known, published)] };
  mkdirSync(join(folder, CHECKPOINTS), { recursive: true, mode: 0o700 });
  removeLeftovers(folder);
  // A name of its own, since another process may be saving into the folder.
  const next = join(folder, `.${LOG}.${randomUUID()}.new`);
  await saveDownload(await broker.download('/owner/log/export'), next);
  try {
    if (existsSync(join(folder, LOG))) await refuseOther(next, { folder, keys: served, note, size });
    // Before the log: a log without keys would not be taken for one that was saved here.
    replaceFile(join(folder, LOG_KEYS), `${served.join('\n')}\n`);
    renameSync(next, join(folder, LOG));
  } finally {
    rmSync(next, { force: true });
  }
  replaceFile(join(folder, RECEIPT_KEYS), `${JSON.stringify(keys, null, 2)}\n`);
  replaceFile(join(folder, CHECKPOINTS, `${size}`), note);
  return {
    size,
    checkpoints: checkpointsIn(folder).length,
    newLogKeys: saved.length === 0 ? 0 : served.length - saved.length,
    newReceiptKeys: known.length === 0 ? [] : more.map(({ kid }) => `${kid}`),
  };
}

/** Throws CommandFailed when a folder without verifier keys, and so without a saved log, has files with the names of those that would be written. */
function refuseOthersFiles(folder: string): void {
  const checkpoints = join(folder, CHECKPOINTS);
  const files = [LOG, RECEIPT_KEYS].map((name) => join(folder, name));
  const more = existsSync(checkpoints) ? readdirSync(checkpoints).map((name) => join(checkpoints, name)) : [];
  const found = [...files, ...more].find((path) => existsSync(path));
  if (found !== undefined)
    throw new CommandFailed(
      `${found} is there, and ${join(folder, LOG_KEYS)} is not: this folder has no log that was saved by this command. Nothing was saved. Name an empty or a new folder, or put the file ${LOG_KEYS} back.`,
    );
}

/** Paths of the files in a folder that `saveLog` wrote. */
export const filesIn = (folder: string): { log: string; key: string; receiptKeys: string; checkpoint: string[] } => ({
  log: join(folder, LOG),
  key: join(folder, LOG_KEYS),
  receiptKeys: join(folder, RECEIPT_KEYS),
  checkpoint: checkpointsIn(folder).map((name) => join(folder, CHECKPOINTS, name)),
});

/** Returns the names of the saved checkpoints, without hidden files, which other programs create (.DS_Store). */
const checkpointsIn = (folder: string): string[] =>
  existsSync(join(folder, CHECKPOINTS))
    ? readdirSync(join(folder, CHECKPOINTS)).filter((name) => !name.startsWith('.'))
    : [];

/** Throws CommandFailed when an export does not continue the checkpoints of a folder. */
async function refuseOther(
  file: string,
  { folder, keys, note, size }: { folder: string; keys: readonly string[]; note: string; size: number },
): Promise<void> {
  const { linesOf: linesIn } = await import('../../broker/console/static/verify/export-lines.js');
  const { verifyLogExport } = await import('../../broker/console/static/verify/log-export.js');
  const { readVerifierKeys } = await import('../../broker/console/static/verify/note.js');
  // The checkpoint of this size was compared before, and may have been co-signed since.
  const kept = checkpointsIn(folder).filter((name) => name !== `${size}`);
  const { problems } = await verifyLogExport(
    linesIn(Readable.toWeb(createReadStream(file)).pipeThrough(new TextDecoderStream())),
    {
      keys: await readVerifierKeys(keys.join('\n')),
      checkpoints: [...kept.map((name) => ({ name, note: savedText(folder, join(CHECKPOINTS, name)) })), note],
      digest: (bytes) => hash('sha256', bytes, 'buffer'),
    },
  );
  const told = problems.filter(({ kind }) => !NOT_OF_ROWS.includes(kind)).slice(0, 5);
  if (told.length > 0)
    throw new CommandFailed(
      `The log that the broker exports now is not the one that ${folder} has checkpoints of. Nothing was saved: this folder is the evidence of what was logged. Keep it as it is, and save into another one.\n` +
        told.map(({ kind, detail }) => `  ${kind}: ${detail}`).join('\n'),
    );
}

/** Removes downloads of processes that were killed; one that still runs is not a day old. */
function removeLeftovers(folder: string): void {
  for (const name of readdirSync(folder).filter((one) => one.startsWith(`.${LOG}.`))) {
    const modifiedAt = statSync(join(folder, name), { throwIfNoEntry: false })?.mtimeMs ?? Date.now();
    if (Date.now() - modifiedAt > ABANDONED_MS) rmSync(join(folder, name), { force: true });
  }
}

/** Returns the text of a note without its signatures, which may be added to a checkpoint later. */
const signedTextOf = (note: string): string => note.slice(0, note.lastIndexOf('\n\n') + 1);

const linesOf = (text: string): string[] => text.split('\n').filter((line) => line !== '');

/** Returns the text of a saved file, empty if there is none. Line ends may have become CRLF since, as in a git work tree on Windows. */
function savedText(folder: string, name: string): string {
  const path = join(folder, name);
  return existsSync(path) ? readFileSync(path, 'utf8').replaceAll('\r\n', '\n') : '';
}

async function textAt(broker: BrokerConnection, path: string): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const piece of await broker.download(path)) pieces.push(piece);
  return Buffer.concat(pieces).toString('utf8');
}

type ReceiptKey = { kid?: string };

/** Returns the keys in a key set; undefined: it is not one. */
function receiptKeysIn(keySet: string): ReceiptKey[] | undefined {
  const parsed = parseStrictJson(keySet);
  const { keys } = ((parsed.ok && parsed.value) || {}) as { keys?: unknown };
  return Array.isArray(keys) ? keys : undefined;
}

/** Returns the saved keys of receipts. Throws CommandFailed when the file is damaged: replacing it would trust the keys that are published now. */
function savedReceiptKeys(folder: string): ReceiptKey[] {
  const path = join(folder, RECEIPT_KEYS);
  if (!existsSync(path)) return [];
  const keys = receiptKeysIn(savedText(folder, RECEIPT_KEYS));
  if (keys === undefined)
    throw new CommandFailed(
      `${path} is no key set. Nothing was saved: a key that the broker publishes could not be compared with those that were saved before. Restore the file from a copy, or save into another folder.`,
    );
  return keys;
}

const without = (some: readonly ReceiptKey[], others: readonly ReceiptKey[]): ReceiptKey[] =>
  some.filter(({ kid }) => !others.some((other) => other.kid === kid));
