/** The parts of a connection's secret, for forms. */
import { z } from 'zod';
import type { Auth } from '../platforms/auth.ts';
import { secretPartsOf } from '../platforms/secret-parts.ts';

export const SecretParts = z
  .array(
    z.object({
      name: z.string(),
      what: z.string(),
      optional: z.boolean(),
      open: z.boolean().describe('whether it is no secret, and may be shown while it is typed'),
    }),
  )
  .nullable()
  .describe('parts of the secret of a connection; null: it is one text');

/** Returns the parts for this `auth`. */
export const secretPartsShown = (auth: Auth): z.output<typeof SecretParts> =>
  secretPartsOf(auth)?.map(({ name, what, optional = false, open = false }) => ({ name, what, optional, open })) ??
  null;
