/** News of held calls and access requests, for whoever waits for them: at once in this process, by a notice in the others. */
import type { Broker } from '../broker.ts';
import { findSettledRequests } from '../store/access-requests.ts';
import { findSettled } from '../store/approvals.ts';
import type { Db } from '../store/store.ts';

/**
 * Which held call, or access request: both have random ids. Something else that is waited for has a name with a colon in it:
 * whoever watches it hears of it, and subscribers, who follow the approvals, do not.
 */
export type ApprovalRef = { organisation_id: string; id: string };

const isNamed = (id: string): boolean => id.includes(':');

/** An owner of the organisation changed something, which may decide what its agents may do. */
export const ownersChangeIn = (organisationId: string): ApprovalRef => ({
  organisation_id: organisationId,
  id: `owners-change:${organisationId}`,
});

export type ApprovalWatch = {
  /** Resolves when there is news since the last time, after `ms`, when given up, or when the process stops. */
  news(ms: number): Promise<void>;
  /** True: nothing more is to be waited for. */
  over(): boolean;
  end(): void;
};

export type ApprovalChanges = {
  /** In the transaction that changes an approval: tells the other processes when it commits. */
  announce(db: Db, ref: ApprovalRef): Promise<void>;
  /** After that transaction: tells this process. */
  tell(ref: ApprovalRef): void;
  /** Watches one approval. Begin before you read it, and no news can come in between. */
  watch(id: string): ApprovalWatch;
  /**
   * Hears of every change of every approval, as well as can be: what happens while the way to others is down is missed.
   * Whoever gives `also` is told now and then, while that lasts, to look for themselves; and that the process stops.
   */
  subscribe(listener: (ref: ApprovalRef) => void, also?: Subscriber): () => void;
  /** How many wait for news of it here. */
  waiting(id: string): number;
  /** Lets everyone go who waits. */
  release(): void;
  close(): Promise<void>;
};

export type Subscriber = { missed(): void; over(): void };

/** How often the store is asked, and only while notices do not arrive and somebody waits. */
const POLL_MS = 1_000;
const POLLED_AT_ONCE = 500;

type Waiter = { wake(): void };

/** Nothing is opened or asked before somebody waits. */
export function makeApprovalChanges({ store, instanceId, clock, log }: Broker): ApprovalChanges {
  const waiters = new Map<string, Set<Waiter>>();
  const listeners = new Set<(ref: ApprovalRef) => void>();
  const subscribers = new Set<Subscriber>();
  const { notices } = store;
  let listening: { close(): Promise<void> } | undefined;
  /** Embedded, there is nobody else whom we could miss. */
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

  /** Looks once for those who wait, in a few statements for all. */
  const poll = async (): Promise<void> => {
    for (const subscriber of subscribers) subscriber.missed();
    const ids = [...waiters.keys()].filter((id) => !isNamed(id));
    for (let at = 0; at < ids.length; at += POLLED_AT_ONCE) {
      const some = ids.slice(at, at + POLLED_AT_ONCE);
      for (const id of await findSettled(store.db, some, clock())) wake(id);
      for (const id of await findSettledRequests(store.db, some, clock())) wake(id);
    }
  };

  const pollSoon = (ms: number) => {
    timer ??= setTimeout(() => {
      timer = undefined;
      if (released || !anyone()) return;
      polling = poll()
        .catch((error) => log.warn({ err: error }, 'could not look for decisions; trying again'))
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
        if (!now) log.warn('notices of other processes do not arrive: asking the store while agents wait');
        // Once more when it is up again: what was sent in between is lost.
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
