/** What a manifest says of bodies and answers that are no JSON. */
import { z } from 'zod';
import { BODY_KINDS } from '../policy/platform-rules.ts';
import { PlatformUrl } from './fields.ts';

const Kind = z.enum(BODY_KINDS);

export const TRANSFER_FIELDS = {
  body: z.enum(['json', 'form']).optional().describe('How `data` is encoded: json (the default), or form.'),
  bodies: z
    .record(
      z.string(),
      z.union([Kind, z.array(Kind).min(1).max(BODY_KINDS.length)], {
        error: `write one of ${BODY_KINDS.join(', ')}, or a list of them`,
      }),
    )
    .optional()
    .describe(
      'Operations that take another body than `body` says: an object as json, form or multipart (files in parts), a JSON list, text, or bytes (base64 with `encoding`).',
    ),
  base_urls: z
    .record(z.string(), PlatformUrl)
    .optional()
    .describe(
      'Operations at another address of the platform, which gets the same credential: what stands before their endpoint in place of `base_url`, such as a host for uploads.',
    ),
  follow: z
    .array(z.string())
    .max(200)
    .optional()
    .describe(
      'Reads that the platform answers with a redirect to a signed address elsewhere, such as "GET /reports/*/download": the broker follows it once, without the credential, to https and a public address.',
    ),
};
