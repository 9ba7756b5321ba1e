/** Transactions in which a row is stored together with other writes. */
import type { Broker } from '../broker.ts';
import { SharedRoom } from '../runtime/shared-limit.ts';
import { takenWithin } from '../runtime/waits.ts';
import type { AuditRow } from '../store/audit.ts';
import { RowFault } from '../store/row-fault.ts';
import type { Db } from '../store/store.ts';
import { inTransaction } from '../store/transaction.ts';

/** As long as a transaction waits for a connection. */
const TIMEOUT_MS = 5_000;

type Place = Pick<AuditRow, 'organisation_id'>;

/**
 * Runs `work` in one transaction, as `inTransaction` does. `isAgents`: whether an agent causes it, and nothing was sent yet. Throws RowFault when too
 * many such transactions of its organisation are waiting.
 */
export type RowTransaction = <Done>(row: Place, isAgents: boolean, work: (tx: Db) => Promise<Done>) => Promise<Done>;

/**
 * Limits the transactions that agents cause, some of which wait for others of their agent, to less than half of the connections, with a reserve for other
 * organisations: a few agents whose calls are held could otherwise occupy all of them. Changes by owners, such as suspending an agent, and outcomes of
 * calls that were sent are not limited.
 */
export function rowTransactions({ store, config }: Pick<Broker, 'store' | 'config'>): RowTransaction {
  const { databaseConnections: connections } = config;
  const all = Math.max(1, Math.floor(connections / 2) - 2);
  const room = new SharedRoom({ all, reserve: Math.max(1, Math.floor(connections / 6)), little: 1 });
  return async (row, isAgents, work) => {
    if (!isAgents) return await inTransaction(store.db, work);
    const end = await takenWithin(room.take(row.organisation_id, 1), TIMEOUT_MS);
    // Says nothing about the store: other organisations go on.
    if (!end) throw new RowFault('too many transactions that agents of this organisation caused are waiting');
    return await inTransaction(store.db, work).finally(end);
  };
}
