/** The background job that creates audit partitions a month ahead and drops empty old ones (PostgreSQL). */
import type { Broker } from '../broker.ts';
import type { Instant } from '../policy/facts.ts';
import { dropEmptyAuditPartitions, makeAuditPartitions } from '../store/audit-partitions.ts';

export async function keepAuditPartitions(
  { store, instanceId, log }: Pick<Broker, 'store' | 'instanceId' | 'log'>,
  now: Instant,
): Promise<void> {
  await makeAuditPartitions(store, now);
  const partitions = await dropEmptyAuditPartitions(store, { now, holder: instanceId });
  if (partitions.length > 0) log.info({ partitions }, 'dropped empty partitions of the audit table');
}
