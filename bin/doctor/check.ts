/** Types that the checks of `doctor` share. */

export type Check = {
  check: 'profile' | 'address' | 'links' | 'clock' | 'key' | 'status' | 'grants';
  /** `skipped`: not possible because an earlier check failed. */
  result: 'ok' | 'warning' | 'failed' | 'skipped';
  detail: string;
  advice?: string;
};

/** A response of the broker. `skewMs`: how far this machine's clock is ahead; undefined without a Date header. */
export type Answer = { status: number; headers: Headers; body: Record<string, unknown>; skewMs: number | undefined };
