/** Checks rules that do not come from a file, in the same way and with the same messages as those of a file. */
import { z } from 'zod';
import type { Manifest } from '../platforms/manifest.ts';
import type { RuleSource } from '../policy/facts.ts';
import { type Checked, checkRules } from './check-document.ts';
import { checkRuleNames } from './check-rule-names.ts';
import { ruleSources } from './governance.ts';
import type { JsonSchema } from './json-schema.ts';
import { type Finding, formatPath } from './problems.ts';
import { shapeFindings } from './shape-findings.ts';

export type ReadRules = { ok: true; rules: RuleSource[]; warnings: string[] } | { ok: false; problems: string[] };

/** Formats `rules[0].effect: …`. */
const say = ({ path, message }: Finding): string => (path.length === 0 ? message : `${formatPath(path)}: ${message}`);

/** A person fixes no more at a time. */
const MAX_PROBLEMS = 50;

/** Returns the problems of a value that `schema` refused, each with its path and what is allowed there. */
export function shapeProblems(issues: readonly z.core.$ZodIssue[], value: unknown, schema: z.ZodType): string[] {
  const json = z.toJSONSchema(schema, { target: 'draft-7', io: 'input', unrepresentable: 'any' }) as JsonSchema;
  return shapeFindings(issues, value, json).slice(0, MAX_PROBLEMS).map(say);
}

/**
 * Returns valid rules in their stored form, or the problems.
 *
 * @param at the member that contains the rules, for problems
 * @param platforms the organisation's: a rule that matches none of them is a warning
 */
export function readRules(
  rules: Parameters<typeof checkRuleNames>[0],
  kind: 'policy' | 'guardrail',
  at: string,
  platforms: ReadonlyMap<string, Manifest>,
): ReadRules {
  const found: Checked = { problems: [], warnings: [] };
  checkRules(rules, kind, [at], found);
  checkRuleNames(rules, [at], { platforms }, found);
  if (found.problems.length > 0) return { ok: false, problems: found.problems.slice(0, MAX_PROBLEMS).map(say) };
  return { ok: true, rules: ruleSources(rules), warnings: found.warnings.slice(0, MAX_PROBLEMS).map(say) };
}
