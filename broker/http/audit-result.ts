/** How a call ended, as audit rows record it. */
export const RESULTS = ['allowed', 'held', 'denied', 'blocked', 'errored'] as const;
