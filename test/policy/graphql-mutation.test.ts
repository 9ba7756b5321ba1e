import fc from 'fast-check';
import { buildSchema, graphqlSync } from 'graphql';
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../broker/policy/facts.ts';
import { readGraphqlCall } from '../../broker/policy/graphql/call.ts';
import { classify, compilePlatformRules } from '../../broker/policy/operation.ts';
import { sized } from '../world/runner/thorough.ts';
import { graphqlCall as call } from './world.ts';

describe('a mutation is never classified as a query', () => {
  const reading = compilePlatformRules({
    kind: 'graphql',
    scopes: { 'p:read': ['query *'], 'p:write': ['mutation *'] },
  });
  const schema = buildSchema(
    'type Query { a: Query b(x: String): String } type Mutation { m: Query b(x: String): String }',
  );

  /** Runs the document on a real server and returns whether anything was changed. */
  function changes(query: string, operationName: string | undefined): boolean {
    let changed = false;
    const change = () => {
      changed = true;
      return {};
    };
    const field = function (this: unknown, ..._: unknown[]) {
      return {};
    };
    const rootValue = { a: field, m: change };
    graphqlSync({ schema, source: query, rootValue, ...(operationName !== undefined && { operationName }) });
    return changed;
  }

  const alias = fc.constantFrom('', 'query: ', 'a: ');
  const ignored = fc.constantFrom(' ', '\n', ',', ' # mutation {\n', '\ufeff', ' #query\r');
  const selection = (root: string) =>
    fc
      .tuple(alias, fc.constantFrom('', ' @include(if: true)'), fc.constantFrom('plain', 'inline', 'fragment'))
      .map(([name, directive, shape]) => {
        const field = `${name}${root}${directive} { b(x: """mutation { m }""") }`;
        if (shape === 'plain') return { body: field, extra: '' };
        if (shape === 'inline') return { body: `... { ${field} }`, extra: '' };
        const on = root === 'm' ? 'Mutation' : 'Query';
        return { body: `...F${root}`, extra: ` fragment F${root} on ${on} { ${field} }` };
      });
  const operation = (kind: 'query' | 'mutation', name: string) =>
    selection(kind === 'query' ? 'a' : 'm').map(({ body, extra }) => ({ text: `${kind} ${name} { ${body} }`, extra }));

  test('for generated forms of operations', () => {
    const document = fc.record({
      read: operation('query', 'A'),
      write: operation('mutation', 'B'),
      order: fc.boolean(),
      chosen: fc.constantFrom('A', 'B', undefined),
      alone: fc.constantFrom('A', 'B', undefined),
      space: ignored,
    });
    fc.assert(
      fc.property(document, ({ read, write, order, chosen, alone, space }) => {
        const parts = alone === 'A' ? [read] : alone === 'B' ? [write] : order ? [read, write] : [write, read];
        const extra = parts.map((part) => part.extra).join('');
        const query = parts.map((part) => part.text).join(space) + space + extra;
        const body = { query, ...(chosen !== undefined && { operationName: chosen }) };
        const found = classify(reading, call(body));
        if (found.kind === 'classified') {
          expect(found.scopes).toEqual([changes(query, chosen) ? 'p:write' : 'p:read']);
        }
        if (alone !== undefined && (chosen === undefined || chosen === alone)) {
          expect(found).toMatchObject({ scopes: [alone === 'A' ? 'p:read' : 'p:write'] });
        }
      }),
      { numRuns: sized(150, 500) },
    );
  });

  test('for random sequences of tokens', () => {
    const token = fc.constantFrom(
      'query',
      'mutation',
      'fragment',
      'F',
      'on',
      'Query',
      'Mutation',
      '{',
      '}',
      'a',
      'm',
      'b',
      '...',
      ':',
      '"',
      '#',
      '\n',
      '@skip(if: false)',
    );
    fc.assert(
      fc.property(fc.array(token, { maxLength: 24 }), fc.constantFrom('F', 'a', undefined), (tokens, operationName) => {
        const query = tokens.join(' ');
        const found = classify(reading, call({ query, ...(operationName !== undefined && { operationName }) }));
        if (changes(query, operationName)) expect(found).toMatchObject({ kind: 'classified', scopes: ['p:write'] });
      }),
      { numRuns: sized(500, 2_000) },
    );
  });

  test('reading never throws, whatever the body is', () => {
    fc.assert(
      fc.property(
        fc.dictionary(
          fc.constantFrom('query', 'operationName', 'variables', 'extensions', 'id', '__proto__'),
          fc.jsonValue(),
        ),
        (body) => {
          expect(['read', 'opaque', 'malformed']).toContain(readGraphqlCall(body as JsonObject).kind);
        },
      ),
      { numRuns: sized(150, 500) },
    );
  });
});
