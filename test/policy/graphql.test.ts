import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../broker/policy/facts.ts';
import { readGraphqlCall } from '../../broker/policy/graphql/call.ts';
import { GRAPHQL_LIMITS } from '../../broker/policy/graphql/graphql.ts';
import { classify, compilePlatformRules } from '../../broker/policy/operation.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { graphqlCall as call } from './world.ts';

const rules = compilePlatformRules({
  kind: 'graphql',
  scopes: {
    'g:read': ['query *'],
    'g:audit': ['query auditLog'],
    'g:create': ['mutation issueCreate'],
    'g:write': ['mutation issueCreate', 'mutation issueUpdate'],
    'g:any': ['mutation *'],
    'g:delete': ['mutation issueDelete'],
  },
});

const asked = (query: string, rest: JsonObject = {}) => classify(rules, call({ query, ...rest }));
const scopes = (query: string, rest: JsonObject = {}) => {
  const found = asked(query, rest);
  return found.kind === 'classified' ? found.scopes : found.kind;
};

describe('GQ-01 the kind of the operation and its root fields classify a call', () => {
  test.each([
    ['{ viewer { id } }', ['g:read']],
    ['query { viewer { id } }', ['g:read']],
    ['query Name($x: Int = 1) @live { viewer(x: $x) { id } }', ['g:read']],
    ['{ mutation: viewer }', ['g:read']],
    ['{ auditLog { id } }', ['g:audit']],
    ['mutation { issueCreate(title: "x") { id } }', ['g:create', 'g:write']],
    ['mutation { issueUpdate { id } }', ['g:write']],
    ['mutation { issueDelete }', ['g:delete']],
    ['mutation { deleteAll }', ['g:any']],
    ['mutation { viewer: deleteAll }', ['g:any']],
  ])('%s', (query, expected) => {
    expect(scopes(query)).toEqual(expected);
  });

  test('with several root fields, a call has the scopes that cover all of them', () => {
    expect(scopes('mutation { issueCreate { id } issueUpdate { id } }')).toEqual(['g:write']);
    expect(scopes('mutation { issueCreate { id } issueDelete }')).toBe('unclassified');
    expect(scopes('{ viewer { id } auditLog { id } }')).toBe('unclassified');
    expect(scopes('mutation { issueCreate { id } ...F } fragment F on Mutation { issueDelete }')).toBe('unclassified');
    expect(scopes('mutation { issueCreate { id } ... on Mutation { ... { issueDelete } } }')).toBe('unclassified');
    expect(scopes('mutation { issueCreate { id } issueDelete @skip(if: true) }')).toBe('unclassified');
  });

  test('__typename needs a rule of its own only when it is the only root field', () => {
    expect(scopes('mutation { issueDelete __typename }')).toEqual(['g:delete']);
    expect(scopes('{ __typename }')).toEqual(['g:read']);
    const narrow = compilePlatformRules({ kind: 'graphql', scopes: { 'g:x': ['query viewer'] } });
    expect(classify(narrow, call({ query: '{ __typename }' })).kind).toBe('unclassified');
  });
});

describe('the operation that runs', () => {
  const both = 'query A { viewer { id } } mutation B { issueDelete }';

  test('is the one named by operationName', () => {
    expect(scopes(both, { operationName: 'A' })).toEqual(['g:read']);
    expect(scopes(both, { operationName: 'B' })).toEqual(['g:delete']);
    expect(scopes('query A { viewer { id } }', { operationName: null })).toEqual(['g:read']);
  });

  test.each([
    [both, {}, 'say which one runs'],
    [both, { operationName: 'C' }, 'holds no operation named "C"'],
    [both, { operationName: '' }, 'is not the name of an operation'],
    [both, { operationName: ['A'] }, 'is not the name of an operation'],
    ['query A { a } mutation A { issueDelete }', { operationName: 'A' }, 'needs a different name'],
    ['{ a } mutation B { issueDelete }', {}, 'needs a different name'],
    ['fragment F on Query { a }', {}, 'holds no operation'],
  ])('%s with %j is refused', (query, rest, sentence) => {
    expect(asked(query, rest)).toMatchObject({ kind: 'malformed', error: expect.stringContaining(sentence) });
  });
});

describe('GQ-03 only a real parser decides what a document does', () => {
  test.each([
    ['a comment', '# mutation\n{ viewer { id } }', ['g:read']],
    ['a byte order mark', '\ufeff{ viewer { id } }', ['g:read']],
    ['a block string', '{ viewer(note: """\nmutation { issueDelete }\n""") { id } }', ['g:read']],
    ['commas and line ends', 'mutation,\r\n,{,issueDelete,}', ['g:delete']],
    ['a comment that ends in a carriage return', '# query\rmutation { issueDelete }', ['g:delete']],
  ])('%s', (_, query, expected) => {
    expect(scopes(query)).toEqual(expected);
  });

  test.each([
    '',
    'mutation',
    '{ viewer ',
    '{ viewer } }',
    'mut\\u0061tion { issueDelete }',
    'Mutation { issueDelete }',
    '{ a } extend type Query { b: Int }',
    'type Query { a: Int }',
    '{ a(x: "\u0000") ',
    '{ }',
    '{ ...F } fragment F on Query { ...G } fragment G on Query { }',
  ])('a document that does not parse, or selects nothing, is never forwarded: %j', (query) => {
    expect(asked(query).kind).toBe('malformed');
  });
});

describe('GQ-04 one call carries one document', () => {
  test.each([
    [undefined, 'data.query is missing'],
    [{}, 'data.query is missing'],
    [{ '0': { query: '{ viewer }' } }, 'data.query is missing'],
    [{ query: ['{ viewer }'] }, 'data.query is not a string'],
    [{ query: '{ viewer }', variables: [{}, {}] }, 'data.variables is not an object'],
    [{ query: '{ viewer }', variables: '{}' }, 'data.variables is not an object'],
    [{ query: '{ viewer }', mutation: 'x' }, 'data has a member "mutation"'],
    [{ query: '{ viewer }', Query: 'mutation { a }' }, 'data has a member "Query"'],
  ])('%j is refused', (body, sentence) => {
    const found = classify(rules, call(body as JsonObject | undefined));
    expect(found).toMatchObject({ kind: 'malformed', error: expect.stringContaining(sentence) });
  });

  test('a query string in addition to the body is refused, because some servers read it first', () => {
    const twice = call({ query: '{ viewer { id } }' }, { query: 'query=mutation%7BissueDelete%7D' });
    expect(classify(rules, twice)).toMatchObject({ kind: 'malformed', error: expect.stringContaining('query string') });
  });
});

describe('GQ-05 limits', () => {
  const aliases = (n: number) => Array.from({ length: n }, (_, i) => `a${i}: x`).join(' ');
  const nested = (depth: number) => `${'{ a '.repeat(depth)}${'}'.repeat(depth)}`;

  test.each([
    [
      'root fields',
      `{ ${Array.from({ length: 20 }, (_, i) => `f${i}`).join(' ')} }`,
      `{ ${Array.from({ length: 21 }, (_, i) => `f${i}`).join(' ')} }`,
    ],
    ['aliases', `{ v { ${aliases(20)} } }`, `{ v { ${aliases(21)} } }`],
    ['depth', nested(GRAPHQL_LIMITS.depth), nested(GRAPHQL_LIMITS.depth + 1)],
    ['tokens', `{ v { ${'x '.repeat(1_990)} } }`, `{ v { ${'x '.repeat(2_000)} } }`],
    ['characters', `{ v } #${'x'.repeat(65_000)}`, `{ v } #${'x'.repeat(200_000)}`],
    ['fields that fragments multiply', `{ v { ...F0 } } ${doubling(5)}`, `{ v { ...F0 } } ${doubling(12)}`],
  ])('%s: accepted at the limit, refused above it', (_, within, over) => {
    expect(scopes(within)).toEqual(['g:read']);
    expect(asked(over).kind).toBe('malformed');
  });

  test.each([
    '{ ...A } fragment A on Query { ...A }',
    '{ v { ...A } } fragment A on V { x { ...B } } fragment B on V { y { ...A } }',
    '{ viewer } fragment A on V { ...B } fragment B on V { ...A }',
  ])('circular fragments are refused: %s', (query) => {
    expect(asked(query)).toMatchObject({ kind: 'malformed', error: expect.stringContaining('contains itself') });
  });

  test('aliases in fragments count as often as the fragments are used', () => {
    const query = `{ v { a { ...F } b { ...F } c { ...F } } } fragment F on V { ${aliases(7)} }`;
    expect(asked(query)).toMatchObject({ kind: 'malformed', error: expect.stringContaining('aliases') });
  });

  test('a document at every limit is classified quickly', () => {
    const query = `{ v { ...F0 } } ${doubling(120)}`;
    const started = performance.now();
    expect(asked(query).kind).toBe('malformed');
    expect(performance.now() - started).toBeLessThan(scaledTimeout(1_000));
  });

  test.each([
    ['{ ...Gone }', 'without defining it'],
    ['{ ...F } fragment F on Q { a } fragment F on Q { b }', 'defines the fragment F twice'],
    ['mutation { issueCreate(a: 1, a: 2) }', 'gives a twice'],
    ['mutation { issueCreate(a: [{ b: 1, b: 2 }]) }', 'gives b twice'],
    ['mutation ($a: ID = 1, $b: ID, $a: ID = 2) { issueCreate(a: $a) }', 'defines the variable a twice'],
  ])('documents that servers read differently are refused: %s', (query, sentence) => {
    expect(asked(query)).toMatchObject({ kind: 'malformed', error: expect.stringContaining(sentence) });
  });
});

/** Fragments that each use the next one twice, under fields of different names. */
function doubling(levels: number): string {
  const fragment = (i: number) => `fragment F${i} on V { ...F${i + 1} ... on V { x ...F${i + 1} } }`;
  return `${Array.from({ length: levels }, (_, i) => fragment(i)).join(' ')} fragment F${levels} on V { x }`;
}

describe('GQ-06 documents that cannot be inspected are in no scope', () => {
  test.each<[JsonObject, RegExp]>([
    [{ extensions: { persistedQuery: { version: 1, sha256Hash: 'aa' } } }, /^data\.extensions is not accepted/],
    [
      { query: '{ viewer { id } }', extensions: { persistedQuery: { version: 1, sha256Hash: 'aa' } } },
      /^data\.extensions is not accepted/,
    ],
    [{ query: '{ viewer { id } }', extensions: { anything: true } }, /^data\.extensions is not accepted/],
    [{ id: 'abc' }, /a member "id", which names a stored document/],
    [{ doc_id: '123', variables: {} }, /a member "doc_id", which/],
    [{ documentId: 'sha256:aa' }, /a member "documentId", which/],
    [{ queryId: 'x' }, /a member "queryId", which/],
    [{ query: '{ viewer { id } }', doc_id: '123' }, /send the document itself in data\.query$/],
    [{ query: '{ viewer { id } }', hash: 'x' }, /a member "hash", which/],
  ])('%j, with the reason in the refusal', (body, why) => {
    expect(classify(rules, call(body))).toEqual({ kind: 'unclassified', why: expect.stringMatching(why) });
  });

  test('empty extensions are accepted', () => {
    expect(scopes('{ viewer { id } }', { extensions: {}, variables: null, operationName: null })).toEqual(['g:read']);
  });
});

describe('GQ-08 documents with several answers are in no scope', () => {
  test.each([
    ['subscription { issueCreated { id } }', /^data\.query is a subscription/],
    ['{ viewer { ... @defer { id } } }', /^data\.query has @defer/],
    ['{ items @stream { id } }', /^data\.query has @stream/],
    ['{ viewer { ...F @defer(label: "x") } } fragment F on V { id }', /^data\.query has @defer/],
    ['{ ...F } fragment F on Q { items @stream { id } }', /^data\.query has @stream/],
  ])('%s, with the reason in the refusal', (query, why) => {
    expect(asked(query)).toEqual({ kind: 'unclassified', why: expect.stringMatching(why) });
  });
});

describe('GQ-09 the root fields listed by a scope are what it permits', () => {
  const narrow = compilePlatformRules({
    kind: 'graphql',
    scopes: { 'n:read': ['query issue*', 'query viewer'], 'n:odd': ['query issuePurge'] },
  });

  test('a query field that writes is in no scope unless it is listed', () => {
    expect(classify(narrow, call({ query: '{ sendMail(to: "x") }' }))).toEqual({
      kind: 'unclassified',
      why: 'no one scope covers the root field query sendMail',
    });
    expect(classify(narrow, call({ query: '{ issues { id } }' }))).toMatchObject({ scopes: ['n:read'] });
    expect(classify(narrow, call({ query: '{ issuePurge }' }))).toMatchObject({ scopes: ['n:odd'] });
  });

  test('a refusal lists the fields of different scopes, but not all of very many', () => {
    expect(classify(narrow, call({ query: '{ viewer { id } issuePurge }' }))).toEqual({
      kind: 'unclassified',
      why: 'no one scope covers all root fields of this query, call them one by one: viewer (n:read), issuePurge (n:odd)',
    });
    const many = Array.from({ length: 20 }, (_, i) => `f${i}${'x'.repeat(100)}`).join(' ');
    const { why } = classify(narrow, call({ query: `{ ${many} }` })) as { why: string };
    expect(why).toMatch(/^no one scope covers the root field query f0x+…, .* and 15 more$/);
    expect(why.length).toBeLessThan(500);
  });
});

test('a GraphQL platform has one endpoint, "/", and one method', () => {
  const body = { query: '{ viewer { id } }' };
  expect(classify(rules, call(body))).toMatchObject({ scopes: ['g:read'] });
  expect(classify(rules, call(body, { path: '/graphql' }))).toEqual({ kind: 'unclassified' });
  expect(classify(rules, call(undefined, { method: 'GET' }))).toEqual({ kind: 'unclassified' });
});

test('a document is parsed once for all that reads it: the decision, masks, recipients, refs, the record', () => {
  const body = { query: '{ viewer { id } }' };
  expect(readGraphqlCall(body)).toBe(readGraphqlCall(body));
  expect(readGraphqlCall({ ...body })).not.toBe(readGraphqlCall(body));
});
