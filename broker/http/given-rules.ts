/** Rules in the body of an owner's request. */
import { z } from 'zod';
import { rulesRefused } from '../admin/given-rules.ts';
import { shapeProblems } from '../config-file/rules.ts';
import { Refusal } from './errors.ts';
import type { Reply } from './reply.ts';
import type { MalformedBody } from './route.ts';

/** Rules as they are stored: what they were given as, in the form of governance.yaml. */
export const Rules = z.array(z.record(z.string(), z.unknown())).describe('as in governance.yaml');
export const Warnings = z.array(z.string()).describe('what is allowed, and may not be what was meant');

/** Whoever changes what another has changed meanwhile is told so, if they say which version they saw. */
export const SeenVersion = z
  .int()
  .min(0)
  .optional()
  .describe('the version that was changed to these; when another is in force by now, nothing is changed');

/** Members of bodies that hold rules. */
const RULES = new Set<PropertyKey>(['rules', 'guardrails', 'policy_rules']);

/** Says of a body with rules everything that is wrong with it, each problem by its path. For `onMalformed`. */
export const sayWhatIsWrong =
  (schema: z.ZodType) =>
  async (_context: unknown, { body, detail, issues }: MalformedBody): Promise<Reply> => {
    if (!issues) throw new Refusal('invalid_request', detail);
    const inRules = issues.some(({ path }) => path[0] !== undefined && RULES.has(path[0]));
    throw rulesRefused(inRules ? 'invalid_governance' : 'invalid_request', shapeProblems(issues, body, schema));
  };
