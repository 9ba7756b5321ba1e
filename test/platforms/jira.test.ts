import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parsePlatformEntry } from '../../broker/platforms/builtin.ts';
import type { JsonObject } from '../../broker/policy/facts.ts';
import { refuseRecipients } from '../../broker/policy/recipients.ts';
import { classifierOf, manifestOf, rulesOf } from './classified.ts';

const ask = classifierOf('jira');

test.each([
  ['GET /rest/api/3/search/jql', 'search.read'],
  ['POST /rest/api/3/search/jql', 'search.read'],
  ['GET /rest/api/3/issue/picker', 'search.read'],
  ['GET /rest/api/3/issue/PROJ-42', 'issues.read'],
  ['GET /rest/api/3/issue/PROJ-42/transitions', 'issues.read'],
  ['POST /rest/api/3/issue/bulkfetch', 'issues.read'],
  ['POST /rest/api/3/issue', 'issues.create'],
  ['PUT /rest/api/3/issue/PROJ-42', 'issues.write'],
  ['POST /rest/api/3/issueLink', 'issues.write'],
  ['POST /rest/api/3/issue/PROJ-42/transitions', 'issues.transition'],
  ['DELETE /rest/api/3/issue/PROJ-42', 'issues.delete'],
  ['POST /rest/api/3/bulk/issues/delete', 'issues.delete'],
  ['PUT /rest/api/3/issue/archive', 'issues.archive'],
  ['POST /rest/api/3/issue/archive', 'issues.archive'],
  ['PUT /rest/api/3/issue/unarchive', 'issues.archive'],
  ['PUT /rest/api/3/filter/10001', 'filters.write'],
  ['PUT /rest/api/3/filter/defaultShareScope', 'filters.share'],
  ['POST /rest/api/3/issue/PROJ-42/notify', 'issues.notify'],
  ['GET /rest/api/3/issue/PROJ-42/comment', 'comments.read'],
  ['POST /rest/api/3/issue/PROJ-42/comment', 'comments.write'],
  ['DELETE /rest/api/3/issue/PROJ-42/comment/10001', 'comments.delete'],
  ['GET /rest/api/3/project/search', 'projects.read'],
  ['DELETE /rest/api/3/project/PROJ', 'projects.delete'],
  ['GET /rest/api/3/myself', 'users.read'],
  ['GET /rest/agile/1.0/board/7/sprint', 'boards.read'],
  ['POST /rest/agile/1.0/sprint/3/issue', 'sprints.write'],
])('%s: %s', (operation, scope) => {
  expect(ask(operation)).toEqual([`jira:${scope}`]);
});

test.each([
  'POST /rest/api/3/issue/PROJ-42',
  'PUT /rest/api/3/issue/PROJ-42/transitions',
  'DELETE /rest/api/3/user',
  'POST /rest/api/3/user',
  'POST /rest/api/3/group/user',
  'PUT /rest/api/3/project/PROJ/permissionscheme',
  'POST /rest/api/3/issuelink',
  'GET /rest/api/3/Issue/PROJ-42',
  'GET /rest/api/2/issue/PROJ-42',
  'GET /secure/attachment/1',
])('in no scope: %s', (operation) => {
  expect(ask(operation)).toBe('unclassified');
});

test.each<[JsonObject, string]>([
  [{ name: 'Shop', url: 'https://acme.example', categoryId: 7 }, 'projects.write'],
  [{ permissionScheme: 10001 }, 'projects.members.write'],
  [{ name: 'Shop', issueSecurityScheme: 10001 }, 'projects.members.write'],
  [{ notificationScheme: 10001 }, 'projects.members.write'],
  [{ leadAccountId: '557058:f58131cb' }, 'projects.members.write'],
])('PUT /rest/api/3/project/PROJ with %j: %s', (body, scope) => {
  expect(ask('PUT /rest/api/3/project/PROJ', body)).toEqual([`jira:${scope}`]);
});

/** The operation with the rule in parentheses, if the rule matches it and was not written for it. */
function matchedBeside(operation: string, rule: string): string | undefined {
  const [listed, asked] = [operation.split(/[ /]/), rule.split(/[ /]/)];
  const isAny = (segment: string | undefined) => segment === '*' || segment?.startsWith('{') === true;
  if (listed.length !== asked.length || rule.includes('**')) return undefined;
  if (!listed.every((one, i) => one === asked[i] || isAny(one) || isAny(asked[i]))) return undefined;
  if (listed.every((one, i) => isAny(one) === isAny(asked[i]))) return undefined;
  const [method, ...path] = listed.map((one, i) => (isAny(one) ? (isAny(asked[i]) ? 'x1' : asked[i]) : one));
  return `${method} ${path.join('/')}`;
}

test('operations that write do not fall under another scope because a rule of that scope matches their path', () => {
  const [, ...listed] = readFileSync(join(import.meta.dirname, 'coverage/jira.txt'), 'utf8')
    .trim()
    .split('\n');
  const rules = Object.values(manifestOf('jira').scopes).flat();
  const found = listed.flatMap((one) => rules.flatMap((rule) => matchedBeside(one, rule) ?? []));
  const writes = [...new Set(found)].filter((one) => !one.startsWith('GET ')).toSorted();
  expect(writes.map((one) => [one, ask(one)].flat().join(': '))).toEqual([
    'DELETE /rest/api/3/issue/properties/votes: unclassified',
    'DELETE /rest/api/3/issue/properties/watchers: unclassified',
    // Removes issues from their epic, as a move into another one does.
    'POST /rest/agile/1.0/epic/none/issue: jira:sprints.write',
    'PUT /rest/api/3/filter/defaultShareScope: jira:filters.share',
    'PUT /rest/api/3/issue/archive: jira:issues.archive',
    'PUT /rest/api/3/issue/properties/assignee: unclassified',
    'PUT /rest/api/3/issue/unarchive: jira:issues.archive',
  ]);
});

test.each<[JsonObject, string[] | undefined]>([
  [{ users: [{ accountId: '557058:f58131cb' }], groups: [{ name: 'jira users' }] }, undefined],
  [{ groupIds: ['g1'] }, undefined],
  [{ users: [{ accountId: '557058:F58131CB' }] }, ['557058:F58131CB']],
  [{ groups: [{ groupId: 'g2' }], groupIds: ['g1'] }, ['g2']],
  [{ groups: [{ name: 'everyone' }] }, ['everyone']],
  // The recipients of these are stored in the issue.
  [{ groupIds: ['g1'], watchers: true }, ['true']],
  [{ watchers: true }, ['true']],
  [{}, []],
])('a notification to %j under a recipient constraint: %j', (to, violating) => {
  const allowed = ['557058:f58131cb', 'jira users', 'g1'];
  const path = '/rest/api/3/issue/PROJ-42/notify';
  const call = { method: 'POST', path, query: '', headers: {}, body: { to } } as const;
  expect(refuseRecipients(allowed, rulesOf('jira'), call)?.violating).toEqual(violating);
});

describe("the address of the customer's own site", () => {
  test('is required', () => {
    const parsed = parsePlatformEntry({ use: 'jira' });
    expect(parsed.success).toBe(false);
    expect(parsed.error?.issues).toMatchObject([
      { path: ['base_url'], message: 'is a placeholder; write the address of your own site' },
    ]);
  });

  test.each(['https://acme.atlassian.net', 'https://api.atlassian.com/ex/jira/1324a887-45db-1bf4-1e99-ef0ff456d421'])(
    'may be %s',
    (base_url) => {
      expect(parsePlatformEntry({ use: 'jira', base_url }).data?.base_url).toBe(base_url);
    },
  );
});
