/** Notifies waiters of changes to held calls and access requests: directly in this process, by NOTIFY in other replicas. */
import type { Broker } from '../broker.ts';
import { findSettledRequests } from '../store/access-requests.ts';
import { findSettled } from '../store/approvals.ts';
import type { Db, Store } from '../store/store.ts';

/**
 * Names a held call or access request by its random id. Ids with a colon are other topics: their changes wake only watchers of that
 * topic, and are not passed to subscribers of approvals.
 */
export type ApprovalRef = { organisation_id: string; id: string };

const isNamed = (id: string): boolean => id.includes(':');

/** The topic for changes by owners of the organisation that may affect the permissions of its agents. */
export const ownersChangeIn = (organisationId: string): ApprovalRef => ({
  organisation_id: organisationId,
  id: `owners-change:${organisationId}`,
});

export type ApprovalWatch = {
  /** Resolves on a change since the previous call, after `ms`, when aborted, or when the process stops. */
  news(ms: number): Promise<void>;
  /** Whether the watch has ended (aborted, or the process is stopping), so that the caller should stop waiting. */
  over(): boolean;
  end(): void;
};

export type ApprovalChanges = {
  /** Notifies the other processes when the transaction commits. Call it in the transaction that changes the approval. */
  announce(db: Db, ref: ApprovalRef): Promise<void>;
  /** Notifies waiters in this process. Call it after that transaction has committed. */
  tell(ref: ApprovalRef): void;
  /** Watches one approval. Start the watch before reading the approval, so that no change is missed. */
  watch(id: string): ApprovalWatch;
  /**
   * Subscribes to changes of all approvals, best effort: changes are missed while the connection for notifications is down. `also`
   * is called periodically meanwhile, as a hint to poll, and when the process stops.
   */
  subscribe(listener: (ref: ApprovalRef) => void, also?: Subscriber): () => void;
  /** Number of watchers in this process. */
  waiting(id: string): number;
  /** Number of all watchers and subscribers in this process. */
  watchers(): number;
  /** Ends all watches. */
  release(): void;
  close(): Promise<void>;
};

export type Subscriber = { missed(): void; over(): void };

/** Poll interval, only while notifications do not arrive and there are watchers. */
const POLL_MS = 1_000;
const POLL_BATCH = 500;

type Waiter = { wake(): void };

/** Runs `change` in a transaction and announces the refs that it returns: to other processes on commit, to this one after it. */
export async function changeAndNotify(
  { db }: Pick<Store, 'db'>,
  changes: ApprovalChanges,
  change: (tx: Db) => Promise<readonly ApprovalRef[]>,
): Promise<void> {
  const changed = await db.transaction().execute(async (tx) => {
    const refs = await change(tx);
    for (const ref of refs) await changes.announce(tx, ref);
    return refs;
  });
  for (const ref of changed) changes.tell(ref);
}

/** Creates the notifier. It does nothing while there are no watchers. */
export function makeApprovalChanges({
  store,
  instanceId,
  clock,
  log,
}: Pick<Broker, 'instanceId' | 'clock' | 'log' | 'store'>): ApprovalChanges {
  const waiters = new Map<string, Set<Waiter>>();
  const listeners = new Set<(ref: ApprovalRef) => void>();
  const subscribers = new Set<Subscriber>();
  const { notices } = store;
  let listening: { close(): Promise<void> } | undefined;
  /** Whether notifications arrive. Always true on SQLite, where there is no other process. */
  let reachable = notices === undefined;
  let released = false;
  let timer: NodeJS.Timeout | undefined;
  let polling: Promise<void> | undefined;

  const wake = (id: string) => {
    for (const waiter of waiters.get(id) ?? []) waiter.wake();
  };

  const tell = (ref: ApprovalRef) => {
    wake(ref.id);
    if (isNamed(ref.id)) return;
    for (const listener of listeners) listener(ref);
  };

  const anyone = () => waiters.size > 0 || subscribers.size > 0;

  /** Polls once for all watchers together, in a few statements. */
  const poll = async (): Promise<void> => {
    for (const subscriber of subscribers) subscriber.missed();
    const ids = [...waiters.keys()].filter((id) => !isNamed(id));
    for (let at = 0; at < ids.length; at += POLL_BATCH) {
      const some = ids.slice(at, at + POLL_BATCH);
      for (const id of await findSettled(store.db, some, clock())) wake(id);
      for (const id of await findSettledRequests(store.db, some, clock())) wake(id);
    }
  };

  const pollSoon = (ms: number) => {
    timer ??= setTimeout(() => {
      timer = undefined;
      if (released || !anyone()) return;
      polling = poll()
        .catch((error) => log.warn({ err: error }, 'polling for decisions failed; retrying'))
        .finally(() => {
          if (!reachable && anyone()) pollSoon(POLL_MS);
        });
    }, ms);
  };

  const listen = () => {
    if (!notices || listening || released) return;
    listening = notices.listen({
      heard: (payload) => {
        const [from, organisation_id, id] = payload.split(' ');
        if (from !== instanceId && organisation_id && id) tell({ organisation_id, id });
      },
      reachable: (now) => {
        reachable = now;
        if (!now) log.warn('notifications of other processes are not received; polling the store while agents wait');
        // Poll once more after reconnecting: notifications sent in between are lost.
        clearTimeout(timer);
        timer = undefined;
        if (anyone()) pollSoon(0);
      },
    });
  };

  return {
    announce: async (db, ref) => {
      await notices?.send(db, `${instanceId} ${ref.organisation_id} ${ref.id}`);
    },
    tell,
    watch: (id) => {
      listen();
      const mine: Waiter & { fresh: boolean; resume?: () => void } = {
        fresh: false,
        wake: () => {
          mine.fresh = true;
          mine.resume?.();
        },
      };
      const here = waiters.get(id) ?? new Set();
      waiters.set(id, here.add(mine));
      if (!reachable) pollSoon(POLL_MS);
      let ended = false;
      return {
        news: async (ms) => {
          if (!mine.fresh && !released && !ended) {
            let timeout: NodeJS.Timeout | undefined;
            await new Promise<void>((resolve) => {
              mine.resume = resolve;
              timeout = setTimeout(resolve, ms);
            });
            clearTimeout(timeout);
          }
          mine.fresh = false;
        },
        over: () => released || ended,
        end: () => {
          ended = true;
          mine.resume?.();
          here.delete(mine);
          if (here.size === 0 && waiters.get(id) === here) waiters.delete(id);
        },
      };
    },
    subscribe: (listener, also) => {
      listen();
      listeners.add(listener);
      if (also) {
        subscribers.add(also);
        if (!reachable) pollSoon(POLL_MS);
        if (released) also.over();
      }
      return () => {
        listeners.delete(listener);
        if (also) subscribers.delete(also);
      };
    },
    waiting: (id) => waiters.get(id)?.size ?? 0,
    watchers: () => [...waiters.values()].reduce((sum, here) => sum + here.size, listeners.size),
    release: () => {
      released = true;
      for (const id of [...waiters.keys()]) wake(id);
      for (const subscriber of [...subscribers]) subscriber.over();
    },
    close: async () => {
      clearTimeout(timer);
      await listening?.close();
      await polling;
    },
  };
}
