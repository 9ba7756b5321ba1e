/** Tables of the receipt log, and of where the audit goes. */
import type { RetainedKind } from '../../policy/retention.ts';

/** A final audit row that has no place in the receipt log yet. */
export type LogPendingTable = { organisation_id: string; row_id: string; row_hash: string; finished_at: number };

/** Final audit rows that have no place yet, which one statement wrote: their ids and hashes one after the other, and when the first and the last ended. */
export type LogBatchTable = {
  organisation_id: string;
  rows: number;
  ids: string;
  row_hashes: string;
  first_at: number;
  last_at: number;
};

/** Where the receipt log of an organisation stands, and its newest checkpoint. Roots are base64. */
export type ReceiptLogTable = {
  organisation_id: string;
  /** The name of the log in its checkpoints and keys. It stays when the broker's URL changes: what was signed under it has to verify. */
  origin: string;
  size: number;
  root: string;
  /** The key that signed last, which is on record. */
  signed_with: string | null;
  checkpoint_size: number | null;
  checkpoint_root: string | null;
  checkpoint_at: number | null;
  /** As the line of a note has it. */
  signature: string | null;
};

/** Up to where rows of a kind that are kept no longer were deleted, by index in the receipt log. */
export type AuditPurgeTable = {
  organisation_id: string;
  kind: RetainedKind;
  /** Of the next row to delete. */
  next_index: number;
  /** Of the first row that no event has announced. */
  announced_index: number;
  /** The audit row of the last event. */
  event_id: string | null;
};

/** The entries of a tile of level 0: 16 bytes of a row's id, and 32 of its hash, each. */
export type LogEntriesTable = {
  organisation_id: string;
  tile_index: number;
  ids: Uint8Array;
  row_hashes: Uint8Array;
  /** The latest end of a row up to here, in milliseconds since the epoch: it never falls from one tile to the next. */
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
  /** Lines of witnesses, each with its newline. */
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
  /** As of `signing_keys`. */
  authenticator: Uint8Array | null;
};

/** Where the audit of an organisation is pushed to (migration 0045). */
export type AuditSinkTable = {
  organisation_id: string;
  id: string;
  name: string;
  kind: string;
  format: string;
  /** JSON, by kind (config-file/audit-sinks.ts): nothing secret. */
  settings: string;
  /** Sealed. */
  secret: Uint8Array | null;
  status: 'active' | 'paused';
  /** Of the first row of the receipt log that the receiver has not acknowledged. */
  next_index: number;
  /** The batch that is on its way ends before this index; null: none is. */
  batch_end: number | null;
  /** Rows that the receiver took from us and said that it does not keep. */
  rejected_rows: number;
  delivered_at: number | null;
  /** null: the last batch arrived. */
  failing_since: number | null;
  failures: number;
  /** In our own words. */
  last_error: string | null;
  /** Nothing is sent before. */
  retry_at: number | null;
  created_at: number;
  /** Where the secret came from, as a governance file names it. */
  secret_reference: string | null;
};
