import { describe, expect, test } from 'vitest';
import type { CallAsk } from '../../broker/policy/facts.ts';
import { classify, compilePlatformRules } from '../../broker/policy/operation.ts';
import { graphqlCall as call } from './world.ts';

describe('the GraphQL endpoint of a REST platform', () => {
  const rules = compilePlatformRules({
    kind: 'rest',
    graphql: { path: '/graphql' },
    scopes: {
      'd:get': ['GET /**'],
      'd:post': ['POST /**'],
      'd:query': ['query *'],
      'd:issue': ['mutation issueCreate'],
    },
  });
  const at = (path: string, rest: Partial<CallAsk> = {}) =>
    classify(rules, call({ query: '{ viewer }' }, { path, ...rest }));

  test('is classified by the document and never by an http rule', () => {
    expect(at('/graphql')).toMatchObject({ scopes: ['d:query'] });
    expect(at('/graphql', { body: { query: 'mutation { issueCreate { id } }' } })).toMatchObject({
      scopes: ['d:issue'],
    });
    expect(at('/graphql', { body: { query: 'mutation { other }' } })).toMatchObject({ kind: 'unclassified' });
    expect(at('/graphql', { body: {} }).kind).toBe('malformed');
    expect(at('/other')).toMatchObject({ scopes: ['d:post'] });
  });

  test.each(['/graphql/', '/GraphQL', '/graphql;x', '/%67raphql'])(
    'another spelling of the path does not bypass it: %s',
    (path) => {
      expect(at(path)).toEqual({ kind: 'unclassified' });
      expect(at(path, { method: 'GET' })).toEqual({ kind: 'unclassified' });
    },
  );

  test('a GET of the GraphQL endpoint is in no scope', () => {
    expect(at('/graphql', { method: 'GET', body: undefined, query: 'query=%7Bviewer%7D' })).toEqual({
      kind: 'unclassified',
    });
  });
});
