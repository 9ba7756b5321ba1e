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
const AT_MOST_EVERY_MS = 100;
const AGAIN_MS = 1_000;

type Desk = {
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
  const desks = new Map<string, Desk>();
  let unsubscribe: (() => void) | undefined;
  let over = false;

  const count = async (organisationId: string, desk: Desk): Promise<void> => {
    const told = desk.changed ? desk.followers : desk.fresh;
    desk.changed = false;
    desk.fresh = new Set();
    try {
      const waiting = await countWaiting(store.db, organisationId, clock());
      for (const follower of told) if (desk.followers.has(follower)) follower.waiting(waiting);
      await pause(AT_MOST_EVERY_MS, undefined, { ref: false });
    } catch (error) {
      if (over) return;
      log.warn({ err: error }, 'could not count pending items; retrying');
      desk.changed = true;
      await pause(AGAIN_MS, undefined, { ref: false });
    }
  };

  const look = async (organisationId: string, desk: Desk): Promise<void> => {
    if (desk.looking) return;
    desk.looking = true;
    while (!over && desk.followers.size > 0 && (desk.changed || desk.fresh.size > 0)) await count(organisationId, desk);
    desk.looking = false;
    clear(organisationId, desk);
  };

  const clear = (organisationId: string, desk: Desk) => {
    if (desk.followers.size > 0 || desk.looking) return;
    if (desks.get(organisationId) === desk) desks.delete(organisationId);
    if (desks.size > 0) return;
    unsubscribe?.();
    unsubscribe = undefined;
  };

  const changedIn = (organisationId: string) => {
    const desk = desks.get(organisationId);
    if (!desk) return;
    desk.changed = true;
    void look(organisationId, desk);
  };

  const subscribe = () =>
    changes.subscribe(({ organisation_id }) => changedIn(organisation_id), {
      missed: () => {
        for (const organisationId of desks.keys()) changedIn(organisationId);
      },
      over: () => {
        over = true;
        for (const { followers } of desks.values()) for (const follower of [...followers]) follower.over();
      },
    });

  return {
    follow: (organisationId, follower) => {
      // Subscribe before the query, so that no change is missed in between.
      unsubscribe ??= subscribe();
      if (over) follower.over();
      const desk = desks.get(organisationId) ?? makeDesk();
      desks.set(organisationId, desk);
      desk.followers.add(follower);
      desk.fresh.add(follower);
      void look(organisationId, desk);
      return () => {
        desk.followers.delete(follower);
        desk.fresh.delete(follower);
        clear(organisationId, desk);
      };
    },
  };
}

const makeDesk = (): Desk => ({ followers: new Set(), fresh: new Set(), changed: false, looking: false });
