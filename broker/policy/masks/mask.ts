/**
 * The masks of rules for the answers of the calls to which they apply: members of JSON, by name or by path, and kinds of values anywhere in it. The masks of
 * all matching rules are combined.
 */
import { VALUE_KINDS, type ValueKind } from '../value-kinds.ts';

/** A mask as it is written in a rule. */
export type MaskSource = {
  // `email`, `*_token`: a name, at any depth. `/contacts/*/notes`: a path, in which `*` is one step and `**` any number.
  members?: readonly string[];
  values?: readonly ValueKind[];
};

/**
 * What is masked in the answer of a call, and the names of the rules that require it. Plain data, so that it can be sent to a worker thread. `isStrict`: an
 * answer in which masking is not possible is withheld; otherwise it is withheld only when it is not JSON and contains such a member, as the platform answers
 * in JSON.
 */
export type Mask = {
  members: readonly string[];
  values: readonly ValueKind[];
  rules: readonly string[];
  isStrict: boolean;
};

/** Merges the masks of rules into one. Undefined when there is none. */
export function maskOf(rules: readonly { name: string; mask?: MaskSource }[]): Mask | undefined {
  const masks = rules.flatMap(({ mask }) => mask ?? []);
  if (masks.length === 0) return undefined;
  const values = new Set(masks.flatMap(({ values = [] }) => values));
  return {
    members: [...new Set(masks.flatMap(({ members = [] }) => members))],
    values: VALUE_KINDS.filter((kind) => values.has(kind)),
    rules: [...new Set(rules.map(({ name }) => name))],
    isStrict: true,
  };
}

/** Returns the problems of a well-formed mask, each with its path in the rule; empty when there are none. */
export function maskProblems({ members, values }: MaskSource): { path: (string | number)[]; message: string }[] {
  if (members === undefined && values === undefined)
    return [{ path: [], message: 'masks nothing: write members, values or both' }];
  const problems: { path: (string | number)[]; message: string }[] = [];
  for (const [i, member] of (members ?? []).entries()) {
    const path = ['members', i];
    if (member.startsWith('/') ? /(?:^\/$|\/\/)/.test(member) : member.trim() === '')
      problems.push({ path, message: 'write a name such as "email", or a path such as "/contacts/*/email"' });
    else if (/^\/.*\/$/s.test(member))
      // The step after it would be a member whose name is empty, which no answer has: the rule would mask nothing.
      problems.push({ path, message: `a path does not end with "/": write "${member.slice(0, -1)}"` });
    else if (!member.startsWith('/') && member.includes('/'))
      problems.push({ path, message: `a path begins with "/": write "/${member}", or "/**/${member}" for any depth` });
  }
  return problems;
}
