import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { CallAsk, Method } from '../../broker/policy/facts.ts';
import { classify, compilePlatformRules, parseOperation } from '../../broker/policy/operation.ts';
import { compilePattern } from '../../broker/policy/pattern.ts';

const call = (method: Method, path: string): CallAsk => ({
  method,
  path,
  query: '',
  headers: {},
  body: undefined,
});

const rest = (scopes: Record<string, string[]>) => compilePlatformRules({ kind: 'rest', scopes });

const demo = rest({
  'demo:read': ['GET /items', 'GET /items/**'],
  'demo:write': ['POST /items', 'PATCH /items/*'],
  'demo:admin': ['DELETE /items/*', 'GET /items/*/secrets'],
  'demo:all': ['PATCH /items/*'],
});

const UNCLASSIFIED = { kind: 'unclassified' };

describe('an operation', () => {
  test.each([
    ['GET /path/*', 'http'],
    ['DELETE /', 'http'],
    ['query *', 'graphql'],
    ['query name*', 'graphql'],
    ['mutation issueCreate', 'graphql'],
    ['tool search_*', 'tool'],
  ])('%s is parsed', (text, kind) => {
    expect(parseOperation(text)).toMatchObject({ source: text, kind });
  });

  test.each([
    ['get /path', 'is not an operation; write "GET /path/*", "query name*", "mutation name" or "tool name_*"'],
    ['GET  /path', 'is not an operation'],
    ['GET /path ', 'is not an operation'],
    ['HEAD /path', 'HEAD is not a method; use one of GET, POST, PUT, PATCH, DELETE'],
    ['GET path', 'is not an operation'],
    ['GET /a/{id}', 'write `*` for a variable segment'],
    ['GET /a?b=c', 'matches the path only'],
    ['subscription *', 'is not an operation'],
    ['query a b', 'is not an operation'],
    ['mutation issue-create', 'is not an operation'],
    ['tool a/b', 'is not an operation'],
    ['', 'is not an operation'],
  ])('%s is refused with a sentence that describes what is allowed', (text, sentence) => {
    expect(() => parseOperation(text)).toThrow(sentence);
  });

  test('must match the kind of its platform, and the error names the scope', () => {
    expect(() => rest({ 'demo:x': ['tool a'] })).toThrow(
      'scope demo:x: "tool a": only a platform of kind mcp has tools',
    );
    expect(() => rest({ 'demo:x': ['query a'] })).toThrow('only with a GraphQL endpoint');
    expect(() => compilePlatformRules({ kind: 'graphql', scopes: { 'd:x': ['GET /a'] } })).toThrow('graphql platform');
    expect(() => compilePlatformRules({ kind: 'mcp', scopes: { 'd:x': ['GET /a'] } })).toThrow('mcp platform');
    const withGraphql = { kind: 'rest' as const, graphql: { path: '/graphql' } };
    expect(() => compilePlatformRules({ ...withGraphql, scopes: { 'd:x': ['POST /graphql'] } })).toThrow(
      'by their document',
    );
    expect(() => compilePlatformRules({ ...withGraphql, scopes: { 'd:x': ['query a', 'GET /a'] } })).not.toThrow();
  });
});

describe('classifying an endpoint', () => {
  test('the most specific rule decides, with every scope that lists it', () => {
    expect(classify(demo, call('GET', '/items/1'))).toMatchObject({
      kind: 'classified',
      scopes: ['demo:read'],
      operations: ['GET /items/**'],
    });
    expect(classify(demo, call('GET', '/items/1/secrets'))).toMatchObject({ scopes: ['demo:admin'] });
    expect(classify(demo, call('PATCH', '/items/1'))).toMatchObject({ scopes: ['demo:write', 'demo:all'] });
  });

  test('PA-18 an endpoint with another method is another operation', () => {
    expect(classify(demo, call('DELETE', '/items/1'))).toMatchObject({ scopes: ['demo:admin'] });
    expect(classify(demo, call('PUT', '/items/1'))).toEqual(UNCLASSIFIED);
  });

  test.each(['/', '/other', '/item', '/itemsx', '/items1/x', '/v1/items'])('an endpoint in no rule: %s', (path) => {
    expect(classify(demo, call('POST', path))).toEqual(UNCLASSIFIED);
  });

  test('PA-11 and PA-12 another letter case or a trailing slash makes another endpoint', () => {
    expect(classify(demo, call('GET', '/Items'))).toEqual(UNCLASSIFIED);
    expect(classify(demo, call('POST', '/items/'))).toEqual(UNCLASSIFIED);
    expect(classify(demo, call('POST', '/items'))).toMatchObject({ scopes: ['demo:write'] });
  });

  test.each(['/items/1/Secrets', '/items/1/secrets/', '/items/1/secrets;v=1', '/items/1/secret%73'])(
    'another spelling of a more specific endpoint does not fall under the wider rule: %s',
    (path) => {
      expect(classify(demo, call('GET', path))).toEqual(UNCLASSIFIED);
    },
  );

  test('capitals, escapes and semicolons in data do not change the classification', () => {
    expect(classify(demo, call('GET', '/items/README.md'))).toMatchObject({ scopes: ['demo:read'] });
    expect(classify(demo, call('GET', '/items/a%20b;c'))).toMatchObject({ scopes: ['demo:read'] });
  });

  test("names of JavaScript's built-in members are ordinary names", () => {
    const odd = rest({ 'demo:x': ['GET /constructor/*'], 'demo:y': ['GET /hasOwnProperty'] });
    expect(classify(odd, call('GET', '/constructor/1'))).toMatchObject({ scopes: ['demo:x'] });
    expect(classify(odd, call('GET', '/__proto__/1'))).toEqual(UNCLASSIFIED);
    expect(classify(odd, call('GET', '/toString'))).toEqual(UNCLASSIFIED);
  });

  test('a platform without scopes classifies nothing', () => {
    expect(classify(rest({}), call('GET', '/'))).toEqual(UNCLASSIFIED);
    expect(classify(rest({ 'demo:ghost': [] }), call('GET', '/'))).toEqual(UNCLASSIFIED);
  });

  test('the index returns the same result as a search through every rule', () => {
    const segment = fc.constantFrom('a', 'b', 'B', 'a.b', '*', 'a*', 'a.*', '**');
    const pattern = fc.array(segment, { minLength: 1, maxLength: 4 }).map((segments) => `/${segments.join('/')}`);
    const scope = fc.constantFrom('s:1', 's:2', 's:3');
    const path = fc
      .array(fc.constantFrom('a', 'b', 'A', 'B', 'ab', 'b;x', 'c%2FA', 'a.b', 'b.', 'a%20', '%EF%BD%81'), {
        minLength: 1,
        maxLength: 4,
      })
      .chain((segments) => fc.constantFrom('', '/').map((end) => `/${segments.join('/')}${end}`));
    fc.assert(
      fc.property(
        fc.array(fc.tuple(scope, pattern), { maxLength: 12 }),
        fc.array(path, { maxLength: 8 }),
        (rules, paths) => {
          const scopes: Record<string, string[]> = {};
          for (const [id, text] of rules) scopes[id] = [...(scopes[id] ?? []), `GET ${text}`];
          const compiled = rest(scopes);
          for (const one of paths) {
            const found = classify(compiled, call('GET', one));
            expect(found.kind === 'classified' ? [...found.scopes].sort() : []).toEqual(byLookingAtAll(rules, one));
          }
        },
      ),
      { numRuns: 300 },
    );
  });

  test('a lookup among hundreds of rules takes microseconds', () => {
    const scopes: Record<string, string[]> = {};
    for (let i = 0; i < 300; i++)
      scopes[`s:${i % 20}`] = [...(scopes[`s:${i % 20}`] ?? []), `GET /orgs/*/things${i}/*`];
    const rules = rest(scopes);
    const started = performance.now();
    for (let i = 0; i < 20_000; i++) classify(rules, call('GET', `/orgs/acme/things${i % 300}/x`));
    // 2 µs each on a quiet machine; the bound leaves room for a busy one.
    expect((performance.now() - started) / 20_000).toBeLessThan(0.05);
  });
});

function byLookingAtAll(rules: readonly [string, string][], path: string): string[] {
  const all = rules.map(([scope, text]) => ({ scope, pattern: compilePattern(text, 'path') }));
  const top = (found: typeof all) => {
    const best = Math.max(...found.map(({ pattern }) => pattern.specificity));
    return { best, scopes: found.filter(({ pattern }) => pattern.specificity === best).map(({ scope }) => scope) };
  };
  const exact = top(all.filter(({ pattern }) => pattern.matches(path)));
  const any = top(all.filter(({ pattern }) => pattern.matchesAnySpelling(path)));
  const kept = any.best > exact.best ? exact.scopes.filter((scope) => any.scopes.includes(scope)) : exact.scopes;
  return [...new Set(kept)].sort();
}

describe('a tool of an MCP server', () => {
  const tools = compilePlatformRules({
    kind: 'mcp',
    scopes: { 't:search': ['tool search_*'], 't:purge': ['tool search_purge'], 't:write': ['tool write.note'] },
  });

  test('is called by a POST to /tools/<name>, and the most specific rule gives its scope', () => {
    expect(classify(tools, call('POST', '/tools/search_docs'))).toMatchObject({ scopes: ['t:search'] });
    expect(classify(tools, call('POST', '/tools/search_purge'))).toMatchObject({ scopes: ['t:purge'] });
    expect(classify(tools, call('POST', '/tools/write.note'))).toMatchObject({ scopes: ['t:write'] });
  });

  test.each([
    ['GET', '/tools/search_docs'],
    ['POST', '/tools/Search_docs'],
    ['POST', '/tools/search_docs/'],
    ['POST', '/tools/search_docs/x'],
    ['POST', '/tools'],
    ['POST', '/search_docs'],
    ['POST', '/tools/search_%20'],
  ] as const)('%s %s calls no tool', (method, path) => {
    expect(classify(tools, call(method, path))).toEqual(UNCLASSIFIED);
  });
});
