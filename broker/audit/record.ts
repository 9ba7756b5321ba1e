/**
 * Recording: no effect without a record, no answer without a record. Every row of a governed call goes through here, and
 * only here is a `Recorded` made, without which nothing can be answered.
 */
import type { Broker } from '../broker.ts';
import { createCompactSigner } from '../crypto/jws.ts';
import { pause, retryUntil } from '../runtime/waits.ts';
import { type AuditRow, findAuditRow, putAuditRow } from '../store/audit.ts';
import { isRowFault } from '../store/row-fault.ts';
import type { Db } from '../store/store.ts';
import { AuditUnavailable, MaybeRecorded } from './audit-unavailable.ts';
import { isRecorded } from './is-recorded.ts';
import { makeLateRows } from './late-rows.ts';
import { makeReadNotes, readsFolder } from './read-notes.ts';
import { rowHash, signRow } from './receipt.ts';
import { makeRowQueue } from './row-queue.ts';
import { makeRowWriter } from './row-writer.ts';
import { makeStorable } from './storable-row.ts';
import { ClosedElsewhere, isHopeless } from './superseded.ts';

/** Nominal by its private field, so that no literal or spread is one. Not exported: only a Recorder makes them. */
class DurableValue<T> {
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
 * Writes something else in the same transaction as each state of one row, its intent included. `value`: what `finish` was
 * given, undefined for an intent. What it throws undoes both; it may be asked for the same state twice.
 */
export type Companion = (db: Db, row: AuditRow, value: unknown) => Promise<void>;

export type Recorder = {
  /** From now on every write of this row goes together with what the companion writes. */
  accompany(row: AuditRow, companion: Companion): void;
  /**
   * Notes that a call is about to be made, then makes it: `call` sends and finishes the row. A change is noted durably; a
   * read so that its note outlives the process. Whatever `call` throws, the row is closed.
   */
  intend<T>(row: AuditRow, call: () => Promise<Recorded<T>>): Promise<Recorded<T>>;
  /** Notes what is read of an upstream before the call itself, and reads it. `row`: says what is read, under the call's id. */
  readFirst<T>(row: AuditRow, read: () => Promise<T>): Promise<T>;
  /**
   * Signs and stores a final row, then hands out `value`. `sent`: whether the upstream may have been called. `addTo`: what
   * becomes of the value once the row is stored.
   */
  finish<T>(row: AuditRow, value: T, sent: boolean, addTo?: (value: T) => Promise<T>): Promise<Recorded<T>>;
  /**
   * The same in one transaction with what `also` writes, which may still fill in the row. AuditUnavailable: neither is
   * stored; MaybeRecorded: nobody can tell.
   */
  finishWith<T>(row: AuditRow, value: T, also: (db: Db) => Promise<void>): Promise<Recorded<T>>;
  /** Whether audit rows cannot be stored: then nothing is sent. */
  isFailing(): boolean;
  /** Tries again to store outcomes that could not be stored when they came. Answers how many still wait. */
  retryLate(): Promise<number>;
  /** Resolves when no call is in flight and nothing waits to be written, or after `patienceMs`. */
  settled(patienceMs: number): Promise<void>;
  /** Lets go of the notes of reads. When some are of reads that are not on record yet, they stay for the next start. */
  close(): Promise<void>;
};

/** What whoever puts something on record takes of the process. */
export type Recording = { broker: Broker; recorder: Recorder };

/** How long an outcome is tried to be stored: the call was made, so giving up at once would lose a fact. */
const OUTCOME_PATIENCE_MS = 5_000;
/** Nothing happened yet: short enough to be told soon. */
const DECISION_PATIENCE_MS = 250;

export function makeRecorder(broker: Broker, writer = makeRowWriter(broker)): Recorder {
  const { log } = broker;
  const queue = makeRowQueue(broker.store, writer);
  const reads = makeReadNotes(readsFolder(broker.config.dataFolder), broker.instanceId, log);
  const sign = createCompactSigner();
  /** Calls between their intent and their outcome. */
  const inFlight = new Set<string>();
  /** Those among them whose intent may be in the store. */
  const noted = new Set<string>();
  const companions = new WeakMap<AuditRow, Companion>();

  /** Final but for its signature, which a row gets where it is written. */
  const complete = (row: AuditRow): void => {
    makeStorable(row);
    row.state = 'final';
    row.finished_at = broker.clock();
  };

  /** For a row that is written with something else: that happens here, and not in the thread that writes the others. */
  const putSigned = async (db: Db, row: AuditRow): Promise<boolean> => {
    if (row.state === 'final') signRow(row, broker.keys.signer('evidence', broker.clock()), sign, broker.did);
    return await putAuditRow(db, row);
  };

  const write = async (row: AuditRow, value: unknown, isNew: boolean): Promise<boolean> => {
    const companion = companions.get(row);
    if (!companion) return await queue.put(row, isNew);
    return await broker.store.db.transaction().execute(async (db) => {
      if (!(await putSigned(db, row))) return false;
      await companion(db, row, value);
      return true;
    });
  };

  /** Whether the row is stored as it is. A write whose fate is unknown is repeated: that changes nothing. */
  const stands = async (row: AuditRow, value: unknown, isNew: boolean): Promise<boolean> => {
    if (await write(row, value, isNew)) return true;
    // A final row is there. It is ours when the answer to an earlier try was lost: then it says the same.
    const stored = await findAuditRow(broker.store.db, row.organisation_id, row.id);
    return stored !== undefined && stored.row_hash === rowHash(row);
  };

  const late = makeLateRows(
    log,
    async (row, value) => {
      const stored = await stands(row, value, false);
      reads.takeBack(row);
      return stored;
    },
    isHopeless,
  );

  /** A connection lost at commit: the intent may be stored, of a call that is not made. So its row will say that. */
  const closeUnsent = (row: AuditRow, error: unknown): void => {
    late.failed(error);
    row.result = 'errored';
    row.reason = 'audit_unavailable';
    row.detail = 'The store did not answer when the call was to be recorded, so nothing was sent.';
    complete(row);
    late.keep(row);
  };

  const noteIntent = async (row: AuditRow): Promise<void> => {
    makeStorable(row);
    const companion = companions.get(row);
    if (row.method === 'GET' && !companion && !late.isFailing() && reads.note(row)) return;
    const intent = { ...row };
    if (companion) companions.set(intent, companion);
    try {
      await late.refuseWhileFailing();
      noted.add(row.id);
      if (!(await retryUntil((isFirst) => stands(intent, undefined, isFirst), DECISION_PATIENCE_MS, isHopeless)))
        throw new Error('the row is final already');
      late.worked();
    } catch (error) {
      if (!isHopeless(error)) closeUnsent(intent, error);
      throw error;
    }
  };

  const finish: Recorder['finish'] = async (row, value, sent, addTo) => {
    let stored: boolean;
    try {
      complete(row);
      const patience = sent ? OUTCOME_PATIENCE_MS : DECISION_PATIENCE_MS;
      const isNew = !noted.has(row.id);
      stored = await retryUntil((isFirst) => stands(row, value, isNew && isFirst), patience, isHopeless);
    } catch (error) {
      // With an intent in the store, or a call that may have been made, the row has to come to its end later.
      if (!isHopeless(error)) late.failed(error);
      if ((sent || inFlight.has(row.id)) && row.state === 'final' && !isHopeless(error)) late.keep(row, value);
      throw new AuditUnavailable(sent, error);
    }
    reads.takeBack(row);
    late.worked();
    // What is signed stands.
    if (!stored) throw new AuditUnavailable(sent, new ClosedElsewhere(value));
    return new DurableValue(addTo === undefined ? value : await addTo(value));
  };

  return {
    accompany: (row, companion) => {
      companions.set(row, companion);
    },
    intend: async (row, call) => {
      inFlight.add(row.id);
      try {
        await noteIntent(row).catch((error) => {
          throw new AuditUnavailable(false, error);
        });
        return await call();
      } catch (error) {
        if (error instanceof AuditUnavailable) throw error;
        log.error({ err: error, auditId: row.id }, 'a call broke off in the broker; its outcome is unknown');
        row.result = 'errored';
        row.reason = 'outcome_unknown';
        row.detail = 'The broker failed while the call was in flight: it may have been made. It was not repeated.';
        await finish(row, undefined, true);
        throw new AuditUnavailable(true, error);
      } finally {
        inFlight.delete(row.id);
        noted.delete(row.id);
      }
    },
    readFirst: async (row, read) => {
      inFlight.add(row.id);
      try {
        await reads.note(row);
        return await read();
      } finally {
        reads.takeBack(row);
        inFlight.delete(row.id);
      }
    },
    finish,
    finishWith: async <T>(row: AuditRow, value: T, also: (db: Db) => Promise<void>) => {
      let written = false;
      try {
        await broker.store.db.transaction().execute(async (db) => {
          await also(db);
          complete(row);
          if (!(await putSigned(db, row))) throw new Error('the row is final already');
          written = true;
        });
      } catch (error) {
        if (!written || isRowFault(error)) throw new AuditUnavailable(false, error);
        // What failed is the commit, or only its answer was lost: then it is as it was to be.
        const there = await retryUntil(() => isRecorded(broker.store.db, row), DECISION_PATIENCE_MS, isHopeless).catch(
          () => undefined,
        );
        if (there === undefined) throw new MaybeRecorded(error);
        if (!there) throw new AuditUnavailable(false, error);
      }
      return new DurableValue(value);
    },
    isFailing: late.isFailing,
    retryLate: () => late.retry().finally(reads.tidy),
    settled: async (patienceMs) => {
      const until = performance.now() + patienceMs;
      while (inFlight.size > 0 && performance.now() < until) await pause(10);
      await queue.empty();
    },
    close: async () => {
      await writer.close();
      reads.close();
    },
  };
}
