/** The interface of recording. */
import type { Uses } from '../broker.ts';
import type { AuditRow } from '../store/audit.ts';
import type { Db } from '../store/store.ts';
import type { RolledBack } from '../store/transaction.ts';
import type { AuditFlags } from './audit-flags.ts';

/** Nominal by its private field, so that no literal or spread has this type. Only the recorder creates them. */
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
 * Writes something else in the same transaction as a row, before the row. `rollback(reason)` rolls both back; returned `flags` are added to
 * the row. `row`: as it will be stored, except for those flags, hash and signature.
 */
export type Together<Reason = never> = (
  tx: Db,
  row: Readonly<AuditRow>,
) => Promise<RolledBack<Reason> | { flags: AuditFlags } | undefined>;

/** What is stored together with a row in each of its states. `value`: of the outcome; undefined for an intent, and when a call broke off. */
export type Companion = {
  /**
   * Stores it in the row's transaction, after the row; may run again for the same state. `taken_over`: another process has taken over what
   * the row is about; then nothing is stored, and AuditUnavailable is thrown.
   */
  store(tx: Db, row: Readonly<AuditRow>, value: unknown): Promise<'taken_over' | undefined>;
  /** Called when another process considered this one dead and has closed the row as unknown. AuditUnavailable is thrown afterwards. */
  tooLate?(value: unknown): Promise<void>;
};

/**
 * Deducts what a call consumes (such as uses of a limit), in the transaction of its intent, before the intent. Returned `flags` are added
 * to the row; `rollback(reason)` rolls both back, and the call is not made. Not run again once an intent is stored.
 */
export type Claim<Undone = never> = (tx: Db) => Promise<Undone | { flags: AuditFlags }>;

export type Entry<T, Reason = never> = {
  /** The recorder takes ownership and completes the row. */
  row: AuditRow;
  /** Returned once the row is durable. */
  value: T;
  /** Whether the upstream may have been called: then storing the row is retried for longer, and deferred if that fails. */
  sent?: boolean;
  /** Transforms the value once the row is stored. */
  after?: (value: T) => Promise<T>;
  companion?: Companion | undefined;
  /** Whether an agent caused a row that is not of a call: its transaction then counts in the share of the organisation. */
  isAgents?: boolean;
  /** Runs only once: a failed transaction is not retried. */
  together?: Together<Reason>;
};

export type Recorder = {
  /**
   * Signs and stores a final row, then returns the value. Throws AuditUnavailable when it could not be stored; with `together` neither is
   * stored then, and MaybeRecorded means that the result is unknown.
   */
  record<T>(entry: Entry<T> & { together?: never }): Promise<Recorded<T>>;
  record<T, Reason>(entry: Entry<T, Reason>): Promise<Recorded<T> | RolledBack<Reason>>;
  /**
   * Stores the intent of a call, then runs `call`, which sends it and records the outcome. The intent of a change is durable before anything
   * is sent. The intent of a read survives a crash of the process, and is durable, too, when the answer is streamed. If `call` throws, the
   * row is closed as unknown. `makeDurable` makes the intent of a read durable whose answer turns out to be streamed.
   *
   * @param options.isRead whether the call is a read, whatever its method
   * @param options.claim deducts what the call consumes; the intent of a read is durable then, too. Its rollback, if any, is returned
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
  /** Journals a read of an upstream that precedes the call itself, then runs it. `row`: describes that read, under the call's id. */
  readFirst<T>(row: AuditRow, read: () => Promise<T>): Promise<T>;
  /** Whether audit rows cannot be stored; no call is sent meanwhile. */
  isFailing(): boolean;
  /** Number of rows that wait to be written, and of deferred rows. */
  backlog(): { waiting: number; late: number };
  /** Retries deferred outcomes. Returns how many are still pending. */
  retryLate(): Promise<number>;
  /** Resolves when no call is in flight and all rows are written, or after `timeoutMs`. */
  settled(timeoutMs: number): Promise<void>;
  /** Closes the journal of reads in flight. Entries whose row is not durable yet are kept for recovery on restart. */
  close(): Promise<void>;
};

/** Dependencies of recording. */
export type Recording = Uses<'instanceId' | 'clock' | 'log' | 'store'> & { recorder: Recorder };

/** A row to store, as an intent or as a final row, with what is stored together with it. */
export type State = {
  row: AuditRow;
  value: unknown;
  companion: Companion | undefined;
  claim?: Claim<RolledBack<unknown>> | undefined;
};
