/** Reads the receipt log for its routes: checkpoints as notes, tiles as bytes, and its state. */

import type { Broker } from '../broker.ts';
import { countPending } from '../store/log-pending.ts';
import { findEntries, findNewestCheckpoint, findReceiptLog } from '../store/receipt-logs.ts';
import type { Store } from '../store/store.ts';
import type { LogCheckpointTable } from '../store/tables/receipt-log.ts';
import { logKeysOf, newOrigin } from './log-keys.ts';
import { consistencyProof } from './merkle.ts';
import { checkpointNote, vkeyOf } from './note.ts';
import { entriesIn, tileHashes, tileReader } from './tree.ts';

type HasLog = Pick<Broker, 'store' | 'baseUrl'>;

/** Returns the name of an organisation's log, also when the log is still empty. */
export const originOf = async ({ store, baseUrl }: HasLog, organisationId: string): Promise<string> =>
  (await findReceiptLog(store.db, organisationId))?.origin ?? newOrigin(baseUrl, organisationId);

/** Returns a stored checkpoint of the log of this name as a signed note, with the cosignatures of witnesses. */
export function noteOf(origin: string, { size, root, signature, cosignatures }: LogCheckpointTable): string {
  const head = { origin, size, root: Buffer.from(root, 'base64') };
  return checkpointNote(head, signature, cosignatures?.split('\n').filter(Boolean));
}

/** Lists the verifier keys of the log of this name, newest first. */
export const verifierKeys = async (broker: Pick<Broker, 'store' | 'vault'>, origin: string): Promise<string[]> =>
  (await logKeysOf(broker, origin)).map(vkeyOf);

/** The newest checkpoint as a note, or undefined. */
export async function newestNote(broker: HasLog, organisationId: string): Promise<string | undefined> {
  const checkpoint = await findNewestCheckpoint(broker.store.db, organisationId);
  return checkpoint && noteOf(await originOf(broker, organisationId), checkpoint);
}

/** `entries` instead of a level: the entries below the tile of level 0 with this index. */
export type TileName = { level: number | 'entries'; index: number; width: number };

/** Returns the bytes of a tile as in tlog-tiles; undefined: there is none, or it is not as wide. */
export async function readTileBytes(
  { store: { db } }: HasLog,
  organisationId: string,
  { level, index, width }: TileName,
): Promise<Buffer | undefined> {
  const found =
    level === 'entries' ? await bundle(db, organisationId, index) : await tileHashes(db, organisationId, level, index);
  return found && found.length >= width ? Buffer.concat(found.slice(0, width)) : undefined;
}

async function bundle(db: Store['db'], organisationId: string, index: number): Promise<Buffer[] | undefined> {
  const entries = await findEntries(db, organisationId, index);
  return entries && entriesIn(entries).map(({ hash }) => Buffer.concat([Buffer.from([0, hash.length]), hash]));
}

/** State of a log. Times in milliseconds since the epoch. */
export type LogStatus = {
  origin: string;
  keys: string[];
  size: number;
  checkpoint: { size: number; root: string; at: number } | null;
  waiting: { rows: number; since: number | null };
};

export async function logStatus(broker: HasLog & Pick<Broker, 'vault'>, organisationId: string): Promise<LogStatus> {
  // Before the log is read, so that a row that gets its index meanwhile is counted in at least one of the two.
  const waiting = await countPending(broker.store.db, organisationId);
  const log = await findReceiptLog(broker.store.db, organisationId);
  const origin = log?.origin ?? newOrigin(broker.baseUrl, organisationId);
  const { checkpoint_size: size = null, checkpoint_root: root = null, checkpoint_at: at = null } = log ?? {};
  return {
    origin,
    keys: await verifierKeys(broker, origin),
    size: log?.size ?? 0,
    checkpoint: size === null || root === null || at === null ? null : { size, root, at },
    waiting,
  };
}

/** Returns the proof in base64 that the tree of `first` rows is a prefix of that of `second`; undefined: there are no such trees. */
export async function proveConsistency(
  { store: { db } }: HasLog,
  organisationId: string,
  given: { first: number | undefined; second: number | undefined },
): Promise<{ first: number; second: number; proof: string[] } | { size: number }> {
  const size = (await findReceiptLog(db, organisationId))?.size ?? 0;
  const { second = size } = given;
  const { first = second } = given;
  if (first > second || second > size) return { size };
  const proof = await consistencyProof(tileReader(db, organisationId), first, second);
  return { first, second, proof: proof.map((one) => Buffer.from(one).toString('base64')) };
}
