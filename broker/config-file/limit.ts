/** Schema of `limit` in a rule. */
import { z } from 'zod';
import { PERIODS } from '../policy/limit.ts';

export const RuleLimit = z
  .strictObject({
    most: z.number().positive().max(1e15).describe('How much passes in one period.'),
    per: z.enum(PERIODS).describe('The period, of the calendar in UTC; weeks begin on Monday.'),
    of: z
      .string()
      .min(1)
      .max(2048)
      .optional()
      .describe('A CEL expression: how much a call is, as in "request.body.amount". Without it calls are counted.'),
    together: z.literal(true).optional().describe('Of all agents together. Without it each agent has its own.'),
  })
  .optional()
  .describe(
    'The rule applies to the calls that would bring a period over this. What matches the rest of the rule is counted once it is about to be sent.',
  );
