/**
 * The repository constraint of a grant on the code host (specification, Repository constraint): what is not surely one
 * of the listed repositories is refused.
 */
import { unescapeOnce } from './escapes.ts';
import type { CallAsk, Constraints, JsonValue, Method } from './facts.ts';
import { foldName, parameterNames } from './names.ts';
import { type Spelling, spellingsOf } from './spelling.ts';

/** A refusal names the repositories, as far as the call names any, and says why. */
export type RepositoryRefusal = { violating: string[]; detail: string };

const NAME = /^(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}$/;
const FREE_READS = [/^\/user$/, /^\/rate_limit$/, /^\/user\/repos$/, /^\/orgs\/[A-Za-z0-9._-]{1,100}\/repos$/];
const MAX_NAMED_LENGTH = 400;
/** Parts of a repository that reach into, or become, another one. */
const OUTWARD = new Set(['forks', 'transfer', 'import', 'merge-upstream']);
/** Parts of an issue that are written with the ids of other issues, of any repository, which cannot be judged here. */
const LINKS = new Set(['sub_issues', 'sub_issue', 'dependencies']);
/** What names another side or a new repository in a body, folded. In a query nothing of the kind is documented. */
const NAMING = new Set(['head', 'head_repo', 'owner', 'name'].map(foldName));

/** Whether a REST or git call stays within the listed repositories; undefined when it does. */
export function refuseRepositories(constraints: Constraints, call: CallAsk): RepositoryRefusal | undefined {
  const listed = constraints.repos ?? [];
  const refuse = (detail: string, ...violating: string[]): RepositoryRefusal => ({ violating, detail });
  if (listed.length === 0) return refuse('the grant allows no repository');
  if (/%2f/i.test(call.path)) return refuse('an escaped slash is not taken where repositories are limited');
  if (call.git !== undefined) return refuseGitRepository(listed, call.path);
  if (call.method === 'GET' && FREE_READS.some((form) => form.test(call.path))) return undefined;
  const [, root, owner, repo, , ...rest] = call.path.split('/');
  const spellings = spellingsOf(call.path);
  const isPart = (part: string) => spellings.some((spelling) => spelling[3] === part);
  const creates = creation(call);
  const named = creates !== undefined || isPart('pulls') || isPart('merges') ? namedInQuery(call) : undefined;
  if (named !== undefined) return refuse(`the query must not name \`${named}\` where repositories are limited`, named);
  if (creates !== undefined) {
    if (constraints.allow_repo_creation !== true)
      return refuse('the grant does not allow creating repositories', ...creates.names);
    const { owners } = creates;
    if (owners.length === 0 || !owners.every((one) => listed.some((entry) => same(ownerOf(entry), one)))) {
      return refuse('a repository may be created only under an owner in the list of the grant', ...creates.names);
    }
    if (!creates.fromTemplate) return undefined;
  }
  if (root !== 'repos' || owner === undefined || repo === undefined || !NAME.test(owner) || !NAME.test(repo)) {
    return refuse('the call names no repository, and may reach any; call an endpoint under /repos/<owner>/<repo>');
  }
  const name = `${owner}/${repo}`;
  if (!listed.some((entry) => covers(entry, name)))
    return refuse(`${name} is not in the agent's allowed repositories`, name);
  const outward = outwardPart(call.method, spellings);
  if (outward !== undefined) return refuse(`\`${outward}\` reaches beyond ${name}`, name);
  const foreign = foreignSide(call, isPart, rest, owner, repo);
  return foreign === undefined ? undefined : refuse(`\`${foreign}\` reaches beyond ${name}`, foreign);
}

/** The path of a git request names its repository without `.git`. */
function refuseGitRepository(listed: readonly string[], path: string): RepositoryRefusal | undefined {
  const [, root, owner = '', repo = ''] = path.split('/');
  const name = `${owner}/${repo}`;
  if (root !== 'git' || !NAME.test(owner) || !NAME.test(repo))
    return { violating: [], detail: 'the git request names no repository' };
  if (listed.some((entry) => covers(entry, name))) return undefined;
  return { violating: [name], detail: `${name} is not in the agent's allowed repositories` };
}

/** The entries that lie in both lists: `acme/*` and `ACME/app` have `ACME/app` in common. */
export function intersectRepositories(a: readonly string[], b: readonly string[]): string[] {
  return [
    ...a.filter((entry) => b.some((other) => covers(other, entry))),
    ...b.filter((entry) => a.some((other) => covers(other, entry) && !same(other, entry))),
  ];
}

/** Whether a list entry (`owner/repo` or `owner/*`) covers a repository, or a narrower entry. Letter case is ignored. */
function covers(entry: string, name: string): boolean {
  if (same(entry, name)) return true;
  return entry.endsWith('/*') && entry.indexOf('/') === entry.length - 2 && same(ownerOf(entry), ownerOf(name));
}

function ownerOf(entry: string): string {
  const [owner = ''] = entry.split('/', 1);
  return owner;
}

function same(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}

/** The part of a repository that reaches beyond it, in any spelling of the path. */
function outwardPart(method: Method, spellings: readonly Spelling[]): string | undefined {
  for (const [, , , part, , link] of spellings) {
    if (part !== undefined && OUTWARD.has(part)) return part;
    if (method !== 'GET' && part === 'issues' && link !== undefined && LINKS.has(link)) return link;
  }
  return undefined;
}

/** The first parameter of a call that changes something which names what only a body should; undefined when none does. */
function namedInQuery({ method, query }: CallAsk): string | undefined {
  if (method === 'GET' || query === '') return undefined;
  const names = [...new URLSearchParams(query.replaceAll(';', '&')).keys()];
  return names.find((name) => parameterNames(name).some((one) => NAMING.has(one)));
}

/** The members of a body with that name, in any spelling, without those that are null. */
function membersNamed(call: CallAsk, name: string): JsonValue[] {
  const folded = foldName(name);
  const members = Object.entries(call.body ?? {}).filter(([member]) => foldName(member) === folded);
  return members.flatMap(([, value]) => (value === null ? [] : [value]));
}

/** What a call creates: under an organisation, under whoever the credential is (unknown here), or from a template. */
function creation(call: CallAsk): { owners: string[]; fromTemplate?: true; names: string[] } | undefined {
  if (call.method !== 'POST') return undefined;
  const segments = call.path.slice(1).split('/');
  const name = call.body?.name;
  const labels = (owners: string[]) =>
    typeof name === 'string' && NAME.test(name) ? owners.map((owner) => `${owner}/${name}`) : [];
  const [first, owner = '', last] = segments;
  if (segments.length === 3 && first === 'orgs' && last === 'repos') {
    const owners = NAME.test(owner) ? [owner] : [];
    return { owners, names: labels(owners) };
  }
  if (call.path === '/user/repos') return { owners: [], names: [] };
  if (segments[0] === 'repos' && segments[3] === 'generate') {
    const given = membersNamed(call, 'owner');
    const owners = given.filter((owner) => typeof owner === 'string' && NAME.test(owner)) as string[];
    // One that cannot be read may be anybody.
    return { owners: owners.length < given.length ? [] : owners, fromTemplate: true, names: labels(owners) };
  }
  return undefined;
}

/**
 * The foreign side of a comparison (`compare/main...evil:branch`, `evil:repo:branch`) or of a pull request (`head`,
 * `head_repo`); undefined when both sides are the same repository's.
 */
function foreignSide(
  call: CallAsk,
  isPart: (part: string) => boolean,
  rest: readonly string[],
  owner: string,
  repo: string,
): string | undefined {
  const sides: string[] = [];
  if (isPart('compare') || isPart('dependency-graph'))
    sides.push(...rest.flatMap((s) => unescapeOnce(s).split(/\.{2,3}/)));
  if (isPart('pulls') || isPart('merges')) sides.push(...membersNamed(call, 'head').map(textOf));
  const otherRepo = membersNamed(call, 'head_repo').find((name) => !same(textOf(name), repo));
  if (isPart('pulls') && otherRepo !== undefined) return shorten(textOf(otherRepo));
  const foreign = sides.find((side) => {
    const [name = '', ...more] = side.split(':');
    return more.length > 1 || (more.length === 1 && !same(name, owner));
  });
  return foreign === undefined ? undefined : shorten(foreign);
}

/** What is no text is read as it is sent: an object may have a member `toString`. */
function textOf(value: JsonValue): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** No repository and no branch has a longer name. */
function shorten(text: string): string {
  return text.length > MAX_NAMED_LENGTH ? `${text.slice(0, MAX_NAMED_LENGTH)}…` : text;
}
