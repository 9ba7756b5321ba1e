/**
 * Assigns final audit rows their indexes in the receipt logs, and signs checkpoints: one process on a store at a time, by lease. Indexes
 * follow the order in which rows are read, not their times or ids: replicas commit in any order.
 */
import type { Broker } from '../broker.ts';
import { type KeptLease, keepLease } from '../lease.ts';
import { renewLease } from '../store/leases.ts';
import { hasPending, type PendingRows, takePending } from '../store/log-pending.ts';
import { findReceiptLog, hasUnsigned, listDue, moveHead, putCheckpoint } from '../store/receipt-logs.ts';
import { isRowFault } from '../store/row-fault.ts';
import type { Db } from '../store/store.ts';
import type { ReceiptLogTable } from '../store/tables/receipt-log.ts';
import type { LogHeads } from './heads.ts';
import { type LogSigner, logSigner, newOrigin } from './log-keys.ts';
import { rootOfEdge } from './merkle.ts';
import { logKey, signHead, vkeyOf } from './note.ts';
import { appendRows, DamagedLog, type LogEdge, readEdge } from './tree.ts';
import type { Witnesses } from './witnesses.ts';

const LEASE = 'receipt log';
const INTERVAL_MS = 1_000;
/** Limit per transaction: rows on SQLite, where calls wait for it; on PostgreSQL entries, each of the rows that one statement wrote. */
export const BATCH_ENTRIES = { sqlite: 2_048, postgres: 256 };
/** Minimum time between two checkpoints of a log. */
const CHECKPOINT_MS = 5_000;
const BATCH_CHECKPOINTS = 100;
/** Interval of reading checkpoints of other processes. */
const REFRESH_MS = 3_000;
/** Cached edges, of 48 KiB each at most. */
const CACHED_EDGES = 200;
/** A log that cannot be continued is retried after this time, while others go on. With more than MAX_LEFT_OUT of them, the store is at fault. */
const RETRY_MS = 60_000;
const MAX_LEFT_OUT = 50;

export type Sequencer = {
  stop(): Promise<void>;
};

/** `heads`: cache that is refreshed after each round. `announce`: records that a log is signed by another key from now on. */
export function startSequencer(
  broker: Pick<Broker, 'baseUrl' | 'instanceId' | 'clock' | 'log' | 'store' | 'storeOutage' | 'vault'>,
  heads: LogHeads,
  witnesses: Witnesses,
  announce: (organisationId: string, vkey: string) => Promise<void>,
): Sequencer {
  const { store, clock, log, storeOutage, baseUrl } = broker;
  const { db } = store;
  const edges = new Map<string, LogEdge>();
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  let turn: Promise<void> = Promise.resolve();

  /** Whether there may be logs with rows that no checkpoint covers. */
  let isOwed = true;
  let refreshedAt = Number.NEGATIVE_INFINITY;

  const lease: KeptLease = keepLease(broker, LEASE, () => {
    edges.clear();
    isOwed = true;
  });

  /** Logs that cannot be continued, with the time of the next attempt. */
  const leftOut = new Map<string, number>();
  const others = (): string[] => {
    for (const [organisationId, until] of leftOut) if (performance.now() >= until) leftOut.delete(organisationId);
    return [...leftOut.keys()];
  };
  /** Whether the fault is in this log alone; the log is then left out until it is retried, while the others go on. */
  const leaveOut = (organisationId: string, error: unknown): boolean => {
    const isItsOwn = error instanceof DamagedLog || isRowFault(error);
    if (!isItsOwn || leftOut.size >= MAX_LEFT_OUT) return false;
    leftOut.set(organisationId, performance.now() + RETRY_MS);
    log.error(
      { err: error, organisation: organisationId },
      'the receipt log of an organisation cannot be continued; retrying in a minute; other organisations are not affected',
    );
    return true;
  };

  const edgeOf = async (tx: Db, organisationId: string, size: number, head: string): Promise<LogEdge> => {
    const known = edges.get(organisationId);
    // Removed from the cache until the commit: the append may be rolled back.
    edges.delete(organisationId);
    return known?.size === size ? known : await readEdge(tx, organisationId, size, head);
  };

  const append = async (tx: Db, organisationId: string, rows: readonly PendingRows[]): Promise<LogEdge> => {
    const log = await findReceiptLog(tx, organisationId);
    const { size: from, origin, root: head } = log ?? { size: 0, origin: newOrigin(baseUrl, organisationId), root: '' };
    const edge = await edgeOf(tx, organisationId, from, head);
    await appendRows(tx, organisationId, edge, rows, clock());
    const root = Buffer.from(rootOfEdge(edge)).toString('base64');
    if (!(await moveHead(tx, { organisation_id: organisationId, origin, size: edge.size, root, from })))
      throw new Error(`The receipt log of organisation ${organisationId} was appended to by another process.`);
    return edge;
  };

  /** Appends pending rows. Returns whether there may be more. */
  const sequence = async (fence: number): Promise<boolean> => {
    const without = others();
    if (!(await hasPending(db, without))) return false;
    let appendingTo: string | undefined;
    const appending = db.transaction().execute(async (tx) => {
      // Locks the lease until the commit, so that the next holder reads what was committed here.
      if (!(await renewLease(tx, { name: LEASE, fence }))) return undefined;
      const { pending, isFull } = await takePending(tx, store, BATCH_ENTRIES[store.dialect], without);
      const appended = new Map<string, LogEdge>();
      for (const [organisationId, rows] of Map.groupBy(pending, (row) => row.organisation_id)) {
        appendingTo = organisationId;
        appended.set(organisationId, await append(tx, organisationId, rows.toSorted(byId)));
      }
      appendingTo = undefined;
      return { appended, isFull };
    });
    const done = await appending.catch((error: unknown) => {
      if (appendingTo === undefined || !leaveOut(appendingTo, error)) throw error;
      return 'again' as const;
    });
    if (done === 'again') return true;
    if (!done) {
      lease.lose();
      edges.clear();
      return false;
    }
    isOwed = true;
    for (const [organisationId, edge] of done.appended) edges.set(organisationId, edge);
    for (const organisationId of edges.keys()) {
      if (edges.size <= CACHED_EDGES) break;
      edges.delete(organisationId);
    }
    return done.isFull;
  };

  /** Signs checkpoints. Returns whether more logs may be due. */
  const sign = async (fence: number): Promise<boolean> => {
    if (!isOwed) return false;
    const now = clock();
    const due = await listDue(db, {
      from: now - CHECKPOINT_MS,
      until: now + CHECKPOINT_MS,
      without: others(),
      limit: BATCH_CHECKPOINTS,
    });
    if (due.length === 0) {
      isOwed = await hasUnsigned(db);
      return false;
    }
    refreshedAt = Number.NEGATIVE_INFINITY;
    const signer = await logSigner(broker);
    for (const head of due) {
      const isSigned = await signOne(head, signer, fence).catch((error: unknown) => {
        if (!leaveOut(head.organisation_id, error)) throw error;
        return true;
      });
      if (isSigned) continue;
      lease.lose();
      return false;
    }
    return due.length === BATCH_CHECKPOINTS;
  };

  /** Signs one checkpoint. False: another process holds the lease. */
  const signOne = async (head: ReceiptLogTable, signer: LogSigner, fence: number): Promise<boolean> => {
    const { organisation_id, origin, size, root, signed_with } = head;
    const key = logKey(origin, signer.publicKey);
    // Before signing: after a crash in between, the key is announced twice, but never not at all.
    if (signed_with !== null && signed_with !== signer.id) await announce(organisation_id, vkeyOf(key));
    const treeHead = { origin, size, root: Buffer.from(root, 'base64') };
    const signature = signHead(treeHead, key, signer.privateKey);
    const isSigned = await db.transaction().execute(async (tx) => {
      if (!(await renewLease(tx, { name: LEASE, fence }))) return false;
      await putCheckpoint(tx, { organisation_id, size, root, at: clock(), signature }, signer.id);
      return true;
    });
    if (isSigned) witnesses.ask({ ...treeHead, organisationId: organisation_id, signature });
    return isSigned;
  };

  /** Alternates between appending and signing, so that neither starves the other. Returns whether there may be more. */
  const work = async (): Promise<boolean> => {
    const fence = lease.fence();
    if (fence === undefined || stopped) return false;
    const hasRows = await sequence(fence);
    const hasLogs = await sign(fence);
    return hasRows || hasLogs;
  };

  const refresh = async (): Promise<void> => {
    if (performance.now() - refreshedAt < REFRESH_MS) return;
    refreshedAt = performance.now();
    await heads.refresh();
  };

  const round = async (): Promise<void> => {
    for (let more = true; more; ) {
      more = await work();
      await refresh();
    }
  };

  const tick = () => {
    turn = round()
      .catch((error) => {
        edges.clear();
        isOwed = true;
        if (!storeOutage.isLasting()) log.error({ err: error }, 'the receipt log could not be continued; retrying');
      })
      .then(() => {
        if (!stopped) timer = setTimeout(tick, INTERVAL_MS);
      });
  };
  tick();

  return {
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await turn;
      clearTimeout(timer);
      await witnesses.stop();
      await lease.stop();
    },
  };
}

/** Ids contain the time, so rows that were read together are ordered approximately by creation. */
const byId = (a: PendingRows, b: PendingRows): number => (a.ids < b.ids ? -1 : 1);
