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
      .describe('Kinds of values, wherever they stand in text: found by how they are written.'),
  })
  .optional()
  .describe(
    'Of a rule with the effect "mask": what is masked in the answers of the calls. Answers in which that cannot be told are withheld.',
  );
