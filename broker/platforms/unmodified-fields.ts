/** Manifest fields for requests of a platform's own clients: what is passed on, and what is refused. */
import { z } from 'zod';

const HeaderPattern = z
  .string()
  .regex(/^[a-z0-9-]{1,100}\*?$/, 'write a name in lower case, or its beginning and "*": "x-goog-*"');

const ParameterPattern = z
  .string()
  .regex(
    /^(?=[^A-Za-z0-9]*[A-Za-z0-9])[A-Za-z0-9_.$-]{1,100}\*?$/,
    'write the name of a parameter such as "sudo", or its beginning and "*": "x-amz-*"; a suffix in brackets does not count',
  );

export const UNMODIFIED_FIELDS = {
  client_headers: z
    .array(HeaderPattern)
    .max(100)
    .optional()
    .describe(
      'Headers of a client that the entry point for unmodified software (/proxy) forwards, in addition to those that every platform accepts; "x-goog-*" names all that begin so. A write with Content-Range is refused, through any entry point, unless it is named here. With auth of type aws_sigv4, the only headers "x-…" that agents send, through any entry point.',
    ),
  refused_headers: z
    .array(HeaderPattern)
    .max(100)
    .optional()
    .describe(
      'Headers of an agent that say what a call does, such as one that names another account: a call that brings one is refused, because it would do something else without it, also where client_headers names it. "impersonate-*" names all that begin so.',
    ),
  refused_parameters: z
    .array(
      z.union([ParameterPattern, z.strictObject({ name: ParameterPattern, in: z.literal('query') })], {
        error: 'write the name of a parameter, or { name: NAME, in: query } for one that is refused in the query alone',
      }),
    )
    .max(100)
    .optional()
    .describe(
      'Parameters that say for whom, or for which account, a call is made, or that it is answered as a script (JSONP): a call that names one in its query, in a field of a form or among the members of its JSON is refused, in any spelling; "x-amz-*" names all that begin so. { name, in: query } leaves bodies alone.',
    ),
  error_body: z
    .union([z.record(z.string(), z.json()), z.string().startsWith('<').max(2_000)])
    .optional()
    .describe(
      'How the platform writes an error, so that its clients show why the broker refused a call of theirs: a JSON object, or XML. "{detail}", "{code}" and "{status}" in its texts are replaced by those of the refusal.',
    ),
};
