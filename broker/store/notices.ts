/** Notifications between replicas, by PostgreSQL's LISTEN and NOTIFY. */
import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import pg from 'pg';
import { withTimeout } from '../runtime/waits.ts';
import type { Db } from './db.ts';

export type Notices = {
  /** Delivered to every listener on this database when the transaction commits. */
  send(db: Db, payload: string): Promise<void>;
  /** Listens on a connection of its own, which is reopened whenever it breaks, until closed. */
  listen(on: Listener): { close(): Promise<void> };
};

export type Listener = {
  heard(payload: string): void;
  /** Reports whether notifications arrive. Called at the start and on every change: notifications sent in between are lost. */
  reachable(now: boolean): void;
};

const CHANNEL = 'agent_broker_notices';
const RETRY_DELAY_MS = 500;
/** Interval of probes that a listener sends to itself, and their timeout. */
const PROBE_INTERVAL_MS = 10_000;
const PROBE_MS = 2_000;
const CLOSE_TIMEOUT_MS = 1_000;

/**
 * A connection may be half-open, and a pooler may accept LISTEN without ever delivering a notification. So a connection is considered healthy
 * only while the listener receives its own probes through it.
 */
export function makeNotices(settings: pg.ClientConfig): Notices {
  return {
    send: async (db, payload) => {
      await sql`select pg_notify(${CHANNEL}, ${payload})`.execute(db);
    },
    listen: (on) => startListening(settings, on),
  };
}

function startListening(settings: pg.ClientConfig, on: Listener): { close(): Promise<void> } {
  let client: pg.Client | undefined;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  let up = false;
  let cameBack: (() => void) | undefined;

  const say = (now: boolean) => {
    if (now === up || closed) return;
    up = now;
    on.reachable(now);
  };

  const probe = async (through: pg.Client, word: string): Promise<void> => {
    const { promise, resolve, reject } = Promise.withResolvers<'back'>();
    cameBack = () => resolve('back');
    through.query('select pg_notify($1, $2)', [CHANNEL, word]).catch(reject);
    if ((await withTimeout(promise, PROBE_MS, 'late')) === 'late')
      throw new Error('the probe notification did not arrive');
  };

  const connect = async (): Promise<void> => {
    const word = `probe ${randomUUID()}`;
    const mine = new pg.Client(settings);
    client = mine;
    const broken = () => {
      if (client !== mine || closed) return;
      client = undefined;
      say(false);
      mine.end().catch(() => {});
      clearTimeout(timer);
      timer = setTimeout(connect, RETRY_DELAY_MS);
    };
    mine.on('error', broken);
    mine.on('end', broken);
    mine.on('notification', ({ payload = '' }) => {
      if (payload === word) cameBack?.();
      else if (!payload.startsWith('probe ')) on.heard(payload);
    });
    const live = async (): Promise<void> => {
      try {
        await probe(mine, word);
        if (client !== mine || closed) return;
        say(true);
        timer = setTimeout(live, PROBE_INTERVAL_MS);
      } catch {
        broken();
      }
    };
    try {
      await mine.connect();
      await mine.query(`listen ${CHANNEL}`);
    } catch {
      return broken();
    }
    await live();
  };

  void connect();
  return {
    close: async () => {
      closed = true;
      clearTimeout(timer);
      // Closing a half-open connection gracefully could take minutes.
      if (client) await withTimeout(client.end(), CLOSE_TIMEOUT_MS).catch(() => {});
    },
  };
}
