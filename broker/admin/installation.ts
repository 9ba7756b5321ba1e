/** What runs here, for those who look after it in the console. */
import type { Broker } from '../broker.ts';
import { listLiveInstances } from '../store/instances.ts';

export type Installation = {
  store: 'sqlite' | 'postgres';
  /** Every process that serves from this store now. `isThis`: the one that answers. Times in milliseconds. */
  processes: { id: string; startedAt: number; seenAt: number; release: string | null; isThis: boolean }[];
};

export async function readInstallation({
  store,
  clock,
  instanceId,
}: Pick<Broker, 'instanceId' | 'clock' | 'store'>): Promise<Installation> {
  const live = await listLiveInstances(store.db, clock());
  return { store: store.dialect, processes: live.map((one) => ({ ...one, isThis: one.id === instanceId })) };
}
