/** What a manifest says of a platform's own clients, which come by /proxy. */
import { z } from 'zod';

const HeaderPattern = z
  .string()
  .regex(/^[a-z0-9-]{1,100}\*?$/, 'write a name in lower case, or its beginning and "*": "x-goog-*"');

export const UNMODIFIED_FIELDS = {
  client_headers: z
    .array(HeaderPattern)
    .max(100)
    .optional()
    .describe(
      'Headers of a client that the door for unmodified software (/proxy) sends on, beside those that every platform takes; "x-goog-*" names all that begin so. A write with Content-Range is refused, by any door, unless it is named here. With auth of type aws_sigv4, the only headers "x-…" that agents send, by any door.',
    ),
  refused_headers: z
    .array(HeaderPattern)
    .max(100)
    .optional()
    .describe(
      'Headers of an agent that say what a call does, such as one that names another account: a call that brings one is refused, because it would do something else without it, also where client_headers names it. "impersonate-*" names all that begin so.',
    ),
  error_body: z
    .union([z.record(z.string(), z.json()), z.string().startsWith('<').max(2_000)])
    .optional()
    .describe(
      'How the platform writes an error, so that its clients show why the broker refused a call of theirs: a JSON object, or XML. "{detail}", "{code}" and "{status}" in its texts stand for what is told.',
    ),
};
