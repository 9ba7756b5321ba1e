/** Checks the rules of a governance file that say who decides: channels with buttons, and numbers of approvers. */
import { approversWarning } from '../config-file/approvers-warning.ts';
import { whyNoButtons } from '../config-file/decide-in.ts';
import { entriesOf, ruleSources } from '../config-file/governance.ts';
import type { Path } from '../config-file/problems.ts';
import { canonicalJson } from '../crypto/canonical.ts';
import type { RuleSource } from '../policy/facts.ts';
import { addProblem, type Planning } from './planning.ts';

/**
 * Adds a problem for each channel of a rule that does not exist or has no buttons: a call would never get a button there. A warning, if the rule
 * is in force like this already, since owners may remove a channel that rules name: an export of that state can still be applied. Warns of each rule
 * that needs more people than may decide.
 */
export function checkDeciding(planning: Planning): void {
  const { guardrails = [], policies, channels } = planning.governance.document;
  const present = new Map(planning.present.channels.map(({ name, kind }) => [name, kind]));
  const kinds = channels === undefined ? present : new Map(entriesOf(channels).map(([name, { kind }]) => [name, kind]));
  const check = (rules: readonly Deciding[], inForce: readonly RuleSource[], path: Path) =>
    rules.forEach((rule, index) => {
      const { decide_in: names = [] } = rule;
      names.forEach((name, place) => {
        const why = whyNoButtons(kinds.get(name));
        if (why === undefined) return;
        const at = [...path, index, 'decide_in', place];
        const isAsBefore = whyNoButtons(present.get(name)) !== undefined && includes(inForce, rule);
        if (isAsBefore) planning.warnings.push({ path: at, message: `"${name}": ${why}. No button decides there.` });
        else addProblem(planning, at, `"${name}": ${why}.`);
      });
      const message = approversWarning(rule, planning.deciders);
      if (message) planning.warnings.push({ path: [...path, index, 'approvers'], message });
    });
  check(guardrails, planning.present.guardrails, ['guardrails']);
  for (const [name, { rules }] of entriesOf(policies))
    check(rules, planning.present.policies.get(name)?.rules ?? [], ['policies', name, 'rules']);
}

type Deciding = { decide_in?: readonly string[] | undefined; approvers?: number | undefined };

const includes = (inForce: readonly RuleSource[], rule: Deciding): boolean =>
  inForce.map(canonicalJson).includes(canonicalJson(ruleSources([rule])[0]));
