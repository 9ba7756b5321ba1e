/**
 * Detects where a call under `/repos/<owner>/<repo>` reaches beyond that repository: paths that concern other repositories, the foreign side of a comparison
 * or of a pull request, and ids, which identify objects of any repository. Source: GitHub's REST API description (octokit/openapi-types 29).
 */

import { type CallAsk, type JsonValue, readMembers } from './facts.ts';
import { foldName, parameterNames, queryParameters } from './names.ts';
import { compilePattern, type Pattern, relate } from './pattern.ts';
import { walkPointer } from './pointer.ts';
import { type Spelling, unescapeToFixedPoint } from './spelling.ts';

const MAX_NAMED_LENGTH = 400;
const folded = (names: string): ReadonlySet<string> => new Set(names.split(/\s+/).map(foldName));

/** Paths of a repository that affect or create another one, and whose answers contain content of others. */
const BEYOND = [
  'forks/**',
  'transfer/**',
  'import/**',
  'merge-upstream/**',
  // Links between issues use ids, and read or write issues of any repository.
  'issues/*/sub_issue/**',
  'issues/*/sub_issues/**',
  'issues/*/dependencies/**',
  'issues/*/parent/**',
  'issues/*/timeline/**',
  // Writes to the head's repository, which the call does not name.
  'pulls/*/update-branch',
  'pulls/*/codespaces',
  'codespaces',
  'code-scanning/codeql/variant-analyses/**',
  'security-advisories/*/forks',
].map((text) => {
  const parts = text.split('/').filter((part) => part !== '**');
  const path = compilePattern(`/repos/*/*/${text}`, 'path');
  return { parts, name: parts.at(-1) ?? text, isOpen: text.endsWith('/**'), path };
});
/** `repos`, owner and name. */
const BEFORE_PARTS = 3;

/** Paths of a repository whose segments name branches, tags or commits. */
const NAMES_REFS = new Set('branches commits compare dependency-graph git statuses tarball zipball'.split(' '));
/** Members that name a branch; `owner:branch` is one of a fork. In the query of a read these are filters. */
const SIDES = folded('head base ref');
const READ_REFS = folded('ref sha');
const WRITTEN_REFS = folded('ref sha base');
/** Members that identify issues or repositories by ids, or several repositories at once. */
const OTHERS = folded(
  `duplicate_issue_id issue_id parent_issue_id sub_issue_id repository_id repository_ids selected_repository_ids
  repositories repository_lists repository_owners`,
);
const NEW_REPOSITORY = folded('owner name');
const HEAD_REPO = folded('head_repo');
/** Members of a pull request or a merge. */
const HEAD = folded('head head_repo');
/** Creates a fork for a security advisory. */
const PRIVATE_FORK = folded('start_private_fork');
/** The member of a task for the platform's own agent. */
const AGENT_TASK = folded('agent_assignment');
/** The path to a workflow that a ruleset requires: the workflow may be in any repository. */
const RULESET_WORKFLOW = ['rules', 'parameters', 'workflows', 'repository_id'].map(foldName);
const RULES = folded('rules');
const NAMED_IN_BODY = [HEAD, OTHERS, PRIVATE_FORK, AGENT_TASK, RULES];

/** Returns the path below a repository that reaches beyond it, in any spelling; undefined when there is none. */
export function outwardPart(spellings: readonly Spelling[]): string | undefined {
  const isUnder = (spelling: Spelling, { parts, isOpen }: (typeof BEYOND)[number]) =>
    parts.every((part, i) => {
      const segment = spelling[BEFORE_PARTS + i];
      return part === '*' ? segment !== undefined : part === segment;
    }) &&
    (isOpen || spelling.length === BEFORE_PARTS + parts.length);
  return BEYOND.find((one) => spellings.some((spelling) => isUnder(spelling, one)))?.name;
}

/** Whether everything under a path reaches beyond its repository. */
export const isOutwardPath = (path: Pattern): boolean => BEYOND.some((one) => relate(one.path, path) === 'all');

/** Returns the first query parameter of a write that names a member of the body; undefined when there is none. `creates`: the call creates a repository. */
export function namedInQuery({ method, query }: CallAsk, creates: boolean): string | undefined {
  if (method === 'GET') return undefined;
  const lists = creates ? [...NAMED_IN_BODY, NEW_REPOSITORY] : NAMED_IN_BODY;
  return queryParameters(query).find(([name]) =>
    // `a.b` is `b` of `a` on some servers, and a single name on others.
    [name, name.split('.', 1)[0] ?? ''].some((text) =>
      parameterNames(text).some((one) => lists.some((list) => list.has(one))),
    ),
  )?.[0];
}

/** Returns what, other than the path, names something outside of a repository: a foreign side, an id. Undefined when nothing does. */
export function foreignName(
  call: CallAsk,
  spellings: readonly Spelling[],
  [owner, repo]: readonly [owner: string, repo: string],
): string | undefined {
  const namesRefs = spellings.some((spelling) => NAMES_REFS.has(spelling[BEFORE_PARTS] ?? ''));
  const parts = namesRefs ? call.path.split('/').slice(5).flatMap(readings) : [];
  const found =
    membersNamed(call, OTHERS).map(([name]) => name)[0] ??
    membersNamed(call, PRIVATE_FORK).find(([, value]) => value !== false)?.[0] ??
    workflowElsewhere(call) ??
    otherRepository(call, owner, repo) ??
    [...parts, ...sidesNamed(call)].flatMap((text) => text.split(/\.{2,3}/)).find((side) => isForeign(side, owner));
  return found === undefined ? undefined : shorten(found);
}

/** Returns the members of a body with one of these names, in any spelling, except those that are null. */
export function membersNamed(call: CallAsk, names: ReadonlySet<string>): [string, JsonValue][] {
  return Object.entries(readMembers(call)).filter(([member, value]) => value !== null && names.has(foldName(member)));
}

function sidesNamed(call: CallAsk): string[] {
  const named = membersNamed(call, SIDES).map(([, value]) => textOf(value));
  const names = call.method === 'GET' ? READ_REFS : WRITTEN_REFS;
  const asked = queryParameters(call.query).filter(([name]) => parameterNames(name).some((one) => names.has(one)));
  return [...named, ...asked.map(([, value]) => value)];
}

/** Returns the repository of a pull request's head, or of a task for the platform's own agent, when it is another one. */
function otherRepository(call: CallAsk, owner: string, repo: string): string | undefined {
  const isOwn = (name: string) => [repo, `${owner}/${repo}`].some((one) => one.toLowerCase() === name.toLowerCase());
  const named = membersNamed(call, HEAD_REPO).map(([, value]) => textOf(value));
  const note = (value: JsonValue) => named.push(textOf(value));
  walkPointer(readMembers(call), ['agent_assignment', 'target_repo'].map(foldName), { value: note, deadEnd: () => {} });
  return named.find((name) => !isOwn(name));
}

/** Returns the member of a ruleset that names a repository by an id, which may be that of any repository. */
function workflowElsewhere(call: CallAsk): string | undefined {
  let isNamed = false;
  const note = () => {
    isNamed = true;
  };
  walkPointer(readMembers(call), RULESET_WORKFLOW, { value: note, deadEnd: () => {} });
  return isNamed ? 'repository_id' : undefined;
}

/** `owner:branch` and `owner:repo:branch` belong to another repository, except for the former with the same owner. */
function isForeign(side: string, owner: string): boolean {
  const [name = '', ...more] = side.split(':');
  return more.length > 1 || (more.length === 1 && name.toLowerCase() !== owner.toLowerCase());
}

/** Returns a text as it is, and after each round of unescaping. */
function readings(text: string): string[] {
  return [text, ...(unescapeToFixedPoint(text) ?? [])];
}

/** Converts a value that is not a text as it is sent, and not with `String`: an object may have a member `toString`. */
function textOf(value: JsonValue): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Bounds a text: no name of a repository or branch is longer. */
function shorten(text: string): string {
  return text.length > MAX_NAMED_LENGTH ? `${text.slice(0, MAX_NAMED_LENGTH)}…` : text;
}
