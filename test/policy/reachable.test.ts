/** Scopes under which the constraints of a grant refuse every call, compared with the checks that refuse the calls. */
import { describe, expect, test } from 'vitest';
import { github } from '../../broker/platforms/builtin/github.ts';
import { accessTo } from '../../broker/policy/access.ts';
import type { CallAsk, Constraints, Facts, JsonObject } from '../../broker/policy/facts.ts';
import { classify, compilePlatformRules } from '../../broker/policy/operation.ts';
import { effectivePermissions } from '../../broker/policy/permissions.ts';
import type { Operation } from '../../broker/policy/platform-rules.ts';
import { refuseRefs } from '../../broker/policy/refs/refs.ts';
import { isNeverInRepositories, refuseRepositories } from '../../broker/policy/repos.ts';
import { agent, facts, grant, NOW, parent } from './world.ts';

const RULES = compilePlatformRules(github);
const LIMITS: Constraints[] = [
  { repos: ['acme/*'] },
  { repos: ['acme/*'], allow_repo_creation: true },
  { repos: [] },
  { repos: ['acme/app'], refs: ['agent/*'], ref_changes: ['create', 'update'] },
  { refs: ['agent/*'] },
  { refs: [] },
  { ref_changes: ['create'] },
];
const BODIES: (JsonObject | undefined)[] = [
  undefined,
  { owner: 'acme', name: 'new' },
  { branch: 'agent/x', base: 'agent/x', tag_name: 'v1', ref: 'refs/heads/agent/x', draft: true, new_name: 'agent/y' },
  { ref: 'agent/x', auto_merge: false },
];

/** Calls of an operation, in the repository `acme/app` and on the branch `agent/x` where its path has wildcards for them. */
function callsOf(operation: Operation): CallAsk[] {
  if (operation.kind !== 'http') return [];
  const names = ['acme', 'app'];
  const path = operation.path.source.replaceAll(/\*+/g, (star) => names.shift() ?? (star === '*' ? '1' : 'agent/x'));
  const paths = [path, path.replace('agent/x', 'heads/agent/x')];
  const { method } = operation;
  const calls = paths.flatMap((one) => BODIES.map((body) => ({ method, path: one, query: '', headers: {}, body })));
  const service = path.endsWith('receive-pack') ? 'git-receive-pack' : 'git-upload-pack';
  const refs = service === 'git-receive-pack' ? [{ name: 'refs/heads/agent/x', action: 'create' as const }] : [];
  return path.startsWith('/git/') ? calls.map((call) => ({ ...call, git: { service, refs } })) : calls;
}

const passes = (limits: Constraints, call: CallAsk) =>
  (limits.repos === undefined || refuseRepositories(limits, call, RULES) === undefined) &&
  refuseRefs(limits, RULES, call) === undefined;

/** All scopes under which a call may fall. */
const CLASSIFIED = [...new Map([...RULES.scopes.values()].flat().map((one) => [one.source, one])).values()]
  .flatMap(callsOf)
  .flatMap((call) => {
    const found = classify(RULES, call);
    return found.kind === 'classified' ? [{ call, scopes: found.scopes }] : [];
  });
const refusedBy = (limits: Constraints) => [...RULES.scopes.keys()].filter((one) => !RULES.isReachable(one, limits));

test.each(LIMITS)('no scope is unreachable under which a call stays within %j', (limits) => {
  const refused = new Set(refusedBy(limits));
  const wrong = CLASSIFIED.filter(({ call, scopes }) => scopes.some((one) => refused.has(one)) && passes(limits, call));
  expect(wrong.map(({ call }) => `${call.method} ${call.path}`)).toEqual([]);
});

test.each(LIMITS.slice(0, 4))('every other scope has a call that stays within %j', (limits) => {
  const passing = new Set(CLASSIFIED.flatMap(({ call, scopes }) => (passes(limits, call) ? scopes : [])));
  expect(refusedBy(limits)).toEqual([...RULES.scopes.keys()].filter((one) => !passing.has(one)));
});

test.each(LIMITS.slice(0, 4))('no operation is always refused by which a call stays within %j', (limits) => {
  const operations = [...RULES.scopes.values()].flat();
  const wrong = operations.filter(
    (one) =>
      one.kind === 'http' &&
      isNeverInRepositories(limits, one) &&
      callsOf(one).some((call) => refuseRepositories(limits, call, RULES) === undefined),
  );
  expect(wrong.map(({ source }) => source)).toEqual([]);
});

test('only constraints on repositories and refs make scopes unreachable, and only scopes of the manifest', () => {
  expect(refusedBy({ recipients: [] })).toEqual([]);
  expect(refusedBy({ ref_changes: ['create', 'update', 'delete'] })).toEqual([]);
  expect(RULES.isReachable('codehost:elsewhere', { repos: [] })).toBe(true);
});

const [SEARCH, GRAPHQL, ISSUES] = ['codehost:search.read', 'codehost:graphql.read', 'codehost:issues.read'];
const REPOS = { repos: ['acme/*'] };
const platform = { ...facts().platform!, platformId: 'codehost', rules: RULES };
const on = (constraints: Constraints, scopes = [SEARCH, GRAPHQL, ISSUES]) =>
  facts({ platform, grants: [grant({ platformId: 'codehost', scopes, constraints })] });
const access = (given: Facts, scope: string) => accessTo(given, { platformId: 'codehost', scope }, NOW);

describe('what a constrained grant offers', () => {
  test('permissions omit the scopes under which every call is refused, and keep the others', () => {
    expect(effectivePermissions([on(REPOS)], NOW)).toMatchObject([
      { scopes: [ISSUES], connections: [{ scopes: [ISSUES] }] },
    ]);
    expect(effectivePermissions([on({})], NOW)[0]?.scopes).toEqual([GRAPHQL, ISSUES, SEARCH]);
    expect(effectivePermissions([on(REPOS, [SEARCH])], NOW)).toEqual([]);
  });

  test('an access request for such a scope is refused with the reason, whether the scope is granted or not', () => {
    const detail = `the limits of the grant (repos) refuse every call under "${SEARCH}"; an owner would have to change them`;
    expect(access(on(REPOS), SEARCH)).toEqual({ kind: 'refused', detail });
    expect(access(on(REPOS, [ISSUES]), SEARCH)).toEqual({ kind: 'refused', detail });
    expect(access(on(REPOS), ISSUES)).toMatchObject({ kind: 'usable' });
    expect(access(on(REPOS, [SEARCH]), ISSUES)).toMatchObject({ kind: 'missing', reason: 'not_granted' });
    expect(access(on({}, [ISSUES]), SEARCH)).toMatchObject({ kind: 'missing', reason: 'not_granted' });
    expect(access({ ...on({}), grants: [] }, SEARCH)).toMatchObject({ kind: 'missing', reason: 'not_granted' });
  });

  test('the constraints of a parent apply to its child', () => {
    const theirs = on(REPOS).grants;
    const child = { ...on({}), agent: agent({ parent: parent({ grants: theirs }) }) };
    expect(effectivePermissions([child], NOW)).toMatchObject([{ scopes: [ISSUES] }]);
    expect(access(child, SEARCH)).toMatchObject({ kind: 'refused', detail: expect.stringContaining('(repos)') });
  });
});
