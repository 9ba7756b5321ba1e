/** Checks that calls which several people have to approve can be approved. */
import { entriesOf } from '../config-file/governance.ts';
import type { Planning } from './planning.ts';

/** Warns of each rule that needs more people than may decide: its calls can only be denied, or expire. */
export function checkApprovers(planning: Planning): void {
  const { guardrails = [], policies } = planning.governance.document;
  const { deciders } = planning;
  const check = (rules: readonly { approvers?: number | undefined }[], path: readonly string[]) =>
    rules.forEach(({ approvers = 1 }, rule) => {
      if (approvers <= Math.max(1, deciders)) return;
      const has = `the organisation has ${deciders} who may decide`;
      const message = `${approvers} people have to approve, and ${has}: such calls can only be denied, or expire.`;
      planning.warnings.push({ path: [...path, rule, 'approvers'], message });
    });
  check(guardrails, ['guardrails']);
  for (const [name, { rules }] of entriesOf(policies)) check(rules, ['policies', name, 'rules']);
}
