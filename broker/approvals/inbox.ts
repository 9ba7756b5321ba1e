/** Publishes the counts of pending items of an organisation to its subscribers. */
import { setTimeout as pause } from 'node:timers/promises';
import type { ApprovalChanges } from '../audit/changes.ts';
import type { Broker } from '../broker.ts';
import { countWaiting, type Waiting } from '../store/inbox.ts';

export type Follower = {
  waiting(now: Waiting): void;
  /** Called when the process is stopping: no more events follow. */
  over(): void;
};

export type InboxFeed = {
  /** Publishes the counts immediately and after every change. Returns the unsubscribe function. */
  follow(organisationId: string, follower: Follower): () => void;
};

/** Rate limit of events and of queries: one query for all subscribers of an organisation. */
const MIN_INTERVAL_MS = 100;
const RETRY_DELAY_MS = 1_000;

type Feed = {
  followers: Set<Follower>;
  /** Subscribers without an event yet. */
  fresh: Set<Follower>;
  changed: boolean;
  looking: boolean;
};

/** Creates the feed. It is inactive without subscribers. */
export function makeInboxFeed(
  { store, clock, log }: Pick<Broker, 'clock' | 'log' | 'store'>,
  changes: ApprovalChanges,
): InboxFeed {
  const feeds = new Map<string, Feed>();
  let unsubscribe: (() => void) | undefined;
  let over = false;

  const count = async (organisationId: string, feed: Feed): Promise<void> => {
    const receivers = feed.changed ? feed.followers : feed.fresh;
    feed.changed = false;
    feed.fresh = new Set();
    try {
      const waiting = await countWaiting(store.db, organisationId, clock());
      for (const follower of receivers) if (feed.followers.has(follower)) follower.waiting(waiting);
      await pause(MIN_INTERVAL_MS, undefined, { ref: false });
    } catch (error) {
      if (over) return;
      log.warn({ err: error }, 'could not count pending items; retrying');
      feed.changed = true;
      await pause(RETRY_DELAY_MS, undefined, { ref: false });
    }
  };

  const countWhileChanged = async (organisationId: string, feed: Feed): Promise<void> => {
    if (feed.looking) return;
    feed.looking = true;
    while (!over && feed.followers.size > 0 && (feed.changed || feed.fresh.size > 0)) await count(organisationId, feed);
    feed.looking = false;
    clear(organisationId, feed);
  };

  const clear = (organisationId: string, feed: Feed) => {
    if (feed.followers.size > 0 || feed.looking) return;
    if (feeds.get(organisationId) === feed) feeds.delete(organisationId);
    if (feeds.size > 0) return;
    unsubscribe?.();
    unsubscribe = undefined;
  };

  const changedIn = (organisationId: string) => {
    const feed = feeds.get(organisationId);
    if (!feed) return;
    feed.changed = true;
    void countWhileChanged(organisationId, feed);
  };

  const subscribe = () =>
    changes.subscribe(({ organisation_id }) => changedIn(organisation_id), {
      missed: () => {
        for (const organisationId of feeds.keys()) changedIn(organisationId);
      },
      over: () => {
        over = true;
        for (const { followers } of feeds.values()) for (const follower of [...followers]) follower.over();
      },
    });

  return {
    follow: (organisationId, follower) => {
      // Subscribe before the query, so that no change is missed in between.
      unsubscribe ??= subscribe();
      if (over) follower.over();
      const feed = feeds.get(organisationId) ?? makeFeed();
      feeds.set(organisationId, feed);
      feed.followers.add(follower);
      feed.fresh.add(follower);
      void countWhileChanged(organisationId, feed);
      return () => {
        feed.followers.delete(follower);
        feed.fresh.delete(follower);
        clear(organisationId, feed);
      };
    },
  };
}

const makeFeed = (): Feed => ({ followers: new Set(), fresh: new Set(), changed: false, looking: false });
