/** Log lines for limits that refuse: one when a limit starts to refuse requests, then one a minute with the count, never one a request. */
import { SharedUse, withReserve } from '../runtime/shared-limit.ts';
import type { Log } from './log.ts';

const WINDOW_MS = 60_000;
/**
 * Most callers that are counted separately; refusals of further callers are counted together, so that many sources cause no flood of lines. Beyond that
 * there is a reserve for organisations with few of them.
 */
const MAX_WINDOWS = withReserve(100);

/** The limit, and whom it refused: an agent's public id and its organisation, or a client address. Never a token. */
export type Refused = { limit: string; route?: string; agent?: string; organisation?: string; source?: string };

export type RefusalLog = {
  /** Counts a request or connection that a limit refused. */
  refused(by: Refused): void;
};

export function makeRefusalLog(log: Pick<Log, 'warn'>): RefusalLog {
  /** The number of refusals since the last line, by the line's content. */
  const windows = new Map<string, number>();
  const use = new SharedUse(MAX_WINDOWS);
  const shareOf = ({ organisation = '' }: Refused) => use.of(organisation);

  const open = (key: string, by: Refused): void => {
    windows.set(key, 0);
    use.count(shareOf(by), 1);
    setTimeout(() => {
      const refused = windows.get(key) ?? 0;
      windows.delete(key);
      use.count(shareOf(by), -1);
      if (refused === 0) return;
      open(key, by);
      log.warn({ ...by, refused }, 'a limit refused requests in the last minute');
    }, WINDOW_MS).unref();
  };

  const count = (key: string, by: Refused): void => {
    const counted = windows.get(key);
    if (counted !== undefined) windows.set(key, counted + 1);
    else {
      open(key, by);
      log.warn({ ...by, refused: 1 }, 'a limit starts to refuse requests');
    }
  };

  return {
    refused: (by) => {
      const key = JSON.stringify([by.limit, by.route, by.agent, by.source]);
      if (windows.has(key) || use.hasRoom(shareOf(by), 1)) count(key, by);
      else count('', { limit: 'all, of further agents and addresses' });
    },
  };
}
