import type { Log } from './log/log.ts';

/** Tracks whether a dependency of the broker works. Logs only the changes, however many calls fail meanwhile. */
export type Outage = {
  failed(error: unknown): void;
  worked(): void;
  isLasting(): boolean;
};

/**
 * `failed` and `worked`: log messages for the first failure and for the recovery. `about`: fields added to both lines. `level`: of the failure's
 * line, `error` by default.
 */
export function watchOutage(
  log: Log,
  {
    failed,
    worked,
    about,
    level = 'error',
  }: { failed: string; worked: string; about?: object; level?: 'error' | 'warn' },
): Outage {
  let failures = 0;
  let since = 0;
  return {
    failed: (error) => {
      if (failures++ > 0) return;
      since = performance.now();
      log[level]({ ...about, err: error }, failed);
    },
    worked: () => {
      if (failures === 0) return;
      log.info({ ...about, failures, seconds: Math.round((performance.now() - since) / 1000) }, worked);
      failures = 0;
    },
    isLasting: () => failures > 0,
  };
}
