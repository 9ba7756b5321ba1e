/** Schemas of the members of a rule that select calls, and earlier calls. */
import { z } from 'zod';
import { METHODS } from '../policy/facts.ts';
import { SPAN_PATTERN } from '../policy/span.ts';

const patterns = (what: string) =>
  z.array(z.string()).min(1, 'is empty, so the rule would match nothing').max(500).describe(what);

/** The members of a rule that select calls. An absent member matches everything. */
export const selection = {
  platforms: patterns('Platform ids; "*" is any text. Absent: every platform.').optional(),
  scopes: patterns('Scopes; "*" is any text, as in "crm:*.read". Absent: every scope.').optional(),
  methods: z
    .array(z.enum(METHODS))
    .min(1, 'is empty, so the rule would match nothing')
    .optional()
    .describe('HTTP methods; GraphQL operations and tools are POST. Absent: every method.'),
  endpoints: patterns(
    'Paths; "*" is one segment, "**" any rest, as in "/admin/**". Absent: every endpoint.',
  ).optional(),
  when: z
    .string()
    .min(1)
    .max(2048)
    .optional()
    .describe(
      'A CEL condition over request (method, endpoint, query, body, headers), agent, platform, scope and now, as in "has(request.body.amount) && request.body.amount > 1000".',
    ),
};

/** Schema of `after` in a rule. */
export const RuleAfter = z
  .strictObject({
    ...selection,
    within: z
      .string()
      .regex(SPAN_PATTERN, 'write a time such as "8h", "45m" or "7d"')
      .describe('For how long after such a call the rule applies, such as "8h", "45m" or "7d"; at most "30d".'),
  })
  .optional()
  .describe(
    'The rule applies to calls of agents that made one of these calls before, themselves or by their children or parent, through any entry point. At least one of the other members says which.',
  );
