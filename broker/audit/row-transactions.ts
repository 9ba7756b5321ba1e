/** Transactions in which a row is stored together with other writes. */
import type { Broker } from '../broker.ts';
import { SharedRoom } from '../runtime/shared-limit.ts';
import type { AuditRow } from '../store/audit.ts';
import type { Db } from '../store/store.ts';
import { inTransaction } from '../store/transaction.ts';

type Place = Pick<AuditRow, 'kind' | 'organisation_id'>;

/** Runs `work` in one transaction, as `inTransaction` does. `row`: the row that it stores. */
export type RowTransaction = <Done>(row: Place, work: (tx: Db) => Promise<Done>) => Promise<Done>;

/**
 * Limits the transactions of calls, some of which wait for others of their agent, to less than half of the connections, with a reserve for other
 * organisations: a few agents whose calls are held could otherwise occupy all of them. Changes by owners, such as suspending an agent, are not limited.
 */
export function rowTransactions({ store, config }: Pick<Broker, 'store' | 'config'>): RowTransaction {
  const { databaseConnections: connections } = config;
  const all = Math.max(1, Math.floor(connections / 2) - 2);
  const room = new SharedRoom({ all, reserve: Math.max(1, Math.floor(connections / 6)), little: 1 });
  return async (row, work) => {
    if (row.kind !== 'action') return await inTransaction(store.db, work);
    const end = await room.take(row.organisation_id, 1);
    return await inTransaction(store.db, work).finally(end);
  };
}
