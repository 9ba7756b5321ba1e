import { expect, test } from 'vitest';
import { type CallAsk, UnreadBody } from '../../broker/policy/call-ask.ts';
import { compilePlatformRules } from '../../broker/policy/operation.ts';
import type { RulesSource } from '../../broker/policy/platform-rules.ts';
import { seenValuesOf } from '../../broker/policy/seen-values.ts';
import { call } from './world.ts';

const HOST: RulesSource = {
  kind: 'rest',
  graphql: { path: '/graphql' },
  scopes: {
    'codehost:issues.read': ['GET /repos/*/*/issues', 'query repository'],
    'codehost:issues.write': ['POST /repos/*/*/issues', 'mutation create*'],
    'codehost:repos.create': ['POST /user/repos', 'POST /orgs/*/repos', 'GET /user'],
  },
};
const MAIL: RulesSource = {
  kind: 'rest',
  scopes: { 'mail:send': ['POST /messages', 'POST /drafts/*/send'], 'mail:read': ['GET /messages'] },
  recipients: { 'POST /messages': ['/to', { pointer: '/cc/*', optional: true }], 'POST /drafts/*/send': ['/to'] },
};
const SERVER: RulesSource = { kind: 'mcp', scopes: { 'files:all': ['tool *'] } };

const post = (path: string, body?: CallAsk['body'], rest: Partial<CallAsk> = {}) =>
  call({ method: 'POST', path, body, ...rest });
const seenValues = (source: RulesSource, of: CallAsk) => {
  const { isChange, known, unknown } = seenValuesOf('p', compilePlatformRules(source), of);
  return { isChange, known: known.map(({ kind, value }) => `${kind} ${value}`), unknown };
};

test("the operation is the manifest's entry, or the tool itself", () => {
  expect(seenValues(HOST, post('/repos/Acme/App/issues', {}))).toEqual({
    isChange: true,
    known: ['operation p POST /repos/*/*/issues', 'repository p acme/app'],
    unknown: [],
  });
  const tool = seenValues(SERVER, post('/tools/delete_all', {}));
  expect(tool).toEqual({ isChange: true, known: ['operation p tool delete_all'], unknown: [] });
  expect(seenValues(HOST, post('/nowhere')).unknown).toEqual(['operation']);
});

test('a GET and a GraphQL query are not changes', () => {
  expect(seenValues(HOST, call({ path: '/repos/acme/app/issues' })).isChange).toBe(false);
  const query = post('/graphql', { query: '{ repository(owner: "a", name: "b") { id } }' });
  expect(seenValues(HOST, query)).toEqual({
    isChange: false,
    known: ['operation p query repository'],
    unknown: ['repository'],
  });
  const mutation = post('/graphql', { query: 'mutation { createIssue(input: {}) { id } }' });
  expect(seenValues(HOST, mutation)).toMatchObject({ isChange: true, unknown: ['repository'] });
  const git = { service: 'git-upload-pack' as const, refs: [] };
  expect(seenValues(HOST, post('/git/acme/App/git-upload-pack', undefined, { git }))).toEqual({
    isChange: false,
    known: ['operation p git-upload-pack', 'repository p acme/app'],
    unknown: [],
  });
});

test('recipients are normalised, and a recipient that cannot be parsed is unknown', () => {
  const named = (body: CallAsk['body']) => seenValues(MAIL, post('/messages', body));
  const ann = ['operation p POST /messages', 'recipient p Ann@x.example'];
  expect(named({ to: 'Ann@X.example' }).known).toEqual(ann);
  expect(named({ to: '"A" <Ann@x.example>', cc: [] })).toEqual({ isChange: true, known: ann, unknown: [] });
  expect(named({ to: 'Ann@x.example', cc: ['bob@y.example'] }).known).toContain('recipient p bob@y.example');
  expect(named({ to: 'Ann@x.example', cc: ['somebody'] }).unknown).toEqual(['recipient']);
  expect(named({}).unknown).toEqual(['recipient']);
  expect(named(new UnreadBody('it is too large')).unknown).toEqual(['recipient']);
  // The recipients of a stored draft are unknown.
  expect(seenValues(MAIL, post('/drafts/7/send', {})).unknown).toEqual(['recipient']);
  expect(seenValues(MAIL, call({ path: '/messages' })).unknown).toEqual([]);
});

test('a repository that is being created, or whose name is not plain, is unknown', () => {
  expect(seenValues(HOST, post('/orgs/acme/repos', { name: 'new' })).unknown).toEqual(['repository']);
  expect(seenValues(HOST, call({ path: '/repos/acme/a%2Fb/issues' })).unknown).toContain('repository');
  expect(seenValues(HOST, call({ path: '/user' }))).toEqual({
    isChange: false,
    known: ['operation p GET /user'],
    unknown: [],
  });
  // A platform without repository endpoints has no repositories.
  expect(
    seenValues({ kind: 'graphql', scopes: { 'p:read': ['query *'] } }, post('/', { query: '{ me { id } }' })).unknown,
  ).toEqual([]);
});

test('more than a hundred recipients are not stored, and count as a first time', () => {
  const to = (count: number) => ({ to: Array.from({ length: count }, (_, i) => `a${i}@x.example`).join(',') });
  const { known, unknown } = seenValues(MAIL, post('/messages', to(100)));
  expect([known.length, unknown]).toEqual([101, []]);
  expect(seenValues(MAIL, post('/messages', to(101)))).toMatchObject({
    known: ['operation p POST /messages'],
    unknown: ['recipient'],
  });
});
