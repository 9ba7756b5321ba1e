/** Checks that the channels in which rules allow buttons to decide exist, and support buttons. */
import { entriesOf } from '../config-file/governance.ts';
import { addProblem, type Planning } from './planning.ts';

const WITH_BUTTONS: readonly string[] = ['slack', 'telegram'];

/** Adds a problem for each channel that does not: a rule with such a name would never get a button. */
export function checkDecideIn(planning: Planning): void {
  const { guardrails, policies, channels } = planning.governance.document;
  const kinds = new Map(
    channels === undefined
      ? planning.present.channels.map(({ name, kind }) => [name, kind])
      : entriesOf(channels).map(([name, { kind }]) => [name, kind]),
  );
  const check = (rules: readonly { decide_in?: readonly string[] | undefined }[], path: readonly string[]) =>
    rules.forEach(({ decide_in: names = [] }, rule) => {
      names.forEach((name, place) => {
        const kind = kinds.get(name);
        if (kind !== undefined && WITH_BUTTONS.includes(kind)) return;
        const why =
          kind === undefined
            ? 'this channel does not exist'
            : 'this channel has no buttons: only slack and telegram have';
        addProblem(planning, [...path, rule, 'decide_in', place], `"${name}": ${why}.`);
      });
    });
  if (guardrails) check(guardrails, ['guardrails']);
  for (const [name, { rules }] of entriesOf(policies)) check(rules, ['policies', name, 'rules']);
}
