import { describe, expect, test } from 'vitest';
import { type CallAsk, type Constraints, type JsonObject, type Method, UnreadBody } from '../../broker/policy/facts.ts';
import { compilePlatformRules } from '../../broker/policy/operation.ts';
import { intersectRepositories, refuseRepositories } from '../../broker/policy/repos.ts';
import { call } from './world.ts';

const LIST: Constraints = { repos: ['acme/app', 'tools/*'] };
const CREATING: Constraints = { ...LIST, allow_repo_creation: true };

const reach = (line: string, constraints: Constraints = LIST, body?: JsonObject) => {
  const [method, endpoint] = line.split(' ') as [Method, string];
  const [path = '', query = ''] = endpoint.split('?');
  return refuseRepositories(constraints, call({ method, path, query, body }) as CallAsk);
};

describe('within the list of repositories', () => {
  test.each([
    'GET /repos/acme/app',
    'GET /repos/ACME/App/issues',
    'PATCH /repos/acme/app',
    'GET /repos/tools/anything/contents/a/b.txt',
    'GET /repos/acme/app/compare/main...topic',
    'GET /repos/acme/app/compare/acme:main...ACME:topic',
    'GET /user',
    'GET /rate_limit',
    'GET /user/repos',
    'GET /orgs/whoever/repos',
    'GET /repos/acme/app/pulls?head=evil:topic',
    'GET /repos/acme/app/issues/1/comments',
    'GET /repos/acme/app/contents/x?ref=topic',
    'GET /repos/acme/app/commits/feature/x',
    'GET /repos/acme/app/contents/a:b',
    'GET /repos/acme/app/codespaces/secrets',
    'POST /repos/acme/app/dispatches',
    'DELETE /repos/acme/app/actions/caches?key=x&ref=refs/heads/main',
    'POST /repos/acme/app/releases/1/assets?name=app.zip',
    'PUT /repos/acme/app/pulls/1/merge',
    'GET /git/acme/app/info/refs?service=git-upload-pack',
    'GET /git/acme/app.git/info/refs?service=git-receive-pack',
    'POST /git/ACME/App.git/git-upload-pack',
    'POST /git/acme/app/git-receive-pack',
    'POST /git/tools/any.thing.git/git-receive-pack',
    'POST /repos/acme/app/issues/1/comments',
    'GET /repos/acme/app/contents/merge-upstream',
  ])('%s', (line) => {
    expect(reach(line)).toBeUndefined();
  });

  test('a pull request from the same repository is allowed', () => {
    expect(reach('POST /repos/acme/app/pulls', LIST, { head: 'topic', base: 'main' })).toBeUndefined();
    expect(reach('POST /repos/acme/app/pulls', LIST, { head: 'acme:topic', head_repo: 'app' })).toBeUndefined();
  });
});

describe('GT-02 git requests', () => {
  const fetching = (path: string, constraints: Constraints = LIST) =>
    refuseRepositories(constraints, {
      ...(call({ method: 'POST', path }) as CallAsk),
      git: { service: 'git-upload-pack', refs: [] },
    });

  test.each(['/git/acme/app/info/refs', '/git/ACME/App/git-upload-pack', '/git/tools/any/git-receive-pack'])(
    '%s is within the list',
    (path) => expect(fetching(path)).toBeUndefined(),
  );

  test.each([
    ['/git/acme/secret/info/refs', ['acme/secret']],
    ['/git/acme/app.git/info/refs', ['acme/app.git']],
    ['/git/acme/app./info/refs', ['acme/app.']],
    ['/git/acme/../info/refs', []],
    ['/repos/acme/app/info/refs', []],
  ])('%s is not within the list', (path, violating) => expect(fetching(path)?.violating).toEqual(violating));

  test('the refusal of a GraphQL call says to use REST, and that of another call to name a repository', () => {
    const query = { query: '{ viewer { login } }' };
    expect(reach('POST /graphql', LIST, query)?.detail).toMatch(/^GraphQL cannot .* use REST/);
    expect(reach('POST /gists', LIST, {})?.detail).toMatch(/^the call names no repository/);
  });

  test('an empty list allows no git request', () =>
    expect(fetching('/git/acme/app/info/refs', { repos: [] })).toBeDefined());
});

describe('GT-18 outside of the list of repositories', () => {
  test.each([
    ['GET /repos/acme/other', ['acme/other']],
    ['GET /repos/evil/app/issues', ['evil/app']],
    ['GET /repos/acme/app.git', ['acme/app.git']],
    ['GET /repositories/123', []],
    ['POST /graphql', []],
    ['GET /gists', []],
    ['POST /gists', []],
    ['GET /search/code', []],
    ['GET /search/repositories', []],
    ['GET /repos/acme/app/forks', []],
    ['POST /repos/acme/app/forks', []],
    ['POST /repos/acme/app/transfer', []],
    ['PUT /repos/acme/app/import', []],
    ['GET /issues', []],
    ['GET /notifications', []],
    ['GET /repos', []],
    ['GET /repos/acme', []],
    ['GET /repos/acme/', []],
    ['GET /Repos/acme/app', []],
    ['GET /repos/acme/..', []],
    ['GET /repos/acme/app%2Fx', []],
    ['GET /repos/acme/app/contents/a%2Fb', []],
    ['GET /repos/acme;x/app', []],
    ['POST /user', []],
    ['GET /user/', []],
    ['GET /orgs/x/members', []],
    ['POST /user/repos', []],
    ['POST /orgs/tools/repos', []],
    ['POST /repos/tools/template/generate', []],
    ['GET /repos/acme/app/compare/main...evil:branch', ['evil:branch']],
    ['GET /repos/acme/app/Compare/main...evil:branch', ['evil:branch']],
    ['GET /repos/acme/app/compare/evil:main...topic', ['evil:main']],
    ['GET /repos/acme/app/compare/main...acme:other:topic', ['acme:other:topic']],
    ['GET /repos/acme/app/compare/main...evil%3Abranch', ['evil:branch']],
    ['GET /repos/acme/app/compare/main...evil%253Abranch', ['evil:branch']],
    ['GET /repos/acme/app/dependency-graph/compare/main...evil:branch', ['evil:branch']],
    ['GET /repos/acme/app/commits/evil:branch', ['evil:branch']],
    ['GET /repos/acme/app/tarball/evil:branch', ['evil:branch']],
    ['GET /repos/acme/app/git/trees/evil:branch', ['evil:branch']],
    ['GET /repos/acme/app/contents/x?ref=evil:branch', ['evil:branch']],
    ['GET /repos/acme/app/commits?Sha=evil:branch', ['evil:branch']],
    ['DELETE /repos/acme/app/actions/caches?ref=evil:branch', ['evil:branch']],
    ['POST /repos/acme/app/merges?base=evil:branch', ['evil:branch']],
    ['GET /repos/acme/app/commits?a=1;sha=evil:branch', ['evil:branch']],
    ['GET /networks/acme/app/events', []],
    ['GET /users/acme/events', []],
    ['GET /users/acme/received_events', []],
    ['GET /events', []],
    ['GET /user/issues', []],
    ['GET /orgs/acme/issues', []],
    ['GET /user/starred', []],
    ['PUT /user/starred/acme/app', []],
    ['GET /user/subscriptions', []],
    ['GET /user/repository_invitations', []],
    ['GET /installation/repositories', []],
    ['GET /user/installations/1/repositories', []],
    ['PUT /user/installations/1/repositories/2', []],
    ['GET /orgs/acme/packages', []],
    ['GET /user/packages/npm/x', []],
    ['GET /orgs/acme/teams/core/repos', []],
    ['PUT /orgs/acme/teams/core/repos/acme/app', []],
    ['GET /teams/1/repos', []],
    ['POST /orgs/acme/migrations', []],
    ['POST /user/migrations', []],
    ['GET /user/migrations/1/archive', []],
    ['POST /user/codespaces', []],
    ['GET /orgs/acme/projectsV2/1/items', []],
    ['GET /orgs/acme/events', []],
    ['GET /orgs/acme/dependabot/alerts', []],
    ['GET /orgs/acme/actions/secrets/X/repositories', []],
    ['POST /agents/repos/acme/app/tasks', []],
    ['POST /repositories/42/issues', []],
    ['GET /user/repos/', []],
    ['DELETE /user/repos', []],
    ['GET /search', []],
    ['GET /repos/acme/ap%70', []],
    ['GET /repos/acme/\uff0e\uff0e/app', []],
    ['GET /repos/acme/app%20', []],
    ['GET /repos/acme/app;v=1', []],
    ['GET /repos/acme./app', ['acme./app']],
  ])('%s', (line, violating) => {
    expect(reach(line)?.violating).toEqual(violating);
  });

  test('a pull request from another repository is refused', () => {
    expect(reach('POST /repos/acme/app/pulls', LIST, { head: 'evil:topic' })?.violating).toEqual(['evil:topic']);
    expect(reach('POST /repos/acme/app/pulls', LIST, { head: 'topic', head_repo: 'other' })?.violating).toEqual([
      'other',
    ]);
  });

  test.each(['Head', 'HEAD', 'he_ad', 'head.', 'ｈead'])(
    'a pull request from another repository, named by the member %s as well, is refused',
    (name) => {
      const body = { head: 'main', base: 'main', [name]: 'evil:main' };
      expect(reach('POST /repos/acme/app/pulls', LIST, body)?.violating).toEqual(['evil:main']);
      expect(reach('POST /repos/acme/app/pulls', LIST, { ...body, [name]: 'acme:main' })).toBeUndefined();
    },
  );

  test.each(['Head_Repo', 'headRepo', 'head-repo'])(
    'a pull request from another repository, named by the member %s, is refused',
    (name) => {
      const body = { head: 'main', [name]: 'other' };
      expect(reach('POST /repos/acme/app/pulls', LIST, body)?.violating).toEqual(['other']);
      expect(reach('POST /repos/acme/app/pulls', LIST, { ...body, [name]: 'app' })).toBeUndefined();
    },
  );

  test.each([
    'POST /repos/acme/app/pulls?head=evil:main',
    'POST /repos/acme/app/pulls?HEAD[]=main',
    'POST /repos/acme/app/pulls?+head_repo=app',
    'PATCH /repos/acme/app/pulls/1?headRepo=app',
    'POST /repos/acme/app/merges?head=main',
    'POST /orgs/tools/repos?name=x',
    'POST /orgs/tools/repos?repository_id=1',
    'POST /repos/tools/template/generate?owner=acme',
  ])('a query that names a side or a new repository is refused: %s', (line) => {
    const body = { head: 'main', base: 'main', owner: 'acme', name: 'new' };
    expect(reach(line, CREATING, body)?.detail).toMatch(/the query/);
    expect(reach(line.split('?')[0]!, CREATING, body)).toBeUndefined();
  });

  test.each([
    'POST /repos/acme/app/merge-upstream',
    'POST /repos/acme/app/Merge-Upstream',
    'POST /repos/acme/app/merge-upstream.json',
    'POST /repos/acme/app/issues/1/sub_issues',
    'PATCH /repos/acme/app/issues/1/sub_issues/priority',
    'DELETE /repos/acme/app/issues/1/sub_issue',
    'POST /repos/acme/app/issues/1/dependencies/blocked_by',
    'POST /repos/acme/app/Issues/1/Dependencies/blocked_by',
    'DELETE /repos/acme/app/issues/1/dependencies/blocked_by/4242',
  ])('an operation that reaches repositories which the call does not name is refused: %s', (line) => {
    expect(reach(line, LIST, { sub_issue_id: 4242, issue_id: 4242, branch: 'main' })?.violating).toEqual([]);
  });

  test.each([
    'GET /repos/acme/app/issues/1/sub_issues',
    'GET /repos/acme/app/issues/1/dependencies/blocking',
    'GET /repos/acme/app/issues/1/parent',
    'GET /repos/acme/app/issues/1/timeline',
    'GET /repos/acme/app/Issues/1/Timeline.json',
    'GET /repos/acme/app/forks',
    'PUT /repos/acme/app/pulls/1/update-branch',
    'PUT /repos/acme/app/Pulls/1/Update-Branch',
    'POST /repos/acme/app/codespaces',
    'POST /repos/acme/app/pulls/1/codespaces',
    'POST /repos/acme/app/code-scanning/codeql/variant-analyses',
    'GET /repos/acme/app/code-scanning/codeql/variant-analyses/1/repos/evil/app',
    'POST /repos/acme/app/security-advisories/GHSA-x/forks',
  ])('an operation that reads or writes content of other repositories is refused: %s', (line) => {
    expect(reach(line)?.violating).toEqual([]);
  });

  test.each<[string, JsonObject, string]>([
    ['PATCH /repos/acme/app/issues/1', { state: 'closed', duplicate_issue_id: 4242 }, 'duplicate_issue_id'],
    ['PATCH /repos/acme/app/issues/1', { duplicateIssueId: '4242' }, 'duplicateIssueId'],
    ['POST /repos/acme/app/issues', { title: 'x', parent_issue_id: 4242 }, 'parent_issue_id'],
    ['PUT /repos/acme/app/actions/x', { selected_repository_ids: [1] }, 'selected_repository_ids'],
    ['POST /repos/acme/app/issues', { agent_assignment: { target_repo: 'evil/app' } }, 'evil/app'],
    ['POST /repos/acme/app/security-advisories', { start_private_fork: true }, 'start_private_fork'],
    ['POST /repos/acme/app/security-advisories/reports', { startPrivateFork: 1 }, 'startPrivateFork'],
    ['POST /repos/acme/app/security-advisories', { start_private_fork: 'false' }, 'start_private_fork'],
    [
      'POST /repos/acme/app/security-advisories',
      { start_private_fork: false, Start_Private_Fork: true },
      'Start_Private_Fork',
    ],
    [
      'PUT /repos/acme/app/rulesets/1',
      { rules: [{ type: 'deletion' }, { parameters: { workflows: [{ path: 'ci.yml', repositoryId: 7 }] } }] },
      'repository_id',
    ],
    ['POST /repos/acme/app/deployments', { ref: 'evil:branch' }, 'evil:branch'],
    ['POST /repos/acme/app/merges', { base: 'main', head: 'evil:branch' }, 'evil:branch'],
  ])('a body that names something outside of the repository is refused: %s %j', (line, body, name) => {
    expect(reach(line, LIST, body)?.violating).toEqual([name]);
  });

  test.each([
    'agent_assignment[target_repo]',
    'agentAssignment.target_repo',
    'agent_assignment',
    'start_private_fork',
    'repository_id',
    'head.repo',
    'issue.id',
    'repository[id',
  ])('the query of a write must not name %s', (name) => {
    for (const line of ['POST /repos/acme/app/issues', 'PATCH /repos/acme/app/dependabot/alerts/1'])
      expect(reach(`${line}?${encodeURIComponent(name)}=evil/app`)?.violating).toEqual([name]);
  });

  test.each(['rules[][parameters][workflows][][repository_id]', 'rules[0].parameters.workflows[0].repository_id'])(
    'the query of a ruleset must not name a workflow of another repository: %s',
    (name) => {
      for (const line of ['POST /repos/acme/app/rulesets', 'PUT /repos/acme/app/rulesets/1'])
        expect(reach(`${line}?${encodeURIComponent(name)}=7`)?.violating).toEqual([name]);
      expect(reach('POST /repos/acme/app/rulesets?rule=1')).toBeUndefined();
    },
  );

  test('similar calls that stay within the repository are allowed', () => {
    expect(reach('POST /repos/acme/app/security-advisories', LIST, { start_private_fork: false })).toBeUndefined();
    expect(
      reach('POST /repos/acme/app/rulesets', LIST, {
        name: 'main',
        rules: [
          { type: 'deletion' },
          { type: 'pull_request', parameters: { required_approving_review_count: 1 } },
          { type: 'workflows', parameters: { workflows: [{ path: 'ci.yml' }] } },
        ],
      }),
    ).toBeUndefined();
    expect(reach('PATCH /repos/acme/app/issues/1', LIST, { duplicate_issue_id: null })).toBeUndefined();
    expect(
      reach('POST /repos/acme/app/issues', LIST, {
        agent_assignment: { target_repo: 'ACME/app', base_branch: 'main' },
      }),
    ).toBeUndefined();
    expect(reach('POST /repos/acme/app/deployments', LIST, { ref: 'acme:main' })).toBeUndefined();
  });

  test('CH-05 an empty list allows nothing, not even listing repositories', () => {
    for (const line of ['GET /repos/acme/app', 'GET /user/repos', 'GET /user'])
      expect(reach(line, { repos: [] })).toBeDefined();
  });

  test('malformed entries of the list match nothing', () => {
    for (const entry of ['*', '*/*', 'acme', 'acme/**', '/', 'acme/*/x', '']) {
      expect(reach('GET /repos/acme/app', { repos: [entry] }), entry).toBeDefined();
    }
  });
});

describe('a body that is not an object, in an operation that accepts such bodies', () => {
  const bodies = { 'POST /repos/*/*/labels': ['list', 'json'], 'POST /repos/*/*/notes': ['text', 'json'] } as const;
  const rules = compilePlatformRules({ kind: 'rest', scopes: {}, bodies });
  const post = (path: string, body: UnreadBody, query = '') =>
    refuseRepositories(LIST, call({ method: 'POST', path: `/repos/acme/app/${path}`, query, body }) as CallAsk, rules);
  const list = (...items: JsonObject[string][]) => new UnreadBody('it is a list', { items });

  test('a list is allowed unless an item names something outside of the repository', () => {
    expect(post('labels', list('bug', null, 7, { name: 'x' }))).toBeUndefined();
    expect(post('labels', list('bug', null, { repository_id: 1 }))?.violating).toEqual(['repository_id']);
  });

  test('what the query of a list names is checked, too', () => {
    expect(post('labels', list('bug'), 'ref=main')).toBeUndefined();
    expect(post('labels', list('bug'), 'ref=evil:main')?.violating).toEqual(['evil:main']);
    expect(post('labels', list(), 'ref=evil:main')?.violating).toEqual(['evil:main']);
  });

  test('a text is refused where a server may read it as an object', () => {
    expect(post('notes', new UnreadBody('it is a text', { isOpaque: true }))).toMatchObject({ unread: true });
  });
});

describe('git', () => {
  test.each([
    ['GET /git/acme/other/info/refs', 'acme/other'],
    ['GET /git/evil/app.git/info/refs', 'evil/app'],
    ['POST /git/evil/app/git-upload-pack', 'evil/app'],
    ['POST /git/acme/app2/git-receive-pack', 'acme/app2'],
  ])('GT-02 %s is not in the list', (line, name) => {
    expect(reach(line)).toEqual({
      violating: [name],
      detail: `${name} is not in the agent's allowed repositories`,
    });
  });

  test.each([
    'GET /git/acme/app.git.git/info/refs',
    'GET /git/acme/app.GIT/info/refs',
    'GET /git/tools/app.git.git/info/refs',
    'GET /git/tools/app./info/refs',
    'GET /git/tools/.git/info/refs',
    'GET /git/tools/../info/refs',
    'GET /git/acme/app%20/info/refs',
    'GET /git/acme/app;x/info/refs',
    'GET /git/acme/app/HEAD',
    'GET /git/acme/app/objects/info/packs',
    'GET /git/acme/app/info/refs/',
    'POST /git/acme/app/info/lfs/objects/batch',
    'GET /Git/acme/app/info/refs',
    'GET /git//acme/app/info/refs',
    'POST /git/acme/app/x/git-receive-pack',
  ])('a path that is not a plain git path is refused: %s', (line) => {
    expect(reach(line)).toBeDefined();
  });
});

describe('creating repositories', () => {
  test('is allowed under an owner in the list when the grant allows creation', () => {
    expect(reach('POST /orgs/tools/repos', CREATING, { name: 'new' })).toBeUndefined();
    expect(reach('POST /orgs/ACME/repos', CREATING, { name: 'new' })).toBeUndefined();
    expect(reach('POST /repos/tools/template/generate', CREATING, { owner: 'acme', name: 'new' })).toBeUndefined();
  });

  test.each([
    ['without allow_repo_creation', 'POST /orgs/tools/repos', LIST, { name: 'new' }, ['tools/new']],
    ['under another owner', 'POST /orgs/evil/repos', CREATING, { name: 'new' }, ['evil/new']],
    ['under the account of the credential', 'POST /user/repos', CREATING, { name: 'new' }, []],
    [
      'from a template outside of the list',
      'POST /repos/evil/template/generate',
      CREATING,
      { owner: 'acme', name: 'new' },
      ['evil/template'],
    ],
    [
      'from a template to another owner',
      'POST /repos/tools/template/generate',
      CREATING,
      { owner: 'evil', name: 'new' },
      ['evil/new'],
    ],
    [
      'from a template to another owner in addition to an owner in the list',
      'POST /repos/tools/template/generate',
      CREATING,
      { owner: 'acme', Owner: 'evil', name: 'new' },
      ['acme/new', 'evil/new'],
    ],
    [
      'from a template to an unreadable owner in addition to an owner in the list',
      'POST /repos/tools/template/generate',
      CREATING,
      { owner: 'acme', Owner: ['evil'], name: 'new' },
      ['acme/new'],
    ],
    ['from a template without an owner', 'POST /repos/tools/template/generate', CREATING, { name: 'new' }, []],
  ])('is refused: %s', (_sentence, line, constraints, body, violating) => {
    expect(reach(line, constraints, body)?.violating).toEqual(violating);
  });
});

describe('the intersection of two lists of repositories', () => {
  test.each([
    [['acme/*'], ['ACME/Repo'], ['ACME/Repo']],
    [['acme/app'], ['acme/*'], ['acme/app']],
    [['acme/*', 'other/x'], ['acme/*'], ['acme/*']],
    [['acme/*'], ['other/*'], []],
    [[], ['acme/*'], []],
    [['acme/app'], ['ACME/APP'], ['acme/app']],
    [['acme/app'], ['tools/*', 'acme/*'], ['acme/app']],
  ])('%j and %j: %j', (a, b, expected) => {
    expect(intersectRepositories(a, b)).toEqual(expected);
  });
});
