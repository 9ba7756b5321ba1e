/** Plans policies and guardrails: a new version only when the rules differ. */

import { sameJson } from '../config-file/differences.ts';
import { entriesOf, ruleSources } from '../config-file/governance.ts';
import { listNames } from '../config-file/problems.ts';
import { canonicalJson } from '../crypto/canonical.ts';
import { uuidv4 } from '../crypto/ids.ts';
import { DEFAULT_POLICY, DEFAULT_POLICY_RULES } from '../policy/default-policy.ts';
import type { RuleSource } from '../policy/facts.ts';
import { describeLimit } from '../policy/limit.ts';
import { describeAfter, describeMask } from '../policy/rules/describe.ts';
import { putGuardrails, putPolicy } from '../store/governed-versions.ts';
import { deletePolicy } from '../store/policies.ts';
import { addNew, addProblem, addStep, type Planning } from './planning.ts';

/** Returns the policies of the file; `default` gets its built-in rules when the section leaves it out. */
function wantedPolicies(planning: Planning): Map<string, RuleSource[]> {
  const { policies } = planning.governance.document;
  const wanted = new Map(entriesOf(policies).map(([name, policy]) => [name, ruleSources(policy.rules)]));
  const hasDefault = planning.present.policies.has(DEFAULT_POLICY);
  if (!wanted.has(DEFAULT_POLICY) && (policies !== undefined || !hasDefault))
    wanted.set(DEFAULT_POLICY, ruleSources(DEFAULT_POLICY_RULES));
  return wanted;
}

/** `rest` is awaited between policies. */
export async function planPolicies(planning: Planning, rest: () => Promise<void>): Promise<void> {
  const { present, organisationId, now } = planning;
  for (const [name, known] of present.policies) planning.policyIds.set(name, known.id);
  for (const [name, rules] of wantedPolicies(planning)) {
    await rest();
    const known = present.policies.get(name);
    if (known && sameJson(known.rules, rules)) continue;
    const details =
      known || rules.length > 0 ? rulesDifference(known?.rules ?? [], rules) : ['no rules: every call is denied'];
    if (known) {
      const next = { organisationId, id: known.id, name, rules: JSON.stringify(rules) };
      addStep(planning, { action: 'update', kind: 'policy', name, details }, async (db) => {
        await putPolicy(db, next, now);
      });
      continue;
    }
    const id = uuidv4();
    planning.policyIds.set(name, id);
    const place = { organisation_id: organisationId, version: 1, created_at: now };
    addNew(planning, { action: 'create', kind: 'policy', name, details }, 'policies', { ...place, id, name });
    planning.newRows.policy_versions.push({ ...place, policy_id: id, rules: JSON.stringify(rules) });
  }
}

/** Runs after the agents: a policy is removed only when no live agent is assigned to it. */
export function planPolicyRemovals(planning: Planning): void {
  const { present, organisationId } = planning;
  const { policies } = planning.governance.document;
  if (policies === undefined) return;
  for (const [name, { id }] of present.policies) {
    if (name === DEFAULT_POLICY || Object.hasOwn(policies, name)) continue;
    const under = planning.futureAgents.filter((agent) => agent.live && agent.policyId === id);
    if (under.length > 0) {
      const names = listNames(under.map((agent) => agent.name));
      addProblem(
        planning,
        ['policies'],
        `"${name}" is no longer listed but the agents ${names} use it; give them another policy first.`,
      );
    }
    addStep(planning, { action: 'delete', kind: 'policy', name, details: [] }, (db) =>
      deletePolicy(db, organisationId, id),
    );
  }
}

export function planGuardrails(planning: Planning): void {
  const { present, organisationId, now } = planning;
  const { guardrails } = planning.governance.document;
  if (guardrails === undefined) return;
  const rules = ruleSources(guardrails);
  if (sameJson(present.guardrails, rules)) return;
  const action = present.guardrails.length === 0 ? 'create' : rules.length === 0 ? 'delete' : 'update';
  const details = rulesDifference(present.guardrails, rules);
  addStep(planning, { action, kind: 'guardrails', name: 'guardrails', details }, async (db) => {
    await putGuardrails(db, organisationId, JSON.stringify(rules), now);
  });
}

function rulesDifference(before: readonly RuleSource[], after: readonly RuleSource[]): string[] {
  const [lost, gained] = [without(before, after), without(after, before)];
  const lines = [...lost.map((rule) => `− ${describeRule(rule)}`), ...gained.map((rule) => `+ ${describeRule(rule)}`)];
  return lines.length === 0 ? ['the order of the rules, which only changes their numbers'] : lines;
}

/** The rules that are not among others, by their content and not by their description: an equal rule is taken away once for each that is there. */
function without(rules: readonly RuleSource[], others: readonly RuleSource[]): RuleSource[] {
  const left = others.map(canonicalJson);
  return rules.filter((rule) => {
    const at = left.indexOf(canonicalJson(rule));
    if (at !== -1) left.splice(at, 1);
    return at === -1;
  });
}

const inFull = (patterns: readonly string[]): string => patterns.join(', ');

/** Formats a rule: `deny: methods DELETE; endpoints /admin/**`. */
function describeRule({ name, effect, when, mask, limit, after, remember, approvers, ...lists }: RuleSource): string {
  const parts = Object.entries(lists).map(([field, list]) => `${field} ${list.join(', ')}`);
  if (when !== undefined) parts.push(`when ${when}`);
  if (mask !== undefined) parts.push(describeMask(mask, inFull));
  if (limit !== undefined) parts.push(`over ${describeLimit(limit)}`);
  if (after !== undefined) parts.push(describeAfter(after, inFull));
  if (remember === true) parts.push('remember');
  if (approvers !== undefined) parts.push(`approvers ${approvers}`);
  return `${name === undefined ? '' : `${name}: `}${effect}${parts.length === 0 ? ' everything' : `: ${parts.join('; ')}`}`;
}
