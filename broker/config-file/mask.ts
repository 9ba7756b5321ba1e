/** Schema of what a rule masks in a response. */
import { z } from 'zod';
import { VALUE_KINDS } from '../policy/value-kinds.ts';

/** Schema of `mask` in a rule. */
export const RuleMask = z
  .strictObject({
    members: z
      .array(z.string().min(1).max(200))
      .min(1, 'is empty; leave it out')
      .max(100)
      .optional()
      .describe(
        'Members of JSON: a name at any depth, such as "email" or "*_token", or a path such as "/contacts/*/notes", in which "*" is one step and "**" any number. Letter case and separators are ignored.',
      ),
    values: z
      .array(z.enum(VALUE_KINDS))
      .min(1, 'is empty; leave it out')
      .optional()
      .describe('Kinds of values, anywhere in text: found by their format.'),
  })
  .optional()
  .describe(
    'Of a rule with the effect "mask": what is masked in the responses to the calls. Responses in which that cannot be determined are withheld.',
  );
