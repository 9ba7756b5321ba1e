/** The newest checkpoint of every receipt log, in memory: each answer to an agent carries its organisation's. */
import type { Broker } from '../broker.ts';
import { listSignedSince } from '../store/receipt-logs.ts';

/** With the origin, which whoever keeps it knows, all that a checkpoint is made of (C2SP tlog-checkpoint). */
export type LogHead = {
  size: number;
  /** Base64. */
  root: string;
  /** When it was signed; not part of what is signed. */
  at: string;
  /** As the line of a note has it: base64 of the key's id and the signature. */
  sig: string;
};

export type LogHeads = {
  of(organisationId: string): LogHead | undefined;
  /** Reads those that are new. */
  refresh(): Promise<void>;
};

/** The clocks of processes differ by so much at most. */
const OVERLAP_MS = 60_000;

export function makeLogHeads({ store, clock }: Pick<Broker, 'store' | 'clock'>): LogHeads {
  const heads = new Map<string, LogHead>();
  let newest = 0;
  return {
    of: (organisationId) => heads.get(organisationId),
    refresh: async () => {
      // A checkpoint that was made by a clock that was ahead is no reason to pass over those that are made since.
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
