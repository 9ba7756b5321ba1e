/** Where rows stand in their receipt log, and what proves it. */
import type { Broker } from '../broker.ts';
import type { AuditRow } from '../store/audit.ts';
import { findCheckpointFrom, listEntriesSince } from '../store/receipt-logs.ts';
import { inclusionProof, TILE_WIDTH } from './merkle.ts';
import { noteOf, originOf } from './read-log.ts';
import { entriesIn, tileReader } from './tree.ts';

/** Tiles that are read at once, and in all: a row is sequenced soon after its end, so it stands in one of the first. */
const TILES_AT_ONCE = 16;
const MOST_TILES = 4_096;

/** The index of a final row in its log; undefined: it has none yet. */
export async function findIndex(
  { store }: Pick<Broker, 'store'>,
  {
    organisation_id,
    id,
    finished_at,
    created_at,
  }: Pick<AuditRow, 'organisation_id' | 'id' | 'finished_at' | 'created_at'>,
): Promise<number | undefined> {
  // Tiles know the latest end up to them: the row cannot stand before the first one that reaches its own.
  const since = finished_at ?? created_at;
  for (let from = 0, seen = 0; seen < MOST_TILES; seen += TILES_AT_ONCE) {
    const tiles = await listEntriesSince(store.db, organisation_id, { since, from, limit: TILES_AT_ONCE });
    for (const tile of tiles) {
      const at = entriesIn(tile).findIndex((entry) => entry.id === id);
      if (at >= 0) return tile.tile_index * TILE_WIDTH + at;
    }
    const last = tiles.at(-1);
    if (last === undefined || tiles.length < TILES_AT_ONCE) return undefined;
    from = last.tile_index + 1;
  }
  return undefined;
}

/** That a row is in the log. Hashes are base64. */
export type Inclusion = { index: number; size: number; proof: string[]; checkpoint: string };

/** The proof for a row in the oldest tree with a checkpoint that has it; undefined: there is none yet. */
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
