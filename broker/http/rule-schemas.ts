/** Schemas of rules in the bodies of owners' requests. */
import { z } from 'zod';
import { rulesRefused } from '../admin/policies/check-rules.ts';
import type { RuleVersion } from '../admin/policies/rule-versions.ts';
import { shapeProblems } from '../config-file/rules.ts';
import { Refusal } from './errors.ts';
import { pageSize, wholeNumber } from './query.ts';
import type { Reply } from './reply.ts';
import type { MalformedBody } from './route.ts';

/** Rules as they are stored: the way they were given, in the form of governance.yaml. */
export const Rules = z.array(z.record(z.string(), z.unknown())).describe('as in governance.yaml');
export const RuleDescriptions = z
  .array(z.string())
  .describe('of each rule what it says, such as "POST, PUT, PATCH wait"');
export const Warnings = z.array(z.string()).describe('what is allowed, and may not be what was meant');

/** Optimistic locking: a client that sends the version it saw is refused when another change came first. */
export const SeenVersion = z
  .int()
  .min(0)
  .optional()
  .describe('the version that was changed to these; when another is in force by now, nothing is changed');

export const MadeBy = z.object({
  by: z.string().describe('the id of an owner, or `operator`'),
  how: z.string().describe('such as `console`, `api` or `start`'),
  audit_id: z.guid().describe('the audit row of the change'),
});

/** A version of rules, with its author. */
const Version = z
  .object({
    version: z.int(),
    rules: Rules,
    words: RuleDescriptions,
    created_at: z.iso.datetime(),
    made_by: MadeBy.nullable().describe('null: nobody is on record, as of what came with the organisation'),
  })
  .meta({ id: 'RulesVersion' });

/** Query and answer schemas of a list of versions. */
export const VersionsQuery = z.object({
  limit: pageSize(100, 20),
  before: wholeNumber(1, 2 ** 31 - 1)
    .optional()
    .describe('the last version of the page before'),
});
export const Versions = z.object({ versions: z.array(Version), next: z.int().nullable() });

export const versionShown = ({ madeBy, created_at, ...version }: RuleVersion): z.output<typeof Version> => ({
  ...version,
  created_at: new Date(created_at).toISOString(),
  made_by: madeBy && { by: madeBy.by, how: madeBy.how, audit_id: madeBy.auditId },
});

/** Members of bodies that hold rules. */
const RULES = new Set<PropertyKey>(['rules', 'guardrails', 'policy_rules']);

/** Returns an `onMalformed` handler that lists every problem in a body with rules, each by its path. */
export const listRuleProblems =
  (schema: z.ZodType) =>
  async (_context: unknown, { body, detail, issues }: MalformedBody): Promise<Reply> => {
    if (!issues) throw new Refusal('invalid_request', detail);
    const inRules = issues.some(({ path }) => path[0] !== undefined && RULES.has(path[0]));
    throw rulesRefused(inRules ? 'invalid_governance' : 'invalid_request', shapeProblems(issues, body, schema));
  };
