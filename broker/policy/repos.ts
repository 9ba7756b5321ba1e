/**
 * The repository constraint of a grant on the code host (specification, Repository constraint): a call is refused unless it certainly stays within the listed
 * repositories.
 */
import { bodyKinds } from './body-kinds.ts';
import { type CallAsk, type Constraints, type JsonObject, readMembers, UnreadBody } from './facts.ts';
import { compilePattern, relate } from './pattern.ts';
import type { Operation, PlatformRules } from './platform-rules.ts';
import { foreignName, isOutwardPath, membersNamed, namedInQuery, outwardPart } from './repo-reach.ts';
import { type Spelling, spellingsOf } from './spelling.ts';

/** A refusal with the repositories that are not allowed, as far as the call names any, and the reason. `unread`: the reason is that the body was not read. */
export type RepositoryRefusal = { violating: string[]; detail: string; unread?: true };

/** The part of a platform's rules that describes bodies of operations. */
type Bodies = Pick<PlatformRules, 'bodies'>;

const NAME = /^(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}$/;
const FREE_READS = [/^\/user$/, /^\/rate_limit$/, /^\/user\/repos$/, /^\/orgs\/[A-Za-z0-9._-]{1,100}\/repos$/];
/** The three paths of governed git (specification, Governed git). */
const GIT = /^\/git\/([^/]+)\/([^/]+)\/(?:info\/refs|git-upload-pack|git-receive-pack)$/;
const patterns = (...texts: string[]) => texts.map((text) => compilePattern(text, 'path'));
/** Patterns that cover the forms above, or more. */
const FREE_PATHS = patterns('/user', '/rate_limit', '/user/repos', '/orgs/*/repos');
export const GIT_PATHS = patterns('/git/*/*/**');
const REPOSITORY_PATHS = [...patterns('/repos/*/*/**'), ...GIT_PATHS];
const CREATION_PATHS = patterns('/orgs/*/repos');
const TEMPLATE_PATHS = patterns('/repos/*/*/generate/**');
/** Suffixes of names that hosts may resolve to another name. */
const ALIAS = /\.(?:git)?$/i;
const OWNER = new Set(['owner']);
const ANYWHERE = 'the call names no repository, and may reach any; call an endpoint under /repos/<owner>/<repo>';
const GRAPHQL =
  'GraphQL cannot be limited to repositories; use REST under /repos/<owner>/<repo>, with gh: "gh api repos/<owner>/<repo>/issues"';

/** Checks that a call, REST or git, stays within the listed repositories; undefined when it does. */
export function refuseRepositories(
  constraints: Constraints,
  call: CallAsk,
  rules: Bodies = { bodies: [] },
): RepositoryRefusal | undefined {
  const listed = constraints.repos ?? [];
  if (listed.length === 0) return refuse('the grant allows no repository');
  if (/%2f/i.test(call.path)) return refuse('an escaped slash is not accepted on a grant with repos');
  if (call.method === 'GET' && FREE_READS.some((form) => form.test(call.path))) return undefined;
  const spellings = spellingsOf(call.path);
  const creates = creation(call);
  if (creates !== undefined && call.body instanceof UnreadBody)
    return { ...refuse(`what would be created is not known, because ${call.body.why}`), unread: true };
  const queried = namedInQuery(call, creates !== undefined);
  if (queried !== undefined)
    return refuse(`the query must not name \`${queried}\` where repositories are limited`, queried);
  if (creates !== undefined) {
    const refused = refuseCreation(constraints, listed, creates);
    if (refused !== undefined || !creates.fromTemplate) return refused;
  }
  return refuseTarget(listed, call, spellings, rules);
}

/** Whether every call of an operation is refused, whichever repository it names. Never returns true when a call could pass. */
export function isNeverInRepositories(
  { repos = [], allow_repo_creation: mayCreate }: Constraints,
  { method, path }: Extract<Operation, { kind: 'http' }>,
): boolean {
  const meets = (paths: typeof FREE_PATHS) => paths.some((one) => relate(one, path) !== 'none');
  if (repos.length === 0) return true;
  if (method === 'GET' && meets(FREE_PATHS)) return false;
  if (method === 'POST' && mayCreate && meets(CREATION_PATHS)) return false;
  if (method === 'POST' && !mayCreate && TEMPLATE_PATHS.some((one) => relate(one, path) === 'all')) return true;
  return !meets(REPOSITORY_PATHS) || isOutwardPath(path);
}

/** Whether an operation can be allowed on a grant that limits repositories. */
export const canBeInRepositories = (operation: Operation): boolean =>
  operation.kind === 'http' && !isNeverInRepositories({ repos: ['*/*'], allow_repo_creation: true }, operation);

/** Returns the entries covered by both lists: `acme/*` and `ACME/app` have `ACME/app` in common. */
export function intersectRepositories(a: readonly string[], b: readonly string[]): string[] {
  return [
    ...a.filter((entry) => b.some((other) => covers(other, entry))),
    ...b.filter((entry) => a.some((other) => covers(other, entry) && !same(other, entry))),
  ];
}

function refuse(detail: string, ...violating: string[]): RepositoryRefusal {
  return { violating, detail };
}

/** Checks the repository of a path, and everything else that the call names. */
function refuseTarget(
  listed: readonly string[],
  call: CallAsk,
  spellings: readonly Spelling[],
  rules: Bodies,
): RepositoryRefusal | undefined {
  const git = gitRepository(call);
  const [, root, owner = '', repo = ''] = git ?? call.path.split('/');
  const isGit = git !== undefined;
  if ((!isGit && (root !== 'repos' || call.git !== undefined)) || !NAME.test(owner) || !NAME.test(repo))
    return refuse(call.path.endsWith('/graphql') ? GRAPHQL : ANYWHERE);
  const name = `${owner}/${repo}`;
  if (!listed.some((entry) => covers(entry, name)) || (isGit && ALIAS.test(repo)))
    return refuse(`${name} is not in the agent's allowed repositories`, name);
  if (isGit) return undefined;
  const outward = outwardPart(spellings);
  if (outward !== undefined) return refuse(`\`${outward}\` reaches beyond ${name}`);
  const calls = call.body instanceof UnreadBody ? namingCalls(call, call.body, rules) : [call];
  if (typeof calls === 'string')
    return { ...refuse(`what else the call names is unknown, because ${calls}`), unread: true };
  for (const one of calls) {
    const foreign = foreignName(one, spellings, [owner, repo]);
    if (foreign !== undefined) return refuse(`\`${foreign}\` reaches beyond ${name}`, foreign);
  }
  return undefined;
}

/**
 * Returns the call with each body in which it may name something, when its own body is not an object; or why that cannot be determined. For an operation that
 * accepts only a text or bytes, an opaque body has no members for a server to read. For an operation that accepts a list, each item is checked.
 */
function namingCalls(call: CallAsk, { why, isOpaque, items }: UnreadBody, rules: Bodies): readonly CallAsk[] | string {
  const kinds = bodyKinds(rules, call);
  if (kinds?.every((kind) => kind === 'text' || kind === 'bytes') && isOpaque) return [{ ...call, body: undefined }];
  if (!kinds?.includes('list') || items === undefined || items.some(Array.isArray)) return why;
  const named = items.filter((item) => typeof item === 'object' && item !== null) as JsonObject[];
  return [{ ...call, body: undefined }, ...named.map((body) => ({ ...call, body }))];
}

/**
 * Returns the segments of a path of governed git: root, owner and repository. The git entry point has removed one `.git` from the name already; for other
 * calls it is removed here. Undefined for other paths.
 */
function gitRepository({ path, git }: CallAsk): readonly ['', 'git', string, string] | undefined {
  const [found, owner = '', given = ''] = GIT.exec(path) ?? [];
  if (found === undefined) return undefined;
  return ['', 'git', owner, git === undefined ? given.replace(/\.git$/, '') : given];
}

/**
 * Returns the repository that a call is about, in lower case, because hosts ignore letter case. `unknown`: the repository has no name yet, or its name is not
 * plain; undefined: the call is about none.
 */
export function repositoryOf(call: CallAsk): { name: string } | 'unknown' | undefined {
  const [, root, owner = '', repo = ''] = gitRepository(call) ?? call.path.split('/');
  if (creation(call) !== undefined) return 'unknown';
  if (root !== 'repos' && root !== 'git') return undefined;
  return NAME.test(owner) && NAME.test(repo) ? { name: `${owner}/${repo}`.toLowerCase() } : 'unknown';
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

type Creation = { owners: string[]; fromTemplate?: true; names: string[] };

function refuseCreation(
  constraints: Constraints,
  listed: readonly string[],
  { owners, names }: Creation,
): RepositoryRefusal | undefined {
  if (constraints.allow_repo_creation !== true)
    return refuse('the grant does not allow creating repositories', ...names);
  const isListed = (owner: string) => listed.some((entry) => same(ownerOf(entry), owner));
  if (owners.length > 0 && owners.every(isListed)) return undefined;
  return refuse('a repository may be created only under an owner in the list of the grant', ...names);
}

/** Returns the repository that a call creates: under an organisation, under the account of the credential (unknown here), or from a template. */
function creation(call: CallAsk): Creation | undefined {
  if (call.method !== 'POST') return undefined;
  const segments = call.path.slice(1).split('/');
  const { name } = readMembers(call);
  const labels = (owners: string[]) =>
    typeof name === 'string' && NAME.test(name) ? owners.map((owner) => `${owner}/${name}`) : [];
  const [first, owner = '', last] = segments;
  if (segments.length === 3 && first === 'orgs' && last === 'repos') {
    const owners = NAME.test(owner) ? [owner] : [];
    return { owners, names: labels(owners) };
  }
  if (call.path === '/user/repos') return { owners: [], names: [] };
  if (isFromTemplate(call)) {
    const given = membersNamed(call, OWNER).map(([, value]) => value);
    const owners = given.flatMap((one) => (typeof one === 'string' && NAME.test(one) ? [one] : []));
    // An owner that cannot be read may be anybody.
    return { owners: owners.length < given.length ? [] : owners, fromTemplate: true, names: labels(owners) };
  }
  return undefined;
}

/** Whether a call creates a repository other than the one in its path. */
export function isFromTemplate({ method, path }: Pick<CallAsk, 'method' | 'path'>): boolean {
  const [, root, , , part] = path.split('/');
  return method === 'POST' && root === 'repos' && part === 'generate';
}
