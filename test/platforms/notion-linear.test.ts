import { describe, expect, test } from 'vitest';
import type { CallAsk, JsonObject } from '../../broker/policy/facts.ts';
import { maskOfCall } from '../../broker/policy/masks/checks.ts';
import { memberMask } from '../../broker/policy/masks/members.ts';
import type { Question } from '../../broker/policy/rules/selection.ts';
import { classifierOf, manifestOf, rulesOf } from './classified.ts';

describe('Notion', () => {
  const ask = classifierOf('notion');

  test('sends the API version for which its scopes were written', () => {
    expect(manifestOf('notion').headers).toEqual({ 'notion-version': '2025-09-03' });
  });

  test.each([
    ['GET /pages/59833787-2cf9-4fdf-8782-e53db20768a5', 'pages.read'],
    ['POST /pages', 'pages.write'],
    ['PATCH /pages/p1', 'pages.write'],
    ['POST /pages/p1/move', 'pages.write'],
    ['GET /blocks/b1/children', 'blocks.read'],
    ['PATCH /blocks/b1/children', 'blocks.write'],
    ['DELETE /blocks/b1', 'blocks.delete'],
    ['POST /data_sources/d1/query', 'databases.read'],
    ['GET /databases/d1', 'databases.read'],
    ['POST /databases', 'databases.write'],
    ['PATCH /data_sources/d1', 'databases.write'],
    ['POST /search', 'search.read'],
    ['GET /comments', 'comments.read'],
    ['POST /comments', 'comments.write'],
    ['DELETE /comments/c1', 'comments.delete'],
    ['POST /file_uploads/f1/send', 'files.write'],
    ['GET /users/me', 'users.read'],
  ])('%s: %s', (operation, scope) => {
    expect(ask(operation)).toEqual([`notion:${scope}`]);
  });

  test.each([
    'DELETE /pages/p1',
    'POST /data_sources/d1',
    'GET /search',
    'POST /oauth/token',
    'POST /oauth/introspect',
    'GET /v1/pages/p1',
    'POST /blocks/b1/children',
  ])('in no scope: %s', (operation) => {
    expect(ask(operation)).toBe('unclassified');
  });
});

test.each<[JsonObject, string]>([
  [{ title: [] }, 'databases.write'],
  [{ properties: { Price: { name: 'Cost' } } }, 'databases.write'],
  [{ properties: { Price: { number: { format: null } } } }, 'databases.write'],
  [{ properties: { Name: { name: 'Title' }, Price: null } }, 'blocks.delete'],
  [{ Properties: { 'J%40cT': null } }, 'blocks.delete'],
])('Notion: removing a column needs the scope for deleting: %j', (body, scope) => {
  const ask = classifierOf('notion');
  for (const operation of ['PATCH /data_sources/d1', 'PATCH /databases/d1'])
    expect(ask(operation, body)).toEqual([`notion:${scope}`]);
});

describe('Linear', () => {
  const ask = classifierOf('linear');
  const graphql = (query: string) => ask('POST /', { query });

  test.each([
    ['{ viewer { id name } }', 'users.read'],
    ['query { issues(first: 10) { nodes { id title } } }', 'issues.read'],
    ['query One($id: String!) { issue(id: $id) { title comments { nodes { body } } } }', 'issues.read'],
    ['{ projects { nodes { id } } }', 'projects.read'],
    ['{ teams { nodes { id } } }', 'teams.read'],
    ['{ comments { nodes { body } } }', 'comments.read'],
    ['{ webhooks { nodes { url } } }', 'webhooks.read'],
    ['mutation { issueUpdate(id: "x", input: {}) { success } }', 'issues.write'],
    ['mutation { issueDelete(id: "x") { success } }', 'issues.delete'],
    ['mutation { commentCreate(input: {}) { success } }', 'comments.write'],
    ['mutation { projectDelete(id: "x") { success } }', 'projects.delete'],
    ['mutation { webhookCreate(input: {}) { success } }', 'webhooks.write'],
    ['mutation { organizationInviteCreate(input: {email: "a@x.example"}) { success } }', 'invites.write'],
  ])('%s: %s', (query, scope) => {
    expect(graphql(query)).toEqual([`linear:${scope}`]);
  });

  test.each([
    '{ teams { nodes { webhooks { nodes { url secret } } } } }',
    '{ viewer { name } team(id: "x") { webhooks { nodes { innocent: secret } } } }',
    'mutation { issueUpdate(id: "x", input: {}) { issue { team { webhooks { nodes { secret } } } } } }',
    '{ notifications { nodes { user { settings { calendarHash } } } } }',
  ])('keys of Linear are masked wherever a query reaches them: %s', (query) => {
    const call: CallAsk = { method: 'POST', path: '/', query: '', headers: {}, body: { query } };
    const mask = maskOfCall([], { platform: rulesOf('linear'), ask: { call } } as Question);
    const members = memberMask(mask?.members ?? []);
    const [, name = ''] = /(\w+)(?: \})+$/.exec(query) ?? [];
    const answered = query.includes('innocent') ? 'innocent' : name;
    expect(members?.isNamed(answered)).toBe(true);
    expect(members?.isNamed('url')).toBe(false);
  });

  test('creating an issue falls under a scope of its own, and under the writing scope', () => {
    expect(graphql('mutation { issueCreate(input: {}) { success } }')).toEqual([
      'linear:issues.create',
      'linear:issues.write',
    ]);
  });

  test.each([
    'mutation { organizationDelete(input: {}) { success } }',
    'mutation { userSuspend(id: "x") { success } }',
    'mutation { oauthApplicationCreate(input: {}) { success } }',
    'mutation { logoutAllSessions { success } }',
    'query { authenticationSessions { id } }',
    'query { issues { nodes { id } } webhooks { nodes { url } } }',
    'mutation { issueCreate(input: {}) { success } issueDelete(id: "x") { success } }',
    'subscription { issueCreated { id } }',
  ])('in no scope: %s', (query) => {
    expect(graphql(query)).toBe('unclassified');
  });

  test.each(['GET /', 'POST /graphql', 'PUT /'])('the only endpoint is POST /, not %s', (operation) => {
    expect(ask(operation, { query: '{ viewer { id } }' })).toBe('unclassified');
  });
});
