/** The state of a store that was restored from a backup: no call is made before an admin has reviewed it. */
import { z } from 'zod';

export const StoreRestored = z.strictObject({
  /** When it was restored, in milliseconds since the epoch. */
  at: z.number(),
  /** When the backup was made; null: unknown, because the store was restored by other means. */
  madeAt: z.number().nullable(),
  /** How many pending items of the backup were ended. */
  ended: z.strictObject({
    approvals: z.number(),
    access_requests: z.number(),
    registrations: z.number(),
    consents: z.number(),
    invites: z.number(),
    standing_approvals: z.number(),
  }),
  /** Whether the restore is recorded in the audit. */
  noted: z.boolean(),
});
export type StoreRestored = z.output<typeof StoreRestored>;
