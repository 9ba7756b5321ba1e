/** How a call ended, as rows say it. */
export const RESULTS = ['allowed', 'held', 'denied', 'blocked', 'errored'] as const;
