/**
 * Recording: no effect without a record, no answer without a record. Every row of a governed call goes through here, and only this module
 * creates a `Recorded`, without which no answer is sent.
 */
import type { Broker } from '../broker.ts';
import { createCompactSigner } from '../crypto/jws.ts';
import { pause, retryUntil } from '../runtime/waits.ts';
import { type AuditRow, findAuditRow, makeStorable, putAuditRow, putNewAuditRow } from '../store/audit.ts';
import { isRowFault } from '../store/row-fault.ts';
import type { Db } from '../store/store.ts';
import { RolledBack, rollback } from '../store/transaction.ts';
import { addFlags } from './audit-flags.ts';
import { AuditUnavailable, MaybeRecorded } from './audit-unavailable.ts';
import type { Heartbeat } from './heartbeat.ts';
import { makeReadNotes, readsFolder } from './in-flight-journal.ts';
import { isRecorded } from './is-recorded.ts';
import { makeLateRows } from './late-rows.ts';
import { rowHash, signRow } from './receipt.ts';
import { DurableValue, type Entry, type Recorded, type Recorder, type State, type Together } from './recorder.ts';
import { closedRow } from './row.ts';
import { makeRowQueue } from './row-queue.ts';
import { rowTransactions } from './row-transactions.ts';
import { makeRowWriter } from './row-writer.ts';

/** Retry limit for storing an outcome: the call was made, so giving up early would lose a fact. */
const OUTCOME_TIMEOUT_MS = 5_000;
/** Retry limit before anything was sent: short, to fail fast. */
const DECISION_TIMEOUT_MS = 250;

/** Another process has taken over what the row is about (such as a replay); nothing was stored. */
const TAKEN_OVER = rollback('taken_over');

const takenOver = () => new Error('another process has taken over the call of this row');

export function makeRecorder(
  broker: Pick<Broker, 'config' | 'did' | 'instanceId' | 'clock' | 'log' | 'metrics' | 'store' | 'keys'>,
  heartbeat: Pick<Heartbeat, 'ensureRegistered'>,
  writer = makeRowWriter(broker),
): Recorder {
  const { log, metrics } = broker;
  const queue = makeRowQueue(broker.store, writer);
  const transaction = rowTransactions(broker);
  const reads = makeReadNotes(readsFolder(broker.config.dataFolder), broker.instanceId, log);
  const sign = createCompactSigner();
  /** Ids of calls between their intent and their outcome. */
  const inFlight = new Set<string>();
  /** Ids of calls whose intent may already be in the store. */
  const noted = new Set<string>();

  /** Completes a row except for its signature, which is added where it is written. */
  const complete = (row: AuditRow): void => {
    makeStorable(row);
    row.state = 'final';
    row.finished_at = broker.clock();
  };

  /** Signs and writes a row in a transaction with other writes: in the main thread, not in the recording thread. */
  const putSigned = async (tx: Db, row: AuditRow): Promise<boolean> => {
    if (row.state === 'final') signRow(row, broker.keys.signer('evidence', broker.clock()), sign, broker.did);
    return await putAuditRow(tx, row);
  };

  const write = async (
    { row, value, companion, claim }: State,
    isNew: boolean,
  ): Promise<boolean | RolledBack<unknown>> => {
    if (!companion && !claim) return await queue.put(row, isNew);
    return await transaction(row, row.state === 'intent', async (tx) => {
      const claims = claim && row.state === 'intent';
      // On a retry, an intent that is stored means that the claim is, too. Unlike a read, an insert waits for a commit that is still in progress.
      if (claims && (isNew || (await putNewAuditRow(tx, row)))) {
        const claimed = await claim(tx);
        if (claimed instanceof RolledBack) return claimed;
        addFlags(row, claimed.flags);
      }
      if (!(await putSigned(tx, row))) return false;
      return (await companion?.store(tx, row, value)) === 'taken_over' ? TAKEN_OVER : true;
    });
  };

  /** Whether the row is stored as given. A write with unknown result is retried, which is idempotent. */
  const stands = async (state: State, isNew: boolean): Promise<boolean | RolledBack<unknown>> => {
    const written = await write(state, isNew);
    if (written) return written;
    // A final row exists. It is this row if the response to an earlier attempt was lost: then the hashes are equal.
    const { row } = state;
    const stored = await findAuditRow(broker.store.db, row.organisation_id, row.id);
    return stored !== undefined && stored.row_hash === rowHash(row);
  };

  const late = makeLateRows(
    log,
    async (state: State) => {
      const stored = await stands(state, false);
      reads.takeBack(state.row);
      return stored === true;
    },
    isRowFault,
  );

  /** After a connection lost at commit: the intent of a call that is not sent may be stored, so the row is finalised later. */
  const closeUnsent = (intent: State, error: unknown): void => {
    late.failed(error);
    const detail = 'The store did not answer when the call was to be recorded, so nothing was sent.';
    const row = closedRow(intent.row, 'audit_unavailable', detail);
    complete(row);
    late.keep({ ...intent, row });
  };

  /** Adds a read's intent to the journal, and returns whether it did. The journal suffices for a read that is not streamed. */
  const journal = async ({ row, companion, claim }: State): Promise<boolean> =>
    !companion && !claim && !late.isFailing() && (await reads.note(row));

  /** Stores the intent. Returns the rollback that its claim requested; undefined when stored. Throws AuditUnavailable. */
  const storeIntent = async (intent: State): Promise<RolledBack<unknown> | undefined> => {
    let stored: Awaited<ReturnType<typeof stands>>;
    try {
      await late.refuseWhileFailing();
      noted.add(intent.row.id);
      const put = (isFirst: boolean) => heartbeat.ensureRegistered().then(() => stands(intent, isFirst));
      stored = await retryUntil(put, DECISION_TIMEOUT_MS, isRowFault);
      if (!stored) throw new Error('the row is final already');
      late.worked();
    } catch (error) {
      if (!isRowFault(error)) closeUnsent(intent, error);
      throw new AuditUnavailable(false, error);
    }
    if (stored === TAKEN_OVER) throw new AuditUnavailable(false, takenOver());
    return stored instanceof RolledBack ? stored : undefined;
  };

  const recordFinal = async <T>({ row, value, sent = false, companion, after }: Entry<T>): Promise<Recorded<T>> => {
    let stored: Awaited<ReturnType<typeof stands>>;
    const state = { row, value, companion };
    try {
      complete(row);
      const patience = sent ? OUTCOME_TIMEOUT_MS : DECISION_TIMEOUT_MS;
      const isNew = !noted.has(row.id);
      stored = await retryUntil((isFirst) => stands(state, isNew && isFirst), patience, isRowFault);
    } catch (error) {
      // If an intent is stored, or the call may have been made, the row has to be finalised later.
      if (!isRowFault(error)) late.failed(error);
      if ((sent || inFlight.has(row.id)) && row.state === 'final' && !isRowFault(error)) late.keep(state);
      throw new AuditUnavailable(sent, error);
    }
    reads.takeBack(row);
    late.worked();
    if (stored === TAKEN_OVER) throw new AuditUnavailable(sent, takenOver());
    if (!stored) {
      await companion?.tooLate?.(value);
      throw new AuditUnavailable(sent, new Error('the row was closed by another process'));
    }
    metrics.recorded(row);
    return new DurableValue(after === undefined ? value : await after(value));
  };

  const recordTogether = async <T, Reason>(
    { row, value, isAgents = row.kind === 'action' }: Entry<T, Reason>,
    together: Together<Reason>,
  ): Promise<Recorded<T> | RolledBack<Reason>> => {
    let written = false;
    try {
      const done = await transaction(row, isAgents, async (tx) => {
        const answered = await together(tx, row);
        if (answered instanceof RolledBack) return answered;
        if (answered) addFlags(row, answered.flags);
        complete(row);
        if (!(await putSigned(tx, row))) throw new Error('the row is final already');
        written = true;
        return undefined;
      });
      if (done) return done;
    } catch (error) {
      if (!written || isRowFault(error)) throw new AuditUnavailable(false, error);
      // Either the commit failed, or only its response was lost and everything is stored.
      const there = await retryUntil(() => isRecorded(broker.store.db, row), DECISION_TIMEOUT_MS, isRowFault).catch(
        () => undefined,
      );
      if (there === undefined) throw new MaybeRecorded(error);
      if (!there) throw new AuditUnavailable(false, error);
    }
    metrics.recorded(row);
    return new DurableValue(value);
  };

  return {
    record: <T, Reason>(entry: Entry<T, Reason>) =>
      (entry.together ? recordTogether(entry, entry.together) : recordFinal(entry as Entry<T>)) as Promise<Recorded<T>>,
    intend: async (row, call, { companion, claim, isStreamed = false, isRead = row.method === 'GET' } = {}) => {
      const intent = { row, value: undefined, companion, claim };
      inFlight.add(row.id);
      try {
        makeStorable(row);
        let isDurable = isStreamed || !isRead || !(await journal(intent));
        const undone = isDurable ? await storeIntent(intent) : undefined;
        // The rollback comes from the claim, whose type `Undone` the compiler cannot follow here.
        if (undone) return undone as never;
        return await call(async () => {
          if (!isDurable) await storeIntent(intent);
          isDurable = true;
        });
      } catch (error) {
        if (error instanceof AuditUnavailable) throw error;
        log.error({ err: error, auditId: row.id }, 'unexpected error during a call; its outcome is unknown');
        const detail = 'The broker failed while the call was in flight: it may have been made. It was not repeated.';
        await recordFinal({ ...intent, row: closedRow(row, 'outcome_unknown', detail), sent: true });
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
    isFailing: late.isFailing,
    backlog: () => ({ waiting: queue.waiting(), late: late.kept() }),
    retryLate: () => late.retry().finally(reads.tidy),
    settled: async (timeoutMs) => {
      const until = performance.now() + timeoutMs;
      while (inFlight.size > 0 && performance.now() < until) await pause(10);
      await queue.empty();
    },
    close: async () => {
      await writer.close();
      reads.close();
    },
  };
}
