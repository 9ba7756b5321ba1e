import type { Log } from './log/log.ts';

/** Whether something that the broker depends on works. Logged when that changes, however many calls it fails. */
export type Outage = {
  failed(error: unknown): void;
  worked(): void;
  isLasting(): boolean;
};

/**
 * `failed` and `worked`: what the log says when it stops working, and when it works again. `about`: members of both lines.
 * `level`: of the first, `error` unless said otherwise.
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
