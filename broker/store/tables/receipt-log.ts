/** Tables of the receipt log, of retention, and of audit sinks. */
import type { RetainedKind } from '../../policy/retention.ts';

/** A final audit row that has no index in the receipt log yet. */
export type LogPendingTable = { organisation_id: string; row_id: string; row_hash: string; finished_at: number };

/** Final audit rows without an index that one statement wrote: their concatenated ids and hashes, and the earliest and latest finish time. */
export type LogBatchTable = {
  organisation_id: string;
  rows: number;
  ids: string;
  row_hashes: string;
  first_at: number;
  last_at: number;
};

/** State of an organisation's receipt log, and its newest checkpoint. Roots are base64. */
export type ReceiptLogTable = {
  organisation_id: string;
  /** Name of the log in its checkpoints and keys. Unchanged when the broker's URL changes, so that earlier signatures still verify. */
  origin: string;
  size: number;
  root: string;
  /** The key of the newest signature, which is recorded in the audit. */
  signed_with: string | null;
  checkpoint_size: number | null;
  checkpoint_root: string | null;
  checkpoint_at: number | null;
  /** As in the signature line of a note. */
  signature: string | null;
};

/** Progress of deleting expired rows of a kind, by index in the receipt log. */
export type AuditPurgeTable = {
  organisation_id: string;
  kind: RetainedKind;
  /** Index of the next row to delete. */
  next_index: number;
  /** Index of the first row that no event has announced. */
  announced_index: number;
  /** The audit row of the last announcement. */
  event_id: string | null;
};

/** The entries of a tile of level 0, each 16 bytes of a row's id and 32 bytes of its hash. */
export type LogEntriesTable = {
  organisation_id: string;
  tile_index: number;
  ids: Uint8Array;
  row_hashes: Uint8Array;
  /** The latest finish time of all rows up to the end of this tile, in milliseconds since the epoch; never decreases from tile to tile. */
  last_at: number;
};

/** A tile of level 1 and above. */
export type LogTileTable = { organisation_id: string; level: number; tile_index: number; hashes: Uint8Array };

export type LogCheckpointTable = {
  organisation_id: string;
  size: number;
  root: string;
  at: number;
  signature: string;
  /** Cosignature lines of witnesses, each with its newline. */
  cosignatures: string | null;
};

/** The keys of the receipt log; the newest one signs. */
export type LogKeyTable = {
  id: string;
  /** 32 bytes in base64. */
  public_key: string;
  /** PKCS#8 DER, sealed; null: retired. */
  private_key: Uint8Array | null;
  created_at: number;
  retired_at: number | null;
  /** As in `signing_keys`. */
  authenticator: Uint8Array | null;
};

/** Sinks that the audit of an organisation is pushed to (migration 0045). */
export type AuditSinkTable = {
  organisation_id: string;
  id: string;
  name: string;
  kind: string;
  format: string;
  /** JSON, by kind (config-file/audit-sinks.ts): not secret. */
  settings: string;
  /** Sealed. */
  secret: Uint8Array | null;
  status: 'active' | 'paused';
  /** Index of the first row of the receipt log that the receiver has not acknowledged. */
  next_index: number;
  /** Exclusive end of the batch in flight; null: there is none. */
  batch_end: number | null;
  /** Number of rows that the receiver accepted but reported as not stored. */
  rejected_rows: number;
  delivered_at: number | null;
  /** Since when batches fail; null: the last batch arrived. */
  failing_since: number | null;
  failures: number;
  /** In the broker's own words. */
  last_error: string | null;
  /** Nothing is sent before this time. */
  retry_at: number | null;
  created_at: number;
  /** Where the secret comes from, as in a governance file. */
  secret_reference: string | null;
};
