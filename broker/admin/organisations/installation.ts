/** Reads the state of the installation, for its administrators in the console. */
import type { Broker } from '../../broker.ts';
import type { Instant } from '../../policy/facts.ts';
import { listLiveInstances } from '../../store/instances.ts';
import { findLastBackup } from '../../store/last-backup.ts';

export type Installation = {
  store: 'sqlite' | 'postgres';
  /** The last run of `agent-broker backup`; undefined: none on record. */
  lastBackup: Instant | undefined;
  /** All processes that currently serve from this store. `isThis`: the one that answers. Times in milliseconds. */
  processes: { id: string; startedAt: number; seenAt: number; release: string | null; isThis: boolean }[];
};

export async function readInstallation({
  store,
  clock,
  instanceId,
}: Pick<Broker, 'instanceId' | 'clock' | 'store'>): Promise<Installation> {
  const [live, lastBackup] = await Promise.all([listLiveInstances(store.db, clock()), findLastBackup(store.db)]);
  return {
    store: store.dialect,
    lastBackup,
    processes: live.map((one) => ({ ...one, isThis: one.id === instanceId })),
  };
}
