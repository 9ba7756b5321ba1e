/** What a manifest says of bodies and answers that are no JSON. */
import { z } from 'zod';

export const TRANSFER_FIELDS = {
  follow: z
    .array(z.string())
    .max(200)
    .optional()
    .describe(
      'Reads that the platform answers with a redirect to a signed address elsewhere, such as "GET /reports/*/download": the broker follows it once, without the credential, to https and a public address.',
    ),
};
