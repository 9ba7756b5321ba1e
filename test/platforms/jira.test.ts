import { describe, expect, test } from 'vitest';
import { parsePlatformEntry } from '../../broker/platforms/builtin.ts';
import type { JsonObject } from '../../broker/policy/facts.ts';
import { refuseRecipients } from '../../broker/policy/recipients.ts';
import { classifierOf, rulesOf } from './classified.ts';

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

test.each<[JsonObject, string[] | undefined]>([
  [{ users: [{ accountId: '557058:f58131cb' }], groups: [{ name: 'jira users' }] }, undefined],
  [{ groupIds: ['g1'] }, undefined],
  [{ users: [{ accountId: '557058:F58131CB' }] }, ['557058:F58131CB']],
  [{ groups: [{ groupId: 'g2' }], groupIds: ['g1'] }, ['g2']],
  [{ groups: [{ name: 'everyone' }] }, ['everyone']],
  // Whom these reach stands in the issue.
  [{ groupIds: ['g1'], watchers: true }, ['true']],
  [{ watchers: true }, ['true']],
  [{}, []],
])('a notification to %j under a recipient constraint: %j', (to, violating) => {
  const allowed = ['557058:f58131cb', 'jira users', 'g1'];
  const path = '/rest/api/3/issue/PROJ-42/notify';
  const call = { method: 'POST', path, query: '', headers: {}, body: { to } } as const;
  expect(refuseRecipients(allowed, rulesOf('jira'), call)?.violating).toEqual(violating);
});

describe('the address of the customer’s own site', () => {
  test('is asked for until it is given', () => {
    const parsed = parsePlatformEntry({ use: 'jira' });
    expect(parsed.success).toBe(false);
    expect(parsed.error?.issues).toMatchObject([
      { path: ['base_url'], message: 'is a placeholder; write the address of your own site' },
    ]);
  });

  test.each(['https://acme.atlassian.net', 'https://api.atlassian.com/ex/jira/1324a887-45db-1bf4-1e99-ef0ff456d421'])(
    'is then taken: %s',
    (base_url) => {
      expect(parsePlatformEntry({ use: 'jira', base_url }).data?.base_url).toBe(base_url);
    },
  );
});
