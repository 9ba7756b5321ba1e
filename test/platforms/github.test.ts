import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parsePlatformEntry } from '../../broker/platforms/builtin.ts';
import type { Method } from '../../broker/policy/facts.ts';
import { classify } from '../../broker/policy/operation.ts';
import { entryFor } from '../../broker/policy/operation-index.ts';
import { classifierOf, manifestOf, rulesOf } from './classified.ts';

const ask = classifierOf('github');
/** Scopes that Apps cannot use, for which the least permission is requested. */
const LEFT_TO_PEOPLE = /^codehost:(account|accountkeys|gists|notifications|starring)\./;
const scopes = (operation: string) => {
  const found = ask(operation);
  return typeof found === 'string' ? found : found.map((scope) => scope.replace('codehost:', '')).join(' ');
};

test('has at least sixty scopes, with ids of the form codehost:area.action', () => {
  const ids = [...rulesOf('github').scopes.keys()];
  expect(ids.length).toBeGreaterThanOrEqual(60);
  expect(ids.every((id) => /^codehost:[a-z]+(\.[a-z]+)+$/.test(id))).toBe(true);
});

test('the manifest has App permissions for each scope, named as in GitHub’s API description', () => {
  const auth = { type: 'app', app_id: '1', private_key: { env: 'KEY' } };
  const parsed = parsePlatformEntry({ use: 'github', auth });
  expect(parsed.error?.issues ?? []).toEqual([]);
  const { scopes, app_permissions: permissions = {} } = parsed.data!;
  expect(Object.keys(permissions).toSorted()).toEqual(Object.keys(scopes).toSorted());
  // @octokit/openapi 23.0.2, `app-permissions`; and those for variables, which are missing there.
  const known = new Set(
    `actions actions_variables administration attestations checks codespaces contents deployments discussions issues members metadata
    organization_actions_variables organization_administration organization_copilot_seat_management
    organization_projects organization_secrets organization_self_hosted_runners packages pages pull_requests repository_hooks
    secret_scanning_alerts secrets security_events statuses vulnerability_alerts workflows`.split(/\s+/),
  );
  for (const [scope, wanted] of Object.entries(permissions)) {
    for (const [name, access] of Object.entries(wanted)) {
      expect(known, scope).toContain(name);
      // A reading scope never needs more than read.
      if (scope.endsWith('.read')) expect(access).toBe('read');
    }
    if (/\.(write|delete|admin|merge)$/.test(scope) && !LEFT_TO_PEOPLE.test(scope))
      expect(Object.values(wanted), scope).toContain('write');
  }
  const unconditional = Object.entries(permissions).filter(([, wanted]) => wanted.workflows === 'write');
  expect(unconditional.map(([scope]) => scope)).toEqual(['codehost:workflows.write']);
});

describe('operations that need other App permissions than their scope', () => {
  const { appOperations } = rulesOf('github');
  const permissions = manifestOf('github').app_permissions ?? {};
  const [, ...listed] = readFileSync(join(import.meta.dirname, 'coverage/github.txt'), 'utf8')
    .trim()
    .split('\n');
  const found = listed.flatMap((line) => {
    const [method, template = ''] = line.split(' ') as [Method, string];
    const path = template.replaceAll(/\{[^}]*\}/g, 'x1');
    const entry = entryFor(appOperations, { method, path });
    return entry === undefined ? [] : [{ operation: `${method} ${path}`, entry }];
  });

  test('each is an operation of GitHub, in a scope with other permissions', () => {
    const used = new Set(found.map(({ entry }) => entry));
    expect(appOperations.filter((one) => !used.has(one)).map(({ operation }) => operation.source)).toEqual([]);
    for (const { operation, entry } of found) {
      const scopes = ask(operation);
      // Operations in no scope cannot be called.
      if (typeof scopes === 'string') continue;
      for (const scope of scopes) expect(permissions[scope], operation).not.toEqual(entry.permissions);
    }
  });

  test('reads have read permissions only, and writes have a write permission', () => {
    for (const { operation, entry } of found) {
      const levels = Object.values(entry.permissions);
      if (operation.startsWith('GET ')) expect(levels, operation).toEqual(['read']);
      else expect(levels.includes('write') || levels.includes('admin'), operation).toBe(true);
    }
  });

  test.each([
    ['PUT', '/repos/acme/app/environments/prod/secrets/X', { environments: 'write' }],
    ['GET', '/repos/acme/app/dependabot/secrets', { dependabot_secrets: 'read' }],
    ['GET', '/repos/acme/app/dependabot/secrets/X', { dependabot_secrets: 'read' }],
    ['POST', '/repos/acme/app/pages', { administration: 'write', pages: 'write' }],
    ['PUT', '/orgs/acme/teams/ops/repos/acme/app', { administration: 'write', members: 'read' }],
    ['PATCH', '/orgs/acme/properties/schema', { organization_custom_properties: 'admin' }],
    ['PATCH', '/orgs/acme/properties/values', { organization_custom_properties: 'write' }],
    ['PUT', '/repos/acme/app/actions/secrets/X', undefined],
    ['GET', '/repos/acme/app/pages/health', undefined],
    ['POST', '/repos/acme/app/dispatches', undefined],
  ] as const)('%s %s: %j', (method, path, expected) => {
    expect(entryFor(appOperations, { method, path })?.permissions).toEqual(expected);
  });
});

test('redirects of reads that lead to a file are followed, and those reads are in a scope', () => {
  const { follow } = rulesOf('github');
  const isFollowed = (path: string) => follow.some((one) => one.kind === 'http' && one.path.matches(path));
  // @octokit/openapi 23.0.2: each GET with a 302, except one that returns another endpoint, and migrations, which are in no scope.
  const paths =
    `/actions/artifacts/1/zip /actions/jobs/1/logs /actions/runs/1/logs /actions/runs/1/attempts/2/logs /code-scanning/codeql/databases/java
    /dependency-graph/sbom/fetch-report/1 /releases/assets/1 /tarball /tarball/main /zipball/refs/heads/feature/x`.split(
      /\s+/,
    );
  for (const path of paths.map((one) => `/repos/octocat/Hello-World${one}`)) {
    expect(isFollowed(path), path).toBe(true);
    expect(ask(`GET ${path}`), path).toHaveLength(1);
  }
  expect(isFollowed('/repos/octocat/Hello-World/actions/runs/1')).toBe(false);
});

describe('common calls fall under exactly one scope', () => {
  test.each([
    ['GET /repos/octocat/Hello-World', 'metadata.read'],
    ['GET /repos/octocat/Hello-World/languages', 'metadata.read'],
    ['GET /user/repos', 'metadata.read'],
    ['GET /rate_limit', 'metadata.read'],
    ['GET /search/code', 'search.read'],
    ['GET /search/issues', 'search.read'],
    ['GET /repos/octocat/Hello-World/contents', 'contents.read'],
    ['GET /repos/octocat/Hello-World/contents/docs/README.md', 'contents.read'],
    ['GET /repos/octocat/Hello-World/commits/feature/login', 'contents.read'],
    ['GET /repos/octocat/Hello-World/compare/main...dev', 'contents.read'],
    ['GET /repos/octocat/Hello-World/git/ref/heads/main', 'contents.read'],
    ['GET /repos/octocat/Hello-World/branches/release/1.2', 'contents.read'],
    ['PUT /repos/octocat/Hello-World/contents/docs/README.md', 'contents.write'],
    ['PATCH /repos/octocat/Hello-World/git/refs/heads/main', 'contents.write'],
    ['DELETE /repos/octocat/Hello-World/git/refs/heads/old', 'contents.write'],
    ['GET /repos/octocat/Hello-World/issues', 'issues.read'],
    ['GET /repos/octocat/Hello-World/issues/1/comments', 'issues.read'],
    ['POST /repos/octocat/Hello-World/issues', 'issues.write'],
    ['POST /repos/octocat/Hello-World/issues/1/labels', 'issues.write'],
    ['POST /repos/octocat/Hello-World/issues/1/comments', 'issues.comment issues.write'],
    ['GET /repos/octocat/Hello-World/pulls/7/files', 'pulls.read'],
    ['GET /repos/octocat/Hello-World/commits/abc123/pulls', 'pulls.read'],
    ['POST /repos/octocat/Hello-World/pulls', 'pulls.write'],
    ['POST /repos/octocat/Hello-World/pulls/7/reviews', 'pulls.review'],
    ['PUT /repos/octocat/Hello-World/pulls/7/merge', 'pulls.merge'],
    ['GET /repos/octocat/Hello-World/commits/main/check-runs', 'checks.read'],
    ['GET /repos/octocat/Hello-World/commits/feature/x/status', 'statuses.read'],
    ['POST /repos/octocat/Hello-World/statuses/abc123', 'statuses.write'],
    ['GET /repos/octocat/Hello-World/actions/runs/30433642/logs', 'actions.read'],
    ['POST /repos/octocat/Hello-World/actions/workflows/ci.yml/dispatches', 'actions.write'],
    ['GET /repos/octocat/Hello-World/releases/latest', 'releases.read'],
    ['POST /repos/octocat/Hello-World/deployments', 'deployments.write'],
    ['GET /user', 'users.read'],
    ['GET /users/octocat', 'users.read'],
    ['GET /orgs/github/teams/core/members', 'teams.read'],
    ['GET /notifications', 'notifications.read'],
    ['POST /gists', 'gists.write'],
    ['POST /user/repos', 'repo.create'],
    ['POST /orgs/acme/repos', 'repo.create'],
    ['GET /git/octocat/Hello-World.git/info/refs', 'contents.read contents.write'],
    ['POST /git/octocat/Hello-World.git/git-upload-pack', 'contents.read'],
    ['POST /git/octocat/Hello-World.git/git-receive-pack', 'contents.write'],
  ])('%s: %s', (operation, expected) => {
    expect(scopes(operation)).toBe(expected);
  });
});

describe('dangerous operations have scopes of their own', () => {
  test.each([
    ['DELETE /repos/octocat/Hello-World', 'repo.delete'],
    ['POST /repos/octocat/Hello-World/transfer', 'repo.transfer'],
    ['PATCH /repos/octocat/Hello-World', 'repo.admin'],
    ['POST /repos/octocat/Hello-World/forks', 'repo.fork'],
    ['PUT /repos/octocat/Hello-World/branches/main/protection', 'protection.write'],
    ['DELETE /repos/octocat/Hello-World/branches/release/1/protection/enforce_admins', 'protection.write'],
    ['PUT /repos/octocat/Hello-World/collaborators/mallory', 'collaborators.write'],
    ['POST /repos/octocat/Hello-World/keys', 'deploykeys.write'],
    ['POST /repos/octocat/Hello-World/hooks', 'hooks.write'],
    ['PUT /repos/octocat/Hello-World/actions/secrets/TOKEN', 'secrets.write'],
    ['GET /repos/octocat/Hello-World/actions/secrets/TOKEN', 'secrets.read'],
    ['GET /repos/octocat/Hello-World/secret-scanning/alerts/42', 'secretscanning.read'],
    ['POST /repos/octocat/Hello-World/actions/runs/1/pending_deployments', 'actions.approve'],
    ['PUT /repos/octocat/Hello-World/contents/.github/workflows/ci.yml', 'workflows.write'],
    ['POST /user/keys', 'accountkeys.write'],
    ['DELETE /orgs/acme', 'orgs.delete'],
    // Each further area has its own scope.
    ['GET /orgs/acme/actions/permissions', 'orgs.admin.read'],
    ['PUT /orgs/acme/actions/permissions', 'orgs.settings.write'],
    ['DELETE /orgs/acme/properties/schema/team', 'orgs.settings.write'],
    ['PUT /orgs/acme/actions/secrets/TOKEN', 'orgs.secrets.write'],
    ['POST /orgs/acme/private-registries', 'orgs.secrets.write'],
    ['GET /orgs/acme/private-registries', 'secrets.read'],
    ['GET /user/codespaces/secrets', 'secrets.read'],
    ['POST /orgs/acme/actions/variables', 'orgs.variables.write'],
    ['DELETE /orgs/acme/rulesets/7', 'orgs.rules.write'],
    ['GET /orgs/acme/rulesets/7', 'protection.read'],
    ['PUT /orgs/acme/organization-roles/users/mallory/1', 'orgs.roles.write'],
    ['PUT /orgs/acme/security-managers/teams/core', 'orgs.roles.write'],
    ['DELETE /orgs/acme/actions/runners/7', 'runners.write'],
    ['PUT /orgs/acme/actions/runner-groups/1/repositories/2', 'runners.write'],
    ['GET /user/codespaces', 'codespaces.read'],
    ['POST /user/codespaces', 'codespaces.write'],
    ['POST /repos/octocat/Hello-World/pulls/7/codespaces', 'codespaces.write'],
    ['GET /orgs/acme/copilot/billing/seats', 'copilot.read'],
    ['POST /orgs/acme/copilot/billing/selected_users', 'copilot.write'],
    ['POST /agents/repos/octocat/Hello-World/tasks', 'copilot.write'],
    ['POST /repos/octocat/Hello-World/attestations', 'attestations.write'],
    ['DELETE /repos/octocat/Hello-World/code-scanning/analyses/7', 'security.admin'],
    ['POST /repos/octocat/Hello-World/secret-scanning/push-protection-bypasses', 'security.admin'],
    ['PUT /repos/octocat/Hello-World/branches/main/protection/restrictions/users', 'protection.write'],
    ['PUT /repos/octocat/Hello-World/pulls/7/merge-async', 'pulls.merge'],
  ])('%s: %s', (operation, expected) => {
    expect(scopes(operation)).toBe(expected);
  });
});

describe('similar paths are in no scope', () => {
  test.each([
    'POST /repos/octocat/Hello-World',
    'PUT /repos/octocat/Hello-World/issues/1',
    'DELETE /repos/octocat/Hello-World/issues/1',
    'POST /repos/octocat/Hello-World/pulls/7/merge',
    'GET /Repos/octocat/Hello-World',
    'POST /repos/octocat/Hello-World/issues/',
    'POST /user/codespaces/secrets',
    'PUT /user/codespaces/secrets/TOKEN',
    'GET /user/583231',
    'POST /orgs/acme/dependabot_alerts/enable_all',
    'POST /repos/octocat/Hello-World/security-advisories/GHSA-x/forks',
    'GET /repositories/1296269',
    // Another spelling of the workflows' folder does not count as plain contents.
    'PUT /repos/octocat/Hello-World/contents/.GitHub/Workflows/ci.yml',
    'GET /repos/octocat/Hello-World/branches/main/Protection',
  ])('%s', (operation) => {
    expect(scopes(operation)).toBe('unclassified');
  });

  test.each([
    'POST /repos/octocat/Hello-World/actions/runners/registration-token',
    'POST /repos/octocat/Hello-World/actions/runners/generate-jitconfig',
    'POST /app/installations/1/access_tokens',
    'POST /applications/client/token',
  ])('an operation that returns a credential is in no scope: %s', (operation) => {
    expect(scopes(operation)).toBe('unclassified');
  });
});

describe('the GraphQL endpoint', () => {
  const graphql = (query: string) => {
    const found = ask('POST /graphql', { query });
    return typeof found === 'string' ? found : found.map((scope) => scope.replace('codehost:', '')).join(' ');
  };

  test.each([
    ['{ viewer { login } }', 'graphql.read'],
    [
      'query { repository(owner: "a", name: "b") { issues(first: 1) { totalCount } } rateLimit { cost } }',
      'graphql.read',
    ],
    ['mutation { createIssue(input: {}) { issue { id } } }', 'issues.write'],
    ['mutation { addComment(input: {}) { clientMutationId } }', 'issues.comment issues.write'],
    ['mutation { mergePullRequest(input: {}) { clientMutationId } }', 'pulls.merge'],
    ['mutation { createCommitOnBranch(input: {}) { clientMutationId } }', 'contents.write'],
    ['mutation { deleteIssue(input: {}) { clientMutationId } }', 'issues.delete'],
  ])('%s: %s', (query, expected) => {
    expect(graphql(query)).toBe(expected);
  });

  test.each([
    'mutation { createIssue(input: {}) { issue { id } } mergePullRequest(input: {}) { clientMutationId } }',
    'mutation { deleteEnterprise(input: {}) { clientMutationId } }',
    'query { enterprise(slug: "a") { ownerInfo { admins { totalCount } } } }',
    'subscription { x }',
  ])('is in no scope: %s', (query) => {
    expect(graphql(query)).toBe('unclassified');
  });

  test('does not accept a GET', () => {
    expect(scopes('GET /graphql')).toBe('unclassified');
  });
});

describe('writing into .github/workflows, in any way, needs the scope workflows.write', () => {
  const REPO = '/repos/octocat/Hello-World';
  const tree = (...paths: unknown[]) => ({
    base_tree: 'abc',
    tree: paths.map((path) => ({ path, mode: '100644', type: 'blob', content: 'x' })),
  });
  const under = (operation: string, body: object) => {
    const found = ask(operation, body as never);
    return typeof found === 'string' ? found : found.map((scope) => scope.replace('codehost:', '')).join(' ');
  };

  test.each([
    '.github/workflows/x.yml',
    '.github/workflows/deep/x.yml',
    './.github/workflows/x.yml',
    '/.github//workflows/x.yml',
    '.GitHub/Workflows/x.yml',
    '.github\\workflows\\x.yml',
    'docs/../.github/workflows/x.yml',
    // A tree in a tree, whose contents are not in the call.
    '.github',
    '.github/workflows',
    '.github/',
    7,
    null,
  ])('a tree with %j needs workflows.write', (path) => {
    expect(under(`POST ${REPO}/git/trees`, tree('docs/a.md', path))).toBe('workflows.write');
  });

  test.each([
    'docs/a.md',
    '.github/dependabot.yml',
    '.github/ISSUE_TEMPLATE/bug.md',
    'workflows/x.yml',
    'app/.github/workflows/x.yml',
    '.github/workflows.md/x',
  ])('a similar tree with %j needs contents.write', (path) => {
    expect(under(`POST ${REPO}/git/trees`, tree('docs/a.md', path))).toBe('contents.write');
  });

  test('other spellings of the member and the query string do not bypass the scope', () => {
    expect(under(`POST ${REPO}/git/trees`, { Tree: [{ Path: '.github/workflows/x.yml' }] })).toBe('workflows.write');
    expect(under(`POST ${REPO}/git/trees`, { tree: { 0: { path: '.github/workflows/x.yml' } } })).toBe(
      'workflows.write',
    );
    const call = { method: 'POST' as const, path: `${REPO}/git/trees`, headers: {}, body: tree('a.md') as never };
    const found = classify(rulesOf('github'), { ...call, query: 'tree[][path]=.github/workflows/x.yml' });
    expect(found).toMatchObject({ scopes: ['codehost:workflows.write'] });
  });

  const commit = (changes: string) =>
    `mutation ($path: String!, $more: [FileAddition!]) { createCommitOnBranch(input: { fileChanges: ${changes} }) { clientMutationId } }`;
  test.each([
    ['{ additions: [{ path: ".github/workflows/x.yml", contents: "" }] }', {}, 'workflows.write'],
    ['{ additions: [{ path: "a.md", contents: "" }, { path: $path, contents: "" }] }', {}, 'workflows.write'],
    ['{ deletions: [{ path: ".github/workflows/x.yml" }] }', {}, 'workflows.write'],
    ['{ additions: $more }', { more: [{ path: '.github/workflows/y.yml' }] }, 'workflows.write'],
    ['{ additions: [{ path: "a.md", contents: "" }], deletions: [{ path: "b.md" }] }', {}, 'contents.write'],
    ['{ additions: $more, deletions: [] }', { more: [{ path: 'a.md' }] }, 'contents.write'],
  ])('createCommitOnBranch with %s %j: %s', (changes, variables, expected) => {
    const body = { query: commit(changes), variables: { path: '.github/workflows/x.yml', ...variables } };
    expect(under('POST /graphql', body)).toBe(expected);
  });

  test('another field in the document must fall under the same scope', () => {
    const both = commit('{ additions: [{ path: ".github/workflows/x.yml" }] }').replace(
      ' }) { clientMutationId } }',
      ' }) { clientMutationId } deleteRef(input: {}) { clientMutationId } }',
    );
    expect(under('POST /graphql', { query: both, variables: { path: 'a' } })).toBe('unclassified');
  });

  test.each([
    ['PATCH', `${REPO}/git/refs/heads/main`, { sha: 'abc', force: true }, 'workflows.write'],
    ['PATCH', `${REPO}/git/refs/heads/main`, { sha: 'abc', Force: 'true' }, 'workflows.write'],
    ['PATCH', `${REPO}/git/refs/heads/main`, { sha: 'abc', force: false }, 'contents.write'],
    ['PATCH', `${REPO}/git/refs/heads/main`, { sha: 'abc' }, 'contents.write'],
    ['POST', `${REPO}/git/refs`, { ref: 'refs/heads/x', sha: 'abc' }, 'contents.write'],
    ['POST', `${REPO}/git/commits`, { message: 'm', tree: 'abc', parents: ['def'] }, 'contents.write'],
    ['POST', `${REPO}/merges`, { base: 'main', head: 'topic' }, 'workflows.write'],
    ['POST', `${REPO}/merge-upstream`, { branch: 'main' }, 'workflows.write'],
  ])('%s %s %j: %s', (method, path, body, expected) => {
    expect(under(`${method} ${path}`, body)).toBe(expected);
  });

  test.each([
    ['updateRef(input: { refId: "r", oid: "o", force: true }) { clientMutationId }', 'workflows.write'],
    ['updateRef(input: { refId: "r", oid: "o" }) { clientMutationId }', 'contents.write'],
    [
      'updateRefs(input: { refUpdates: [{ name: "a" }, { name: "b", force: true }] }) { clientMutationId }',
      'workflows.write',
    ],
    ['updateRefs(input: { refUpdates: [{ name: "a" }, { name: "b" }] }) { clientMutationId }', 'contents.write'],
    ['mergeBranch(input: { base: "main", head: "topic" }) { clientMutationId }', 'workflows.write'],
  ])('mutation %s: %s', (field, expected) => {
    expect(under('POST /graphql', { query: `mutation { ${field} }` })).toBe(expected);
  });
});
