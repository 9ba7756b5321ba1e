/** A moment (milliseconds since the epoch) as it stands in answers: RFC 3339, in UTC. */
export const instant = (moment: number | null): string | null =>
  moment === null ? null : new Date(moment).toISOString();
