/** Rules of git that rewrite addresses (`url.<base>.insteadOf`, `pushInsteadOf`): which of them git takes first. */
import type { Setting } from '../mcp/git-config.ts';

/** Whether a setting is such a rule. */
export const isRewrite = ({ name }: Setting): boolean => /\.(?:push)?insteadof$/i.test(name);

/** Whether two settings are one: git writes the last part of a name in small letters. */
export const isSame = (one: Setting, other: Setting): boolean =>
  one.value === other.value && one.name.toLowerCase() === other.name.toLowerCase();

/**
 * Whether git takes this rule before one that is added, for an address of that one: of rules of a kind it takes the longest, and of those of one
 * length the first.
 */
export function goesBefore(rule: Setting, added: readonly Setting[]): boolean {
  return added.some((one) => isRewrite(one) && kindOf(one) === kindOf(rule) && rule.value.startsWith(one.value));
}

const kindOf = ({ name }: Setting): string => name.slice(name.lastIndexOf('.') + 1).toLowerCase();
