/** A store that was restored from a backup: no call is made before an admin has reviewed it. */
import { z } from 'zod';

export const StoreRestored = z.strictObject({
  /** When it was restored, in milliseconds since the epoch. */
  at: z.number(),
  /** When the backup was made; null: not known, of a store that was brought back by other means. */
  madeAt: z.number().nullable(),
  /** What waited in the backup and was ended. */
  ended: z.strictObject({
    approvals: z.number(),
    access_requests: z.number(),
    registrations: z.number(),
    consents: z.number(),
    invites: z.number(),
    standing_approvals: z.number(),
  }),
  /** Whether it is on record. */
  noted: z.boolean(),
});
export type StoreRestored = z.output<typeof StoreRestored>;
