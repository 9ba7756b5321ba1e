/** Manifest fields for a code host: the refs that operations write, and git. */
import { z } from 'zod';
import { REF_CHANGES } from '../policy/facts.ts';
import { REF_PREFIXES } from '../policy/platform-rules.ts';
import { PlatformUrl } from './fields.ts';

const Position = z.strictObject({
  in: z.enum(['path', 'body', 'query']).describe('Where the ref stands.'),
  at: z
    .string()
    .optional()
    .describe(
      'A JSON pointer into the body, or the name of a parameter; in the path it is the part that `**` matches.',
    ),
  prefix: z
    .enum(REF_PREFIXES)
    .optional()
    .describe('What comes before it in the full name: "refs/heads/" for a branch. Left out: it is a full name.'),
  action: z.enum(REF_CHANGES).describe('What becomes of the ref.'),
  unless: z
    .strictObject({ at: z.string().describe('A JSON pointer into the body.'), is: z.boolean() })
    .optional()
    .describe('A member of the body, and the value with which this ref is not written.'),
});

const Doubt = z
  .strictObject({
    in: z.literal('body'),
    at: z.string().describe('A JSON pointer into the body.'),
    why: z.string().min(1).max(200).describe('A sentence that says why it cannot be determined then.'),
    values: z
      .array(z.string().min(1).max(200))
      .min(1)
      .max(50)
      .optional()
      .describe('Only with one of these texts, in any letter case; "*" is any text.'),
    unless: z.boolean().optional().describe('Not with this value.'),
  })
  .describe('A member of the body that makes it impossible to determine which refs the operation writes.');

const RefRule = z
  .union([z.array(z.union([Position, Doubt])).max(10), z.string().min(1).max(200)], {
    error:
      'write a list such as [{ in: body, at: /branch, prefix: refs/heads/, action: update }], [] for none, or a sentence',
  })
  .describe('The refs that an operation writes.');

export const CODE_HOST_FIELDS = {
  refs: z
    .record(z.string(), RefRule)
    .optional()
    .describe(
      'Which branches and tags operations write, for a code host: where a call names them, an empty list for none, or a sentence that says why it cannot be determined, or that what protects refs is changed. On grants with `refs`, operations that are not listed are refused, but for GET.',
    ),
  git_base_url: PlatformUrl.optional().describe('Where git repositories are cloned from, for a code host.'),
  git_user: z
    .string()
    .regex(/^[\x21-\x39\x3b-\x7e]{1,100}$/, 'write printable ASCII without ":", such as "oauth2"')
    .optional()
    .describe('The user name that goes with the secret to git; x-access-token unless said otherwise.'),
  git_push_options: z
    .array(
      z
        .string()
        .regex(/^[\x21-\x3c\x3e-\x7e]{1,100}$/, 'write the name of a push option, without "=" and a value: "ci.skip"'),
    )
    .max(100)
    .optional()
    .describe(
      'Push options (`git push -o`) that agents may use whose grant limits repositories, refs or their changes: exact names, which are the part before "=". On such grants a push with another option is refused, because an option may merge, delete or open more than the push does.',
    ),
};
