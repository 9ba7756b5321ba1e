import { describe, expect, test } from 'vitest';
import type { CallAsk, JsonObject, Method } from '../../broker/policy/facts.ts';
import { relate } from '../../broker/policy/pattern.ts';
import { writtenByRules } from '../../broker/policy/refs/rules.ts';
import { rulesOf } from './classified.ts';

const RULES = rulesOf('github');
const R = '/repos/acme/app';

/** `create refs/heads/x`; `?` where the call has no valid name; a sentence where the refs are unknown. */
const written = (line: string, body?: JsonObject): readonly string[] | string => {
  const [method, endpoint = ''] = line.split(' ') as [Method, string];
  const [path = '', query = ''] = endpoint.split('?');
  const call: CallAsk = { method, path, query, headers: {}, body };
  const found = writtenByRules(RULES, call);
  return typeof found === 'string' ? found : found.map(({ action, name }) => `${action} ${name ?? '?'}`);
};

test('the manifest declares the refs of each writing operation in a scope', () => {
  const changing = [...RULES.scopes.values()].flat().filter((one) => one.kind === 'http' && one.method !== 'GET');
  const unsaid = changing.filter(
    (one) =>
      one.kind === 'http' &&
      // For a push, the git entry point determines the refs.
      one.source !== 'POST /git/*/*/git-receive-pack' &&
      !RULES.refs.some(
        ({ operation }) =>
          operation.kind === 'http' &&
          operation.method === one.method &&
          relate(operation.path, one.path, 'exact') === 'all',
      ),
  );
  expect(unsaid.map(({ source }) => source)).toEqual([]);
});

describe('operations that write refs', () => {
  test.each<[string, JsonObject | undefined, string[]]>([
    [`PUT ${R}/contents/a/b.md`, { branch: 'agent/x', message: 'm' }, ['update refs/heads/agent/x']],
    [`DELETE ${R}/contents/a.md`, { branch: 'main', sha: 'abc' }, ['update refs/heads/main']],
    [`PUT ${R}/contents/.github/workflows/ci.yml`, { branch: 'agent/x' }, ['update refs/heads/agent/x']],
    [`POST ${R}/git/refs`, { ref: 'refs/heads/agent/x', sha: 'abc' }, ['create refs/heads/agent/x']],
    [`POST ${R}/git/refs`, { ref: 'refs/tags/v1', sha: 'abc' }, ['create refs/tags/v1']],
    [`PATCH ${R}/git/refs/heads/agent/x`, { sha: 'abc' }, ['update refs/heads/agent/x']],
    [`DELETE ${R}/git/refs/tags/v1`, undefined, ['delete refs/tags/v1']],
    [
      `POST ${R}/branches/agent/x/rename`,
      { new_name: 'main2' },
      ['delete refs/heads/agent/x', 'create refs/heads/main2'],
    ],
    [`POST ${R}/merges`, { base: 'main', head: 'agent/x' }, ['update refs/heads/main']],
    [`POST ${R}/merge-upstream`, { branch: 'main' }, ['update refs/heads/main']],
    [`POST ${R}/releases`, { tag_name: 'v1', target_commitish: 'main' }, ['create refs/tags/v1']],
    [`PATCH ${R}/releases/7`, { tag_name: 'v1', draft: false }, ['create refs/tags/v1']],
    [`POST ${R}/releases`, { tag_name: 'v1', draft: false }, ['create refs/tags/v1']],
    [`POST ${R}/releases`, { tag_name: 'v1', draft: 'true' }, ['create refs/tags/v1']],
    [`POST ${R}/releases`, { tag_name: 'v1', draft: true, Draft: false }, ['create refs/tags/v1']],
    [`POST ${R}/releases`, { tag_name: 'v1', Draft: true }, ['create refs/tags/v1']],
    [`POST ${R}/releases?draft=false`, { tag_name: 'v1', draft: true }, ['create refs/tags/v1']],
    [`POST ${R}/releases`, { tag_name: 'v1', draft: true }, []],
    [`PATCH ${R}/releases/7`, { tag_name: 'v1', draft: true }, ['create refs/tags/v1']],
    [`POST ${R}/deployments`, { ref: 'main' }, ['update refs/heads/main']],
    [`POST ${R}/deployments`, { ref: 'main', auto_merge: true }, ['update refs/heads/main']],
    [`POST ${R}/deployments`, { ref: 'main', auto_merge: 'false' }, ['update refs/heads/main']],
    [`POST ${R}/deployments`, { ref: 'main', auto_merge: false }, []],
  ])('%s %j: %j', (line, body, expected) => {
    expect(written(line, body)).toEqual(expected);
  });

  test.each<[string, JsonObject | undefined]>([
    // The default branch.
    [`PUT ${R}/contents/a.md`, { message: 'm' }],
    [`PUT ${R}/contents/a.md`, undefined],
    [`PUT ${R}/contents/a.md`, { branch: null }],
    [`PUT ${R}/contents/a.md`, { Branch: 'agent/x' }],
    [`PUT ${R}/contents/a.md`, { branch: 'agent/x', Branch: 'main' }],
    [`PUT ${R}/contents/a.md`, { branch: 'agent/x', Branch: null }],
    [`PUT ${R}/contents/a.md`, { branch: 'agent/x', BRANCH: [] }],
    [`PUT ${R}/contents/a.md`, { branch: ['agent/x'] }],
    [`PUT ${R}/contents/a.md`, { branch: { name: 'agent/x' } }],
    [`PUT ${R}/contents/a.md?branch=main`, { branch: 'agent/x' }],
    [`PUT ${R}/contents/a.md?BRANCH[]=main`, { branch: 'agent/x' }],
    [`PUT ${R}/contents/a.md?x=1;branch=main`, { branch: 'agent/x' }],
    [`DELETE ${R}/contents/a.md?branch=agent/x`, undefined],
    // Names of other refs than they seem to be.
    [`PUT ${R}/contents/a.md`, { branch: 'refs/heads/agent/x' }],
    [`PUT ${R}/contents/a.md`, { branch: 'heads/agent/x' }],
    [`PUT ${R}/contents/a.md`, { branch: 'tags/agent/x' }],
    [`PUT ${R}/contents/a.md`, { branch: '' }],
    [`PUT ${R}/contents/a.md`, { branch: 'agent/x~1' }],
    [`PUT ${R}/contents/a.md`, { branch: 'agent/../main' }],
    [`PUT ${R}/contents/a.md`, { branch: 'main\u0000agent/x' }],
    [`PUT ${R}/contents/a.md`, { branch: ' main' }],
    [`PUT ${R}/contents/a.md`, { branch: '@{-1}' }],
    [`PUT ${R}/contents/a.md`, { branch: 'evil:main' }],
    [`POST ${R}/git/refs`, { ref: 'heads/agent/x' }],
    [`POST ${R}/git/refs`, { ref: 'agent/x' }],
    [`PATCH ${R}/git/refs/refs/heads/agent/x`, { sha: 'abc' }],
    [`PATCH ${R}/git/refs/heads/agent/x/`, { sha: 'abc' }],
    [`PATCH ${R}/git/refs/heads/agent;x`, { sha: 'abc' }],
    [`PATCH ${R}/git/refs/heads/agent%2520x`, { sha: 'abc' }],
    [`PATCH ${R}/git/Refs/heads/agent/x`, { sha: 'abc' }],
    [`PATCH ${R}/git/refs`, { sha: 'abc' }],
    [`DELETE ${R}/git/refs/heads`, undefined],
    [`POST ${R}/releases`, { name: 'v1' }],
    [`POST ${R}/releases`, { tag_name: 'refs/tags/v1' }],
    [`PATCH ${R}/releases/7`, { draft: false }],
  ])('a call without a valid name of a ref is detected: %s %j', (line, body) => {
    const found = written(line, body);
    expect(found).toHaveLength(1);
    expect(`${found}`).toMatch(/^(?:create|update|delete) (?:\?|refs\/heads)$/);
  });

  test.each([
    `PUT ${R}/pulls/7/merge`,
    `PUT ${R}/pulls/7/merge-async`,
    `PUT ${R}/pulls/7/update-branch`,
    `PUT ${R}/Pulls/7/Merge.json`,
    `PATCH ${R}`,
    `DELETE ${R}`,
    `POST ${R}/transfer`,
    `POST ${R}/forks`,
    `POST ${R}/generate`,
    'POST /user/repos',
    'POST /orgs/acme/repos',
    'DELETE /orgs/acme',
    `POST ${R}/keys`,
    'POST /user/keys',
    // In no scope, and in no table.
    'POST /gists',
    `PUT ${R}/import`,
    `POST ${R}/code-scanning/alerts/1/autofix/commits`,
    `POST ${R}/stacks`,
    `POST ${R}/security-advisories/GHSA-x/forks`,
    'POST /agents/repos/acme/app/tasks',
    'POST /repositories/42/git/refs',
    'POST /git/acme/app/git-receive-pack',
    // Gives others push access.
    `PUT ${R}/collaborators/ann`,
    `PATCH ${R}/invitations/7`,
    'PUT /orgs/acme/memberships/ann',
    'POST /orgs/acme/invitations',
    'POST /orgs/acme/teams',
    'PATCH /orgs/acme/teams/core',
    'PUT /orgs/acme/teams/core/memberships/ann',
    'PUT /orgs/acme/teams/core/repos/acme/app',
    'PUT /Orgs/acme/Teams/core/repos/acme/app/',
    'PUT /orgs/acme/organization-roles/users/ann/8136',
    'PATCH /orgs/acme/organization-roles/8136',
    'PUT /orgs/acme/copilot/coding-agent/permissions',
    'PUT /orgs/acme/copilot/coding-agent/permissions/repositories/42',
    `PUT ${R}/automated-security-fixes`,
    'POST /user/codespaces/silver-lamp/start',
    'PATCH /orgs/acme',
  ])('the refs are unknown: %s', (line) => {
    expect(written(line, { branch: 'agent/x', ref: 'refs/heads/agent/x' })).toEqual(expect.any(String));
  });
});

describe('refs that are written because of a member of the body', () => {
  const ASSIGNING = [
    `POST ${R}/issues`,
    `PATCH ${R}/issues/7`,
    `POST ${R}/issues/7`,
    `POST ${R}/issues/7/assignees`,
    `PATCH ${R}/Issues/7.json`,
    `PATCH ${R}/dependabot/alerts/1`,
    `PATCH ${R}/code-scanning/alerts/1`,
    `PATCH ${R}/secret-scanning/alerts/1`,
  ];

  test.each<JsonObject>([
    { agent_assignment: { target_repo: 'acme/app' } },
    { agentAssignment: {} },
    { assignees: ['ann', 'copilot-swe-agent[bot]'] },
    { assignees: ['Copilot'] },
    { Assignees: 'COPILOT' },
    { assignee: '@copilot' },
    { assignee: ' copilot-swe-agent' },
    { assignee: 'Anthropic-Code-Agent[Bot]' },
    { assignees: ['ann', 'openai-code-agent'] },
    { assignee: 'anthropic-code-agent' },
    { assignees: ['Claude'] },
    { assignee: '@codex' },
    { assignees: [{ login: 'Copilot', rationale: 'x' }] },
    { 'assignees[]': 'Copilot' },
    { assignees: [], ASSIGNEES: ['Copilot'] },
  ])('assigning an agent of GitHub makes the refs unknown: %j', (body) => {
    for (const line of ASSIGNING) expect(written(line, body), line).toMatch(/^an agent of GitHub writes branches/);
  });

  test.each<JsonObject>([
    {},
    { title: 'x', assignee: null },
    { assignee: '', assignees: [] },
    { assignees: ['ann', 'bot', 'copilot-fan', '[bot]-x', 'claude-fan', 'code-agent'] },
    { assignees: [{ login: 'ann', suggest: true }] },
    { body: 'Ask Copilot, or dependabot[bot]', labels: ['copilot'] },
  ])('assigning a person, or nobody, writes no ref: %j', (body) => {
    for (const line of ASSIGNING) expect(written(line, body), line).toEqual([]);
  });

  test.each([
    'assignees[]=Copilot',
    'agent_assignment[target_repo]=acme/app',
    'assignee.login=ann',
    'x=1;Assignee=ann',
  ])('naming the members in the query makes the refs unknown: %s', (query) => {
    expect(written(`POST ${R}/issues?${query}`, { title: 'x' })).toMatch(/^the query must not name/);
    expect(written(`DELETE ${R}/issues/7/assignees?${query}`)).toEqual([]);
  });

  test.each([`POST ${R}/security-advisories`, `POST ${R}/security-advisories/reports`])(
    'a private fork makes the refs unknown: %s',
    (line) => {
      for (const start_private_fork of [true, 'true', 1, 'false', null, [true]])
        expect(written(line, { start_private_fork }), `${start_private_fork}`).toMatch(/^a new repository begins/);
      expect(written(line, { start_private_fork: false, StartPrivateFork: true })).toMatch(/^a new repository begins/);
      expect(written(`${line}?start_private_fork=true`, {})).toMatch(/^the query must not name/);
      expect(written(line, { summary: 'x', start_private_fork: false })).toEqual([]);
      expect(written(line, { summary: 'x' })).toEqual([]);
    },
  );

  test.each(['collaborating_users', 'collaborating_teams', 'collaboratingUsers'])(
    '%s of an advisory makes the refs unknown',
    (member) => {
      const line = `PATCH ${R}/security-advisories/GHSA-x`;
      expect(written(line, { [member]: ['ann'] })).toMatch(/may push to its private fork/);
      expect(written(line, { summary: 'x', state: 'published' })).toEqual([]);
    },
  );

  test('setting or removing a custom domain makes the refs unknown', () => {
    for (const cname of ['docs.acme.example', null])
      for (const method of ['PUT', 'POST'])
        expect(written(`${method} ${R}/pages`, { cname })).toMatch(/^a custom domain is committed/);
    expect(written(`POST ${R}/pages`, { build_type: 'workflow' })).toEqual([]);
    expect(written(`PUT ${R}/pages`, { https_enforced: true })).toEqual([]);
  });
});

test.each([
  `DELETE ${R}/invitations/7`,
  'DELETE /orgs/acme/copilot/coding-agent/permissions/repositories/42',
  'POST /orgs/acme/copilot/billing/selected_users',
  `POST ${R}/issues`,
  `PATCH ${R}/issues/7`,
  `PUT ${R}/issues/7/labels`,
  `DELETE ${R}/issues/7/labels/bug`,
  `POST ${R}/issues/7/comments`,
  `POST ${R}/git/blobs`,
  `POST ${R}/git/trees`,
  `POST ${R}/git/commits`,
  `POST ${R}/git/tags`,
  `POST ${R}/commits/abc/comments`,
  `POST ${R}/pulls`,
  `PATCH ${R}/pulls/7`,
  `POST ${R}/pulls/7/reviews`,
  `PUT ${R}/pulls/7/reviews/1/dismissals`,
  `POST ${R}/pulls/7/comments/1/replies`,
  `DELETE ${R}/pulls/7/requested_reviewers`,
  `POST ${R}/statuses/abc`,
  `POST ${R}/check-runs/1/rerequest`,
  `POST ${R}/dispatches`,
  `POST ${R}/actions/workflows/ci.yml/dispatches`,
  `PUT ${R}/actions/workflows/ci.yml/disable`,
  `POST ${R}/actions/runs/1/rerun-failed-jobs`,
  `POST ${R}/actions/runs/1/pending_deployments`,
  `DELETE ${R}/actions/caches`,
  `POST ${R}/releases/generate-notes`,
  `DELETE ${R}/releases/7`,
  `DELETE ${R}/releases/assets/7`,
  `POST ${R}/deployments/7/statuses`,
  `GET ${R}/contents/a.md`,
  `GET ${R}/git/ref/heads/main`,
  'POST /git/acme/app/git-upload-pack',
  'POST /markdown',
])('writes no ref: %s', (line) => {
  expect(written(line, { branch: 'main', head: 'main', base: 'main' })).toEqual([]);
});
