/** The owners' view of a restored store. */
import { z } from 'zod';
import type { StoreRestored } from '../policy/store-restored.ts';

export const RestoredShown = z
  .object({
    at: z.iso.datetime().describe('when it was restored'),
    backup_made_at: z.iso.datetime().nullable().describe('null: not known, it was brought back by other means'),
    ended: z
      .object({
        approvals: z.int(),
        access_requests: z.int(),
        registrations: z.int(),
        consents: z.int(),
        invites: z.int(),
        standing_approvals: z.int(),
      })
      .describe('what waited, or was in force, in the backup and was ended'),
  })
  .meta({ id: 'RestoredStore' });

export const restoredShown = ({ at, madeAt, ended }: StoreRestored): z.output<typeof RestoredShown> => ({
  at: new Date(at).toISOString(),
  backup_made_at: madeAt === null ? null : new Date(madeAt).toISOString(),
  ended,
});
