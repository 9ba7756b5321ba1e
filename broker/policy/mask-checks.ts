/** Whether what a call is answered can be masked as its rules say. */
import { visit } from 'graphql/language';
import { readMembers } from './call-ask.ts';
import type { Rule } from './facts.ts';
import { readGraphqlCall } from './graphql.ts';
import { isGraphql } from './operation.ts';
import type { Question } from './rule-selection.ts';

/**
 * Why not, in a sentence for the agent; undefined: it can be.
 *
 * @param masking the rules that mask, at least one
 */
export function whyNotMasked(masking: readonly Rule[], { ask: { call }, platform }: Question): string | undefined {
  if (call === undefined) return undefined;
  if (call.git !== undefined) return 'nothing can be masked in what git answers';
  const namesMembers = masking.some(({ mask }) => mask?.members !== undefined);
  if (!namesMembers || platform === undefined || !isGraphql(platform, call)) return undefined;
  const read = readGraphqlCall(readMembers(call));
  if (read.kind !== 'read') return undefined;
  let alias: string | undefined;
  visit(read.document, {
    Field: ({ alias: named, name }) => {
      if (named !== undefined && named.value !== name.value) alias ??= named.value;
    },
  });
  return alias === undefined
    ? undefined
    : `members of what comes back are masked by name, and the document gives fields other names (${alias.slice(0, 64)}: …): leave such aliases out`;
}
