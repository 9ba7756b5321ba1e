/** Checks the rules of a governance file that say who decides: channels with buttons, and numbers of approvers. */
import { approversWarning } from '../config-file/approvers-warning.ts';
import { entriesOf } from '../config-file/governance.ts';
import type { Path } from '../config-file/problems.ts';
import { addProblem, type Planning } from './planning.ts';

const WITH_BUTTONS: readonly string[] = ['slack', 'telegram'];

/**
 * Adds a problem for each channel of a rule that does not exist or has no buttons: a call would never get a button there. Warns of each rule that
 * needs more people than may decide.
 */
export function checkDeciding(planning: Planning): void {
  const { guardrails = [], policies, channels } = planning.governance.document;
  const kinds = new Map(
    channels === undefined
      ? planning.present.channels.map(({ name, kind }) => [name, kind])
      : entriesOf(channels).map(([name, { kind }]) => [name, kind]),
  );
  const check = (rules: readonly Deciding[], path: Path) =>
    rules.forEach((rule, index) => {
      const { decide_in: names = [] } = rule;
      names.forEach((name, place) => {
        const kind = kinds.get(name);
        if (kind !== undefined && WITH_BUTTONS.includes(kind)) return;
        const why =
          kind === undefined
            ? 'this channel does not exist'
            : 'this channel has no buttons: only slack and telegram have';
        addProblem(planning, [...path, index, 'decide_in', place], `"${name}": ${why}.`);
      });
      const message = approversWarning(rule, planning.deciders);
      if (message) planning.warnings.push({ path: [...path, index, 'approvers'], message });
    });
  check(guardrails, ['guardrails']);
  for (const [name, { rules }] of entriesOf(policies)) check(rules, ['policies', name, 'rules']);
}

type Deciding = { decide_in?: readonly string[] | undefined; approvers?: number | undefined };
