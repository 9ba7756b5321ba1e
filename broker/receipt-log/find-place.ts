/** Finds the index of a row in its receipt log, and the inclusion proof. */
import type { Broker } from '../broker.ts';
import type { AuditRow } from '../store/audit.ts';
import { findCheckpointFrom, listEntriesSince } from '../store/receipt-logs.ts';
import { inclusionProof, TILE_WIDTH } from './merkle.ts';
import { noteOf, originOf } from './read-log.ts';
import { entriesIn, tileReader } from './tree.ts';

/** Tiles per query, and limit of all: a row is sequenced soon after it is final, so one of the first tiles has it. */
const BATCH_TILES = 16;
const MAX_TILES = 4_096;

/** Returns the index of a final row in its log; undefined: it has none yet. */
export async function findIndex(
  { store }: Pick<Broker, 'store'>,
  {
    organisation_id,
    id,
    finished_at,
    created_at,
  }: Pick<AuditRow, 'organisation_id' | 'id' | 'finished_at' | 'created_at'>,
): Promise<number | undefined> {
  // Each tile has the latest finish time up to it: the row cannot be before the first tile that reaches the row's own time.
  const since = finished_at ?? created_at;
  for (let from = 0, seen = 0; seen < MAX_TILES; seen += BATCH_TILES) {
    const tiles = await listEntriesSince(store.db, organisation_id, { since, from, limit: BATCH_TILES });
    for (const tile of tiles) {
      const at = entriesIn(tile).findIndex((entry) => entry.id === id);
      if (at >= 0) return tile.tile_index * TILE_WIDTH + at;
    }
    const last = tiles.at(-1);
    if (last === undefined || tiles.length < BATCH_TILES) return undefined;
    from = last.tile_index + 1;
  }
  return undefined;
}

/** Proof that a row is in the log. Hashes are base64. */
export type Inclusion = { index: number; size: number; proof: string[]; checkpoint: string };

/** Returns the proof for a row in the oldest tree with a checkpoint that covers it; undefined: there is none yet. */
export async function findInclusion(
  broker: Pick<Broker, 'store' | 'baseUrl'>,
  row: AuditRow,
): Promise<Inclusion | undefined> {
  const { organisation_id } = row;
  const index = await findIndex(broker, row);
  if (index === undefined) return undefined;
  const checkpoint = await findCheckpointFrom(broker.store.db, organisation_id, index + 1);
  if (!checkpoint) return undefined;
  const { size } = checkpoint;
  const proof = await inclusionProof(tileReader(broker.store.db, organisation_id), index, size);
  return {
    index,
    size,
    proof: proof.map((one) => Buffer.from(one).toString('base64')),
    checkpoint: noteOf(await originOf(broker, organisation_id), checkpoint),
  };
}
