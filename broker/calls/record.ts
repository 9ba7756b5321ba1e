/**
 * Recording: no effect without a record, no answer without a record. Every row of a governed call goes through here, and
 * only here is a `Recorded` made, without which nothing can be answered.
 */
import type { Broker } from '../broker.ts';
import { createCompactSigner } from '../crypto/jws.ts';
import { type AuditRow, auditGroupWriter, LARGEST_GROUP, putAuditRow } from '../store/audit.ts';
import type { Db } from '../store/store.ts';
import { signRow } from './receipt.ts';

declare const recorded: unique symbol;
/** A value whose audit row is durable. Made only by a Recorder. */
export type Recorded<T> = T & { readonly [recorded]: true };

/** The audit row could not be stored. Nothing was sent when `sent` is false; else the call may have been made. */
export class AuditUnavailable extends Error {
  readonly sent: boolean;
  constructor(sent: boolean, cause: unknown) {
    super(sent ? 'the outcome could not be recorded' : 'the decision could not be recorded', { cause });
    this.name = 'AuditUnavailable';
    this.sent = sent;
  }
}

export type Recorder = {
  /** Stores an intent: a mutating call is about to be made. */
  intend(row: AuditRow): Promise<void>;
  /** Signs and stores a final row, then hands out `value`. `sent`: whether the upstream may have been called. */
  finish<T>(row: AuditRow, value: T, sent: boolean): Promise<Recorded<T>>;
  /** The same in one transaction with what `also` writes. */
  finishWith<T>(row: AuditRow, value: T, also: (db: Db) => Promise<void>): Promise<Recorded<T>>;
  /** Tries again to store outcomes that could not be stored when they came. Answers how many still wait. */
  retryLate(): Promise<number>;
  /** Resolves when nothing waits to be written. */
  drained(): Promise<void>;
};

type Waiting = { row: AuditRow; resolve(written: boolean): void; reject(error: unknown): void };

/** How long an outcome is tried to be stored: the call was made, so giving up at once would lose a fact. */
const OUTCOME_PATIENCE_MS = 5_000;
const RETRY_PAUSE_MS = 200;
/** Beyond so many the store is away for good, and a restart closes the rest as unknown. */
const MOST_LATE = 10_000;

/**
 * Rows that come in while a write is under way go out together in the next one, as soon as the last is done: two and a
 * half times the calls per second of one transaction each, and no row waits for a timer.
 */
export function makeRecorder(broker: Broker): Recorder {
  const write = auditGroupWriter(broker.store);
  const sign = createCompactSigner();
  const issuer = { did: broker.did, didOfAgents: `${broker.did}:agents:` };
  const waiting: Waiting[] = [];
  const late: AuditRow[] = [];
  let flushing: Promise<void> | undefined;

  const writeGroup = async (group: Waiting[]): Promise<void> => {
    try {
      const written = await write(group.map((entry) => entry.row));
      for (const entry of group) entry.resolve(written.has(entry.row.id));
    } catch (error) {
      // One bad row must not take the others with it.
      if (group.length > 1) for (const entry of group) await writeGroup([entry]);
      else group[0]!.reject(error);
    }
  };

  const flush = async (): Promise<void> => {
    // Let everything that is ready in this turn of the event loop join.
    await new Promise(setImmediate);
    while (waiting.length > 0) await writeGroup(waiting.splice(0, LARGEST_GROUP));
    flushing = undefined;
  };

  const put = (row: AuditRow): Promise<boolean> =>
    new Promise((resolve, reject) => {
      waiting.push({ row, resolve, reject });
      flushing ??= flush();
    });

  const putPatiently = async (row: AuditRow, until: number): Promise<boolean> => {
    for (;;) {
      try {
        return await put(row);
      } catch (error) {
        if (broker.clock() >= until) throw error;
        await new Promise((resolve) => setTimeout(resolve, RETRY_PAUSE_MS));
      }
    }
  };

  const complete = (row: AuditRow): void => {
    row.state = 'final';
    row.finished_at = broker.clock();
    signRow(row, broker.keys.signer('evidence', row.finished_at), sign, issuer);
  };

  return {
    intend: async (row) => {
      try {
        await put({ ...row });
      } catch (error) {
        throw new AuditUnavailable(false, error);
      }
    },
    finish: async <T>(row: AuditRow, value: T, sent: boolean) => {
      complete(row);
      let written: boolean;
      try {
        written = sent ? await putPatiently(row, broker.clock() + OUTCOME_PATIENCE_MS) : await put(row);
      } catch (error) {
        if (sent && late.length < MOST_LATE) late.push(row);
        throw new AuditUnavailable(sent, error);
      }
      // Another process took this one for dead and closed the row as unknown: what is signed stands.
      if (!written) throw new AuditUnavailable(sent, new Error('the row was closed by another process'));
      return value as Recorded<T>;
    },
    finishWith: async <T>(row: AuditRow, value: T, also: (db: Db) => Promise<void>) => {
      complete(row);
      try {
        await broker.store.db.transaction().execute(async (db) => {
          await putAuditRow(db, row);
          await also(db);
        });
      } catch (error) {
        throw new AuditUnavailable(false, error);
      }
      return value as Recorded<T>;
    },
    retryLate: async () => {
      for (const row of late.splice(0)) await put(row).catch(() => late.push(row));
      return late.length;
    },
    drained: async () => {
      while (flushing) await flushing;
    },
  };
}
