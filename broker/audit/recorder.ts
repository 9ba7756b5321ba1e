/** The interface of recording. */
import type { Uses } from '../broker.ts';
import type { AuditRow } from '../store/audit.ts';
import type { Db } from '../store/store.ts';
import type { RolledBack } from '../store/transaction.ts';
import type { AuditFlags } from './audit-flags.ts';

/** Nominal by its private field, so that no literal or spread is one. Only the recorder makes them. */
export class DurableValue<T> {
  readonly #value: T;
  constructor(value: T) {
    this.#value = value;
  }
  get value(): T {
    return this.#value;
  }
}
/** A value whose audit row is durable. */
export type Recorded<T> = DurableValue<T>;

/**
 * Writes something else in the same transaction as a row, before it. `rollback(reason)` undoes both; what it answers under
 * `flags` goes into the row's. `row`: as it will be stored, but for that, its hash and its signature.
 */
export type Together<Reason = never> = (
  tx: Db,
  row: Readonly<AuditRow>,
) => Promise<RolledBack<Reason> | { flags: AuditFlags } | undefined>;

/** What belongs to a row in each of its states. `value`: of the outcome that is stored; undefined for an intent, and where a call broke off. */
export type Companion = {
  /**
   * Stores it in the transaction of the row, after it; may be repeated for the same state. `taken_over`: another process has taken over what the row is
   * about; then nothing is stored, and AuditUnavailable is thrown.
   */
  store(tx: Db, row: Readonly<AuditRow>, value: unknown): Promise<'taken_over' | undefined>;
  /** Called when the value came too late: another process considered this one dead and closed the row as unknown. Then AuditUnavailable is thrown. */
  tooLate?(value: unknown): Promise<void>;
};

/**
 * Takes what a call uses up, in the transaction of its intent, before it. What it answers under `flags` goes into the row's;
 * `rollback(reason)` undoes both, and the call is not made. Once an intent is stored it is not repeated.
 */
export type Claim<Undone = never> = (tx: Db) => Promise<Undone | { flags: AuditFlags }>;

export type Entry<T, Reason = never> = {
  /** Ownership passes to the recorder, which completes it. */
  row: AuditRow;
  /** Released once the row is durable. */
  value: T;
  /** Whether the upstream may have been called: then storing the row is retried for longer, and later again. */
  sent?: boolean;
  /** Transforms the value once the row is stored. */
  after?: (value: T) => Promise<T>;
  companion?: Companion | undefined;
  /** Runs once. */
  together?: Together<Reason>;
};

export type Recorder = {
  /**
   * Signs and stores a final row, then releases the value. Throws AuditUnavailable; with `together` neither is stored then,
   * and MaybeRecorded means that this is unknown.
   */
  record<T>(entry: Entry<T> & { together?: never }): Promise<Recorded<T>>;
  record<T, Reason>(entry: Entry<T, Reason>): Promise<Recorded<T> | RolledBack<Reason>>;
  /**
   * Stores the intent of a call, then makes it: `call` sends, and records how it ended. The intent of a change is durable
   * before anything is sent; that of a read survives the process, and is durable too where the answer is streamed. If `call`
   * throws, the row is closed. `makeDurable` does the same for a read that turns out to be streamed.
   *
   * @param options.isRead a read, whatever its method
   * @param options.claim what it uses up: then the intent of a read is durable, too. Where it asks for a rollback, that is the answer
   */
  intend<T, Undone extends RolledBack<unknown> = never>(
    intent: AuditRow,
    call: (makeDurable: () => Promise<void>) => Promise<Recorded<T>>,
    options?: {
      companion?: Companion | undefined;
      claim?: Claim<Undone> | undefined;
      isStreamed?: boolean;
      isRead?: boolean;
    },
  ): Promise<Recorded<T> | Undone>;
  /** Notes what is read of an upstream before the call itself, and reads it. `row`: says what is read, under the call's id. */
  readFirst<T>(row: AuditRow, read: () => Promise<T>): Promise<T>;
  /** Whether audit rows cannot be stored: then nothing is sent. */
  isFailing(): boolean;
  /** Rows that wait to be written, and outcomes that could not be stored yet. */
  backlog(): { waiting: number; late: number };
  /** Retries deferred outcomes. Returns how many are still pending. */
  retryLate(): Promise<number>;
  /** Resolves when no call is in flight and all rows are written, or after `patienceMs`. */
  settled(patienceMs: number): Promise<void>;
  /** Closes the journal of reads in flight. Entries whose row is not durable yet are kept for recovery on restart. */
  close(): Promise<void>;
};

/** Dependencies of recording. */
export type Recording = Uses<'instanceId' | 'clock' | 'log' | 'store'> & { recorder: Recorder };
