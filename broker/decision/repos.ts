/**
 * The repository constraint of a grant on the code host (specification, Repository constraint): what is not surely one
 * of the listed repositories is refused.
 */
import { unescapeOnce } from './escapes.ts';
import type { CallAsk, Constraints, JsonValue } from './facts.ts';

/** A refusal names the repositories, as far as the call names any, and says why. */
export type RepositoryRefusal = { violating: string[]; detail: string };

const NAME = /^(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}$/;
const FREE_READS = [/^\/user$/, /^\/rate_limit$/, /^\/user\/repos$/, /^\/orgs\/[A-Za-z0-9._-]{1,100}\/repos$/];
const MAX_NAMED_LENGTH = 400;
/** Parts of a repository that reach into, or become, another one. */
const OUTWARD = new Set(['forks', 'transfer', 'import']);

/** Whether a REST call stays within the listed repositories; undefined when it does. */
export function refuseRepositories(constraints: Constraints, call: CallAsk): RepositoryRefusal | undefined {
  const listed = constraints.repos ?? [];
  const refuse = (detail: string, ...violating: string[]): RepositoryRefusal => ({ violating, detail });
  if (listed.length === 0) return refuse('the grant allows no repository');
  if (/%2f/i.test(call.path)) return refuse('an escaped slash is not taken where repositories are limited');
  if (call.method === 'GET' && FREE_READS.some((form) => form.test(call.path))) return undefined;
  const creates = creation(call);
  if (creates !== undefined) {
    if (constraints.allow_repo_creation !== true)
      return refuse('the grant does not allow creating repositories', ...creates.names);
    if (creates.owner === undefined || !listed.some((entry) => same(ownerOf(entry), creates.owner!))) {
      return refuse('a repository may be created only under an owner in the list of the grant', ...creates.names);
    }
    if (!creates.fromTemplate) return undefined;
  }
  const [, root, owner, repo, part, ...rest] = call.path.split('/');
  if (root !== 'repos' || owner === undefined || repo === undefined || !NAME.test(owner) || !NAME.test(repo)) {
    return refuse('the call names no repository, and may reach any; call an endpoint under /repos/<owner>/<repo>');
  }
  const name = `${owner}/${repo}`;
  if (!listed.some((entry) => covers(entry, name)))
    return refuse(`${name} is not in the agent's allowed repositories`, name);
  if (part !== undefined && OUTWARD.has(part.toLowerCase())) return refuse(`\`${part}\` reaches beyond ${name}`, name);
  const foreign = foreignSide(call, part, rest, owner, repo);
  return foreign === undefined ? undefined : refuse(`\`${foreign}\` reaches beyond ${name}`, foreign);
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
  return entry.split('/', 1)[0]!;
}

function same(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}

/** What a call creates: under an organisation, under whoever the credential is (unknown here), or from a template. */
function creation(call: CallAsk): { owner: string | undefined; fromTemplate?: true; names: string[] } | undefined {
  if (call.method !== 'POST') return undefined;
  const segments = call.path.slice(1).split('/');
  const name = call.body?.name;
  const label = (owner: string) => (typeof name === 'string' && NAME.test(name) ? [`${owner}/${name}`] : []);
  if (segments.length === 3 && segments[0] === 'orgs' && segments[2] === 'repos') {
    const owner = NAME.test(segments[1]!) ? segments[1] : undefined;
    return { owner, names: owner === undefined ? [] : label(owner) };
  }
  if (call.path === '/user/repos') return { owner: undefined, names: [] };
  if (segments[0] === 'repos' && segments[3] === 'generate') {
    const owner = call.body?.owner;
    const known = typeof owner === 'string' && NAME.test(owner);
    return { owner: known ? owner : undefined, fromTemplate: true, names: known ? label(owner) : [] };
  }
  return undefined;
}

/**
 * The foreign side of a comparison (`compare/main...evil:branch`, `evil:repo:branch`) or of a pull request (`head`,
 * `head_repo`); undefined when both sides are the same repository's.
 */
function foreignSide(call: CallAsk, part: string | undefined, rest: readonly string[], owner: string, repo: string) {
  const { head, head_repo: headRepo } = call.body ?? {};
  const sides: string[] = [];
  if (part === 'compare' || part === 'dependency-graph')
    sides.push(...rest.flatMap((s) => unescapeOnce(s).split(/\.{2,3}/)));
  if (part === 'pulls' && head !== undefined && head !== null) sides.push(textOf(head));
  if (part === 'pulls' && headRepo !== undefined && headRepo !== null && !same(textOf(headRepo), repo))
    return shorten(textOf(headRepo));
  const foreign = sides.find((side) => {
    const names = side.split(':');
    return names.length > 2 || (names.length === 2 && !same(names[0]!, owner));
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
