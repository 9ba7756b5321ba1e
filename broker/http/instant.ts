/** Formats a time (milliseconds since the epoch) for answers: RFC 3339, in UTC. */
export const instant = (moment: number | null): string | null =>
  moment === null ? null : new Date(moment).toISOString();
