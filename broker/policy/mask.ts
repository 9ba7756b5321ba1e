/**
 * What rules mask in the answers of the calls that they are about: members of JSON, by name or by path, and kinds of values wherever they
 * stand. All masks of all rules that match apply together.
 */
import { VALUE_KINDS, type ValueKind } from './value-kinds.ts';

/** As it is written in a rule. */
export type MaskSource = {
  // `email`, `*_token`: a name, at any depth. `/contacts/*/notes`: a path, in which `*` is one step and `**` any number.
  members?: readonly string[];
  values?: readonly ValueKind[];
};

/**
 * What is masked in the answer of a call, and the names of the rules that say so. Plain data, which a thread can be given. `isStrict`: an answer in
 * which it cannot be told is withheld; otherwise only one that is no JSON and has such a member in it, as the platform answers in JSON.
 */
export type Mask = {
  members: readonly string[];
  values: readonly ValueKind[];
  rules: readonly string[];
  isStrict: boolean;
};

/** The masks of rules as one. Undefined: there is none. */
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

/** What is wrong with a mask of the right form, each with its path in the rule; empty when nothing is. */
export function maskProblems({ members, values }: MaskSource): { path: (string | number)[]; message: string }[] {
  if (members === undefined && values === undefined)
    return [{ path: [], message: 'masks nothing: write members, values or both' }];
  const problems: { path: (string | number)[]; message: string }[] = [];
  for (const [i, member] of (members ?? []).entries()) {
    const path = ['members', i];
    if (member.startsWith('/') ? /(?:^\/$|\/\/)/.test(member) : member.trim() === '')
      problems.push({ path, message: 'write a name such as "email", or a path such as "/contacts/*/email"' });
    else if (!member.startsWith('/') && member.includes('/'))
      problems.push({ path, message: `a path begins with "/": write "/${member}", or "/**/${member}" for any depth` });
  }
  return problems;
}
