/** Which recipient rules of a platform a call falls under, and what their pointers point into. */
import { type CallAsk, readMembers } from './facts.ts';
import { readGraphqlCall } from './graphql.ts';
import { argumentsOf } from './graphql-arguments.ts';
import { parameterNames } from './names.ts';
import { isGraphql, namesCall } from './operation.ts';
import type { PlatformRules, RecipientMatch, RecipientRule } from './platform-rules.ts';
import { pointerNames } from './pointer.ts';
import { spellingsOf } from './spelling.ts';

/**
 * The recipient rules that a call falls under, each with the value its pointers point into: the body, and for GraphQL
 * the root field's arguments. Where an API also takes the same member in the query string (Slack does), that is one more
 * match. A call that `classify` refuses has none. Of a body that was not read there are no members.
 */
export function recipientRulesFor(rules: PlatformRules, call: CallAsk): readonly RecipientMatch[] {
  if (rules.recipients.length === 0) return [];
  if (isGraphql(rules, call)) return graphqlRecipients(rules, call);
  const body = readMembers(call);
  const spellings = spellingsOf(call.path);
  return rules.recipients
    .filter(({ operation }) => namesCall(operation, rules, call, spellings))
    .flatMap((rule) => [{ ...rule, subject: body }, ...queryRecipients(rule, call.query)]);
}

function graphqlRecipients(rules: PlatformRules, call: CallAsk): RecipientMatch[] {
  const read = readGraphqlCall(readMembers(call));
  if (read.kind !== 'read') return [];
  return rules.recipients.flatMap((rule) => {
    const { operation } = rule;
    if (operation.kind !== 'graphql' || operation.operation !== read.operation) return [];
    const roots = read.roots.filter((root) => operation.field.matches(root.name.value));
    return roots.map((root) => ({ ...rule, subject: argumentsOf(root, read.definition, read.variables) }));
  });
}

/** `?channel=C1` and `?to[]=a` beside a body that also names recipients: each value is judged, as it stands. */
function queryRecipients(rule: RecipientRule, query: string): RecipientMatch[] {
  if (query === '') return [];
  const pairs = [...new URLSearchParams(query)];
  // Some servers take `;` for `&` (HTML 4.01, B.2.2): both readings are judged.
  if (query.includes(';')) pairs.push(...new URLSearchParams(query.replaceAll(';', '&')));
  return pairs.flatMap(([name, value]) => {
    // `to.email` is a member of `to` to some readers, and one name to others.
    const [root = ''] = name.split('.', 1);
    const names = [...parameterNames(name), ...parameterNames(root)];
    const here = rule.pointers.filter(({ pointer }) => names.includes(pointerNames(pointer)[0] ?? ''));
    if (here.length === 0) return [];
    const [member = ''] = name.split(/[[.]/, 1);
    const place = `/${member.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    const pointers = here.map((pointer) => ({ ...pointer, pointer: place }));
    return [{ ...rule, pointers, subject: { [member]: value } }];
  });
}
