/**
 * Repository and ref constraints, tested against models of servers that are more lenient than any platform: no such server reaches a repository or ref
 * outside of the lists by an allowed call. And no child reaches more than its parent.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { attenuate } from '../../broker/policy/attenuation.ts';
import {
  type CallAsk,
  type Constraints,
  type GitRef,
  type JsonObject,
  METHODS,
  REF_CHANGES,
  readMembers,
} from '../../broker/policy/facts.ts';
import { intersectRefs, matchesRef } from '../../broker/policy/refs/patterns.ts';
import { refuseRefs } from '../../broker/policy/refs/refs.ts';
import { refuseRepositories } from '../../broker/policy/repos.ts';
import { rulesOf } from '../platforms/classified.ts';
import { sized } from '../world/runner/thorough.ts';
import { some } from './arbitraries.ts';
import { grant } from './world.ts';

const RULES = rulesOf('github');
const RUNS = { numRuns: Number(process.env.REACHES ?? sized(2_500, 20_000)) };

const owner = some('acme', 'ACME', 'evil', 'tools', 'acme.', 'acme%20', 'ac;me', '..', 'x:y');
const repo = some('app', 'App', 'other', 'app.git', 'app.git.git', 'app.', 'app%20', 'new', '');
const branch = some(
  'main',
  'agent/x',
  'agent/y',
  'Agent/x',
  'agent',
  'agent/x/y',
  'heads/main',
  'refs/heads/main',
  'agent/..',
  '',
);
const tag = some('v1', 'v2', 'agent/x', 'refs/tags/v1', 'x');
const side = some('main', 'agent/x', 'acme:main', 'evil:main', 'evil:app:main', 'ACME:agent/x');
const escaped = (text: fc.Arbitrary<string>) =>
  fc
    .tuple(text, fc.nat(4))
    .map(([one, how]) => (how === 0 ? one.replaceAll('/', '%2F') : how === 1 ? one.replaceAll(':', '%3A') : one));
const part = fc.oneof(
  some(
    '',
    '/',
    '/issues',
    '/issues/1',
    '/issues/1/sub_issues',
    '/issues/1/Timeline',
    '/contents/a.md',
    '/pulls',
    '/pulls/1/merge',
    '/pulls/1/update-branch',
    '/pulls/1/Update-Branch/',
    '/forks',
    '/Forks',
    '/transfer',
    '/import',
    '/generate',
    '/merges',
    '/merge-upstream.json',
    '/releases',
    '/releases/1',
    '/deployments',
    '/git/refs',
    '/git/blobs',
    '/dispatches',
    '/code-scanning/codeql/variant-analyses',
  ),
  fc
    .tuple(
      some('/compare/', '/Compare/', '/dependency-graph/compare/'),
      escaped(side),
      some('..', '...'),
      escaped(side),
    )
    .map((all) => all.join('')),
  fc.tuple(some('/commits/', '/git/trees/', '/tarball/'), escaped(side)).map((all) => all.join('')),
  fc
    .tuple(
      some('/git/refs/heads/', '/git/refs/tags/', '/git/refs/', '/Git/Refs/heads/'),
      escaped(branch),
      some('', '', '/', '.json', ';x'),
    )
    .map((all) => all.join('')),
  fc
    .tuple(fc.constant('/branches/'), escaped(branch), some('/rename', '/Rename', '/rename/', '/rename.json'))
    .map((all) => all.join('')),
);
const path = fc.oneof(
  {
    weight: 8,
    arbitrary: fc
      .tuple(some('/repos/', '/repos/', '/repos/', '/Repos/'), owner, repo, part)
      .map(([root, o, r, p]) => `${root}${o}/${r}${p}`),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(owner, repo, some('/info/refs', '/git-upload-pack', '/git-receive-pack', '/HEAD'))
      .map(([o, r, p]) => `/git/${o}/${r}${p}`),
  },
  { weight: 1, arbitrary: owner.map((o) => `/orgs/${o}/repos`) },
  {
    weight: 1,
    arbitrary: some(
      '/user',
      '/user/repos',
      '/user/repos/',
      '/rate_limit',
      '/repositories/42',
      '/search/code',
      '/gists',
      '/graphql',
      '/issues',
      '/networks/acme/app/events',
      '/users/acme/repos',
    ),
  },
);
const member = some(
  'branch',
  'Branch',
  'ref',
  'base',
  'head',
  'HEAD',
  'head_repo',
  'headRepo',
  'owner',
  'name',
  'new_name',
  'tag_name',
  'Tag_Name',
  'duplicate_issue_id',
);
const value = fc.oneof(branch, side, tag, some('app', 'acme/app', 'evil', 'other'));
const body = fc.option(
  fc.dictionary(
    member,
    fc.oneof(
      { weight: 6, arbitrary: value },
      { weight: 1, arbitrary: fc.constant(null) },
      { weight: 1, arbitrary: fc.array(value, { maxLength: 2 }) },
    ),
  ) as fc.Arbitrary<JsonObject>,
  { nil: undefined },
);
const query = fc.oneof(
  { weight: 3, arbitrary: fc.constant('') },
  { weight: 1, arbitrary: fc.tuple(member, value).map(([name, one]) => `${name}=${encodeURIComponent(one)}`) },
);
const calls: fc.Arbitrary<CallAsk> = fc.record({
  method: some(...METHODS),
  path,
  query,
  headers: fc.constant({}),
  body,
});

/** Calls that write refs, most of them valid except for one member. */
const OPERATIONS: [CallAsk['method'], path: string, member?: string][] = [
  ['PUT', '/contents/a.md', 'branch'],
  ['DELETE', '/contents/a.md', 'branch'],
  ['POST', '/git/refs', 'ref'],
  ['PATCH', '/git/refs/heads/BRANCH'],
  ['DELETE', '/git/refs/BRANCH'],
  ['POST', '/branches/BRANCH/rename', 'new_name'],
  ['POST', '/merges', 'base'],
  ['POST', '/releases', 'tag_name'],
  ['PATCH', '/releases/1', 'tag_name'],
  ['POST', '/deployments', 'ref'],
];
const writes: fc.Arbitrary<CallAsk> = fc
  .record({
    operation: some(...OPERATIONS),
    at: escaped(fc.oneof(branch, some('heads/agent/x', 'heads/x', 'agent'))),
    end: some('', '', '', '/', '.json', ';x'),
    value: fc.oneof(branch, tag, some('refs/heads/agent/x', 'refs/tags/v1', 'agent/z', 'x/x', 'heads/x')),
    spelling: some('exact', 'exact', 'exact', 'other', 'none'),
    body,
    query,
  })
  .map(({ operation: [method, template, member], at, end, value, spelling, body: rest, query: asked }) => ({
    method,
    path: `/repos/acme/app${template.replace('BRANCH', at)}${end}`,
    query: asked,
    headers: {},
    body:
      member === undefined || spelling === 'none'
        ? rest
        : { ...(asked === '' ? {} : rest), [spelling === 'exact' ? member : member.toUpperCase()]: value },
  }));

const repos = fc.subarray(['acme/app', 'ACME/*', 'tools/*', 'tools/app', 'evil/other']);
const patterns = fc.array(
  some(
    'agent/*',
    'agent/**',
    'agent/x',
    'a*',
    '*/x',
    '**',
    'main',
    'refs/tags/v*',
    'refs/tags/**',
    'refs/heads/agent/y',
  ),
  { maxLength: 3 },
);
const changes = fc.subarray([...REF_CHANGES]);
const constraints: fc.Arbitrary<Constraints> = fc
  .record({
    repos: fc.option(repos, { nil: undefined, freq: 2 }),
    allow_repo_creation: fc.boolean(),
    refs: fc.option(patterns, { nil: undefined, freq: 2 }),
    ref_changes: fc.option(changes, { nil: undefined, freq: 2 }),
  })
  .map((all) => Object.fromEntries(Object.entries(all).filter(([, one]) => one !== undefined)));
const pushed: fc.Arbitrary<GitRef[]> = fc.array(
  fc.record({
    name: fc.oneof(
      fc.tuple(some('refs/heads/', 'refs/tags/', 'refs/', ''), fc.oneof(branch, tag)).map((all) => all.join('')),
      some('HEAD', 'refs/notes/x', 'refs/for/main'),
    ),
    action: some(...REF_CHANGES),
  }),
  { maxLength: 3 },
);

/** All readings of a path by a careless server: decoded twice, in lower case, without parameters, trailing dots and slashes. */
const loosely = (text: string): string[] => {
  const decode = (one: string) =>
    one.replace(/%[0-9A-F]{2}/gi, (hex) => String.fromCharCode(Number.parseInt(hex.slice(1), 16)));
  return decode(decode(text))
    .toLowerCase()
    .split('/')
    .slice(1)
    .map((segment) => segment.replace(/;.*$/, '').trim());
};
const membersLike = ({ body: given = {}, query: asked }: CallAsk, ...names: string[]): string[] => {
  const fold = (text: string) => text.toLowerCase().replaceAll('_', '');
  const all: [string, unknown][] = [...Object.entries(given), ...new URLSearchParams(asked)];
  return all.flatMap(([name, one]) => (names.map(fold).includes(fold(name)) && one !== null ? [`${one}`] : []));
};

/** The repositories that a call may reach, in lower case, `o/*` for a new one; `*` for any. */
function touched(call: CallAsk): string[] {
  const [root, first = '', second = '', third = '', , fifth = ''] = loosely(call.path);
  if (call.method === 'GET' && ['/user', '/rate_limit', '/user/repos'].includes(call.path)) return [];
  if (root === 'orgs' && second === 'repos') return call.method === 'GET' ? [] : [`${first}/*`];
  if (root === 'git') return [`${first}/${second.replace(/\.git$/, '')}`];
  if (root !== 'repos') return ['*'];
  const bare = third.replace(/\.json$/, '');
  if (['forks', 'transfer', 'import', 'merge-upstream'].includes(bare)) return ['*'];
  if (['sub_issues', 'timeline', 'update-branch', 'variant-analyses'].includes(fifth)) return ['*'];
  const own = `${first}/${second}`;
  const made =
    bare === 'generate' && call.method === 'POST'
      ? membersLike(call, 'owner').map((one) => `${one.toLowerCase()}/*`)
      : [];
  if (bare === 'generate' && call.method === 'POST' && made.length === 0) return ['*'];
  if (membersLike({ ...call, query: call.method === 'GET' ? '' : call.query }, 'duplicate_issue_id').length > 0)
    return ['*'];
  const inPath = ['compare', 'commits', 'git', 'tarball', 'dependency-graph'].includes(third)
    ? loosely(call.path).slice(4)
    : [];
  const named =
    call.method === 'GET'
      ? membersLike({ ...call, query: '' }, 'head', 'base', 'ref')
      : membersLike(call, 'head', 'base', 'ref');
  const foreign = [...inPath, ...named].flatMap((one) => one.split(/\.{2,3}/)).filter((one) => one.includes(':'));
  const others = membersLike({ ...call, query: call.method === 'GET' ? '' : call.query }, 'head_repo').filter(
    (one) => ![second, own].includes(one.toLowerCase()),
  );
  return [
    own,
    ...made,
    ...foreign.map((one) => `${one.split(':')[0]?.toLowerCase()}/${one.split(':').length > 2 ? 'any' : second}`),
    ...(others.length > 0 ? ['*'] : []),
  ];
}
const inList = (list: readonly string[], name: string, mayCreate: boolean): boolean => {
  const entries = list.map((one) => one.toLowerCase());
  const [theirs = ''] = name.split('/');
  if (name === '*') return false;
  if (name.endsWith('/*')) return mayCreate && entries.some((one) => one.startsWith(`${theirs}/`));
  return entries.includes(name) || entries.includes(`${theirs}/*`);
};

/** Implemented with a regular expression, which the broker does not use. */
const isListed = (list: readonly string[], name: string): boolean =>
  list.some((one) => {
    const full = one.startsWith('refs/') ? one : `refs/heads/${one}`;
    const source = full
      .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
      .replaceAll('**', '\u0000')
      .replaceAll('*', '[^/]*')
      .replaceAll('\u0000', '.+');
    return new RegExp(`^${source}$`).test(name);
  });

/** The refs that GitHub, or a more lenient server, may write by a call. */
function refsOf(call: CallAsk): string[] {
  const decoded = call.path.replace(/%2F/gi, '/').replace(/%3A/gi, ':').replace(/\/$/, '');
  const [, root, , , third = '', ...rest] = decoded.split('/').map((segment) => segment.replace(/;.*$/, ''));
  if (root?.toLowerCase() !== 'repos' || call.method === 'GET') return [];
  const as = (prefix: string, name: string) => [
    // A server that finds no member with exactly this name uses a default.
    ...(typeof readMembers(call)[name] === 'string' ? [] : ['the default']),
    ...membersLike(call, name).map((one) =>
      /^refs\//.test(one) ? one : /^(?:heads|tags)\//.test(one) ? `refs/${one}` : prefix + one,
    ),
  ];
  const at = third.toLowerCase();
  if (at === 'contents' && (call.method === 'PUT' || call.method === 'DELETE')) return as('refs/heads/', 'branch');
  if (at === 'git' && rest[0]?.toLowerCase() === 'refs') {
    if (call.method === 'POST' && rest.length === 1) return as('', 'ref');
    return call.method === 'PATCH' || call.method === 'DELETE'
      ? [
          `refs/${rest
            .slice(1)
            .join('/')
            .replace(/^refs\//, '')}`,
        ]
      : [];
  }
  if (at === 'branches' && call.method === 'POST' && /^rename/i.test(rest.at(-1) ?? ''))
    return [`refs/heads/${rest.slice(0, -1).join('/')}`, ...as('refs/heads/', 'new_name')];
  if (at === 'merges' && call.method === 'POST') return as('refs/heads/', 'base');
  if (/^merge-upstream/.test(at) && call.method === 'POST') return as('refs/heads/', 'branch');
  if (at === 'deployments' && call.method === 'POST' && rest.length === 0) return as('refs/heads/', 'ref');
  if (at === 'releases' && ['POST', 'PATCH'].includes(call.method) && rest.length < 2)
    return as('refs/tags/', 'tag_name');
  if (at === 'pulls' && call.method === 'PUT') return ['some base'];
  return at === '' || ['forks', 'transfer', 'generate', 'import'].includes(at) ? ['any'] : [];
}

describe('no allowed call reaches anything outside of the list', () => {
  test('of repositories', () => {
    let allowed = 0;
    fc.assert(
      fc.property(calls, repos, fc.boolean(), (call, list, mayCreate) => {
        if (refuseRepositories({ repos: list, allow_repo_creation: mayCreate }, call) !== undefined) return;
        allowed++;
        for (const name of touched(call))
          expect(inList(list, name, mayCreate), `${name} of ${JSON.stringify(list)}`).toBe(true);
      }),
      RUNS,
    );
    expect(allowed).toBeGreaterThan(RUNS.numRuns / 50);
  });

  test('of refs, by REST', () => {
    let wrote = 0;
    fc.assert(
      fc.property(fc.oneof(calls, writes), patterns, (call, list) => {
        if (refuseRefs({ refs: list }, RULES, call) !== undefined) return;
        for (const name of refsOf(call)) {
          wrote++;
          expect(isListed(list, name), `${name} of ${JSON.stringify(list)}`).toBe(true);
        }
      }),
      RUNS,
    );
    expect(wrote).toBeGreaterThan(RUNS.numRuns / 100);
  });

  test('of refs and changes, by git', () => {
    fc.assert(
      fc.property(pushed, patterns, changes, (refs, list, may) => {
        const call: CallAsk = {
          method: 'POST',
          path: '/git/acme/app/git-receive-pack',
          query: '',
          headers: {},
          body: undefined,
          git: { service: 'git-receive-pack', refs },
        };
        const refused = refuseRefs({ refs: list, ref_changes: may }, RULES, call);
        const wrong = refs.filter(({ name, action }) => !isListed(list, name) || !may.includes(action));
        if (wrong.length > 0) expect(refused?.violating).toEqual(expect.arrayContaining([wrong[0]?.name]));
        else if (refs.every(({ name }) => !/\.\.|\/$/.test(name))) expect(refused).toBeUndefined();
      }),
      RUNS,
    );
  });

  test('of refs in the intersection of two lists', () => {
    fc.assert(
      fc.property(patterns, patterns, pushed, (a, b, refs) => {
        for (const { name } of refs)
          if (matchesRef(intersectRefs(a, b), name))
            expect([matchesRef(a, name), matchesRef(b, name)]).toEqual([true, true]);
        for (const entry of intersectRefs(a, b)) expect(intersectRefs([entry], a)).toContain(entry);
      }),
      RUNS,
    );
  });
});

test('a child never reaches more than its parent', () => {
  const isAllowed = (limits: Constraints, call: CallAsk) =>
    (limits.repos === undefined || refuseRepositories(limits, call) === undefined) &&
    refuseRefs(limits, RULES, call) === undefined;
  const asked = fc.oneof(
    calls,
    pushed.map(
      (refs): CallAsk => ({
        method: 'POST',
        path: '/git/acme/app/git-receive-pack',
        query: '',
        headers: {},
        body: undefined,
        git: { service: 'git-receive-pack', refs },
      }),
    ),
  );
  fc.assert(
    fc.property(constraints, constraints, asked, (child, parent, call) => {
      const left = attenuate(grant({ constraints: child }), grant({ constraints: parent })).constraints;
      if (!isAllowed(left, call)) return;
      expect([isAllowed(child, call), isAllowed(parent, call)]).toEqual([true, true]);
    }),
    RUNS,
  );
});
