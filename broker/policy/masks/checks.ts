/** Computes what is masked in the answer of a call, by the rules and by the platform's manifest; or why it cannot be masked. */
import { type DocumentNode, visit } from 'graphql/language';
import { readMembers } from '../call-ask.ts';
import type { Rule } from '../facts.ts';
import { readGraphqlCall } from '../graphql/call.ts';
import { isGraphql } from '../operation.ts';
import type { Question } from '../rules/selection.ts';
import { type Mask, maskOf } from './mask.ts';
import { memberMask } from './members.ts';

/**
 * Returns why a part cannot be masked, in a sentence for the agent; undefined when everything can be masked.
 *
 * @param masking the rules that mask, at least one
 */
export function whyNotMasked(masking: readonly Rule[], question: Question): string | undefined {
  if (question.ask.call?.git !== undefined) return 'nothing can be masked in what git answers';
  const hasPaths = masking.some(({ mask }) => mask?.members?.some((member) => member.startsWith('/')));
  const document = hasPaths ? documentOf(question) : undefined;
  const [alias] = document ? aliasesIn(document) : [];
  if (alias === undefined) return undefined;
  return `members of what comes back are masked by their path, and the document gives fields other names (${alias.as.slice(0, 64)}: …): leave such aliases out`;
}

/** Returns what is masked by these rules and by the manifest's entry for the operation. Undefined when nothing is. */
export function maskOfCall(masking: readonly Rule[], question: Question): Mask | undefined {
  const document = documentOf(question);
  // Aliases change the paths of fields, so for a GraphQL document the last step is masked at any depth.
  const members = membersOfPlatform(question).map((member) => (document ? lastStep(member) : member));
  const rules = members.length === 0 ? masking : [...masking, { name: 'platform', mask: { members } }];
  const all = maskOf(rules);
  const mask = all && { ...all, isStrict: masking.length > 0 };
  if (mask === undefined || mask.members.length === 0) return mask;
  return document ? { ...mask, members: [...mask.members, ...otherNames(mask.members, document)] } : mask;
}

/** Matches the path in any spelling that a server may read alike. */
function membersOfPlatform({ platform, ask: { call }, spellings }: Question): readonly string[] {
  if (platform === undefined || call === undefined || platform.masks.length === 0) return NONE;
  return platform.masks.flatMap(({ operation, members }) => {
    if (operation.kind === 'graphql') return isGraphql(platform, call) ? members : [];
    if (operation.kind === 'tool')
      return call.path.startsWith(TOOLS) && operation.name.matches(call.path.slice(TOOLS.length)) ? members : [];
    return operation.method === call.method && operation.path.matchesAnySpelling(call.path, spellings()) ? members : [];
  });
}

const lastStep = (member: string): string => member.slice(member.lastIndexOf('/') + 1);

const NONE: readonly string[] = Object.freeze([]);
const TOOLS = '/tools/';

/** Returns the document of a GraphQL call; undefined for another call, or when it cannot be read. */
function documentOf({ platform, ask: { call } }: Question): DocumentNode | undefined {
  if (platform === undefined || call === undefined || !isGraphql(platform, call)) return undefined;
  const read = readGraphqlCall(readMembers(call));
  return read.kind === 'read' ? read.document : undefined;
}

/** Returns the aliases under which a document returns fields that are masked. */
function otherNames(members: readonly string[], document: DocumentNode): string[] {
  const mask = memberMask(members.filter((member) => !member.startsWith('/')));
  return mask ? aliasesIn(document).flatMap(({ field, as }) => (mask.isNamed(field) ? [as] : [])) : [];
}

function aliasesIn(document: DocumentNode): { field: string; as: string }[] {
  const found: { field: string; as: string }[] = [];
  visit(document, {
    Field: ({ alias, name }) => {
      if (alias !== undefined && alias.value !== name.value) found.push({ field: name.value, as: alias.value });
    },
  });
  return found;
}
