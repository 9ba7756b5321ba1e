/** Caches the newest checkpoint of every receipt log: each answer to an agent carries that of its organisation. */
import type { Broker } from '../broker.ts';
import { listSignedSince } from '../store/receipt-logs.ts';

/** Together with the log's origin, which clients that save it know, all data of a checkpoint (C2SP tlog-checkpoint). */
export type LogHead = {
  size: number;
  /** Base64. */
  root: string;
  /** When it was signed; not part of what is signed. */
  at: string;
  /** As in the signature line of a note: base64 of the key's id and the signature. */
  sig: string;
};

export type LogHeads = {
  of(organisationId: string): LogHead | undefined;
  /** Reads new checkpoints. */
  refresh(): Promise<void>;
};

/** Maximum difference between the clocks of processes. */
const OVERLAP_MS = 60_000;

export function makeLogHeads({ store, clock }: Pick<Broker, 'store' | 'clock'>): LogHeads {
  const heads = new Map<string, LogHead>();
  let newest = 0;
  return {
    of: (organisationId) => heads.get(organisationId),
    refresh: async () => {
      // Bounded by the current time: a checkpoint made by a clock that was ahead must not hide those made since.
      for (const log of await listSignedSince(store.db, Math.min(newest, clock()) - OVERLAP_MS)) {
        const { organisation_id, checkpoint_size: size, checkpoint_root: root, checkpoint_at: at, signature } = log;
        if (size === null || root === null || at === null || signature === null) continue;
        newest = Math.max(newest, at);
        if (heads.get(organisation_id)?.size === size) continue;
        heads.set(organisation_id, { size, root, at: new Date(at).toISOString(), sig: signature });
      }
    },
  };
}
