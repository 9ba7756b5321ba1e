/** Checks that calls which several people have to approve can be approved. */
import { approversWarning } from '../config-file/approvers-warning.ts';
import { entriesOf } from '../config-file/governance.ts';
import type { Planning } from './planning.ts';

/** Warns of each rule that needs more people than may decide. */
export function checkApprovers(planning: Planning): void {
  const { guardrails = [], policies } = planning.governance.document;
  const { deciders } = planning;
  const check = (rules: readonly { approvers?: number | undefined }[], path: readonly string[]) =>
    rules.forEach((one, rule) => {
      const message = approversWarning(one, deciders);
      if (message) planning.warnings.push({ path: [...path, rule, 'approvers'], message });
    });
  check(guardrails, ['guardrails']);
  for (const [name, { rules }] of entriesOf(policies)) check(rules, ['policies', name, 'rules']);
}
