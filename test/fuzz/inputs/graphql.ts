/**
 * GraphQL calls: every root field that a server of the reference implementation (graphql-js) would resolve is among the fields that rules are
 * evaluated on, and no mutation is executed in what is classified as a query.
 */
import fc from 'fast-check';
import { buildSchema, execute, parse } from 'graphql';
import { expect } from 'vitest';
import { readGraphqlCall } from '../../../broker/policy/graphql/call.ts';
import { type Count, type Fuzzed, usually } from '../fuzz.ts';

/** Accepts anything, like servers without validation. */
const SCHEMA = buildSchema(`
  type Node { id(x: Int): Int, node: Node }
  type Query { a(x: Int): Int, b: Int, node(x: Int): Node }
  type Mutation { a(x: Int): Int, write: Int, node(x: Int): Node }
  type Subscription { a: Int }
`);

const { selections, document } = fc.letrec<{
  selections: string;
  selection: string;
  fragments: string;
  document: string;
}>((tie) => {
  const directive = usually(
    fc.constantFrom('', '', '', ' @include(if: true)', ' @skip(if: true)', ' @include(if: $v)'),
    ' @defer',
    ' @x',
  );
  const field = usually(
    fc.constantFrom('a', 'b', 'write', 'node', 'id', '__typename', 'a(x: 1)'),
    '__schema { types { name } }',
    'a(x: 1, x: 2)',
  );
  const alias = fc.constantFrom('', '', '', 'b: ', 'query: ', 'mutation: ', 'a: ');
  const kind = fc.constantFrom('query', 'mutation');
  const taking = fc.constantFrom('', '($v: Boolean = true)', '($v: Boolean)', '($v: Boolean! = false)');
  const anonymous = fc.tuple(kind, taking, tie('selections')).map((all) => all.join(' '));
  const named = fc
    .tuple(kind, kind, taking, tie('selections'), tie('selections'), usually(fc.constant('B'), 'A', ''))
    .map(([one, two, takes, first, second, last]) => `${one} A${takes} ${first} ${two} ${last}${takes} ${second}`);
  return {
    selections: fc.array(tie('selection'), { minLength: 1, maxLength: 4 }).map((all) => `{ ${all.join(' ')} }`),
    selection: fc.oneof(
      { maxDepth: 3 },
      fc
        .tuple(alias, field, directive)
        .map(([before, name, after]) => before + name + (name.endsWith('}') ? '' : after)),
      fc
        .tuple(fc.constantFrom('...', '... on Query', '... on Mutation', 'node'), directive, tie('selections'))
        .map((all) => all.join(' ')),
      fc.tuple(usually(fc.constantFrom('...F', '...G'), '...H'), directive).map((all) => all.join('')),
    ),
    fragments: fc
      .tuple(fc.constantFrom('Query', 'Mutation', 'Node'), tie('selections'), usually(fc.constant('G'), 'F', 'X'))
      .map(
        ([type, inside, name]) =>
          `fragment F on ${type} ${inside.replaceAll('...F', '...G')} fragment ${name} on Mutation { write a }`,
      ),
    document: fc
      .tuple(
        usually(fc.oneof(anonymous, tie('selections'), named), 'subscription { a }', 'type X { a: Int } { a }', ''),
        tie('fragments'),
        fc.boolean(),
      )
      .map(([operations, fragments, isFirst]) => (isFirst ? fragments + operations : `${operations}\n${fragments}`)),
  };
});
const soup = fc
  .array(
    fc.constantFrom(
      '{',
      '}',
      '(',
      ')',
      'query',
      'mutation',
      'subscription',
      'fragment',
      'on',
      'Query',
      'A',
      'F',
      'a',
      'write',
      ':',
      '...',
      '$v',
      '@skip(if: true)',
      '"',
      '"""',
      '#',
      '\n',
      ',',
      '\ufeff',
      '&',
      '{ a }',
    ),
    { maxLength: 20 },
  )
  .map((all) => all.join(' '));
const text = fc
  .oneof({ weight: 12, arbitrary: document }, selections, soup)
  .chain((whole) =>
    fc
      .tuple(
        fc.nat(whole.length),
        fc.constantFrom('', '', '', '', '', '', '', '', '', ' ', '# mutation {\n', '"', '\ufeff', ',,', '\r', '}'),
      )
      .map(([at, put]) => whole.slice(0, at) + put + whole.slice(at)),
  );
const body = text.chain((query) =>
  fc.record({
    query: fc.constant(query),
    operationName: usually(
      /\bA\b/.test(query) ? fc.constantFrom('A', 'A', 'B') : fc.constantFrom(undefined, null),
      'M',
      '',
    ),
    variables: fc.constantFrom(undefined, null, {}, { v: true }, { v: false }),
  }),
);

type Roots = { operation: string; names: string[] };

/** Returns what a server executes, without validation; undefined: nothing. */
async function executed({
  query,
  operationName,
  variables,
}: {
  query: string;
  operationName?: string | null | undefined;
  variables?: object | null | undefined;
}): Promise<Roots | undefined> {
  let made: Roots | undefined;
  try {
    await execute({
      schema: SCHEMA,
      document: parse(query),
      ...(operationName != null && { operationName }),
      variableValues: { ...variables },
      rootValue: {},
      fieldResolver: (_source, _arguments, _context, info) => {
        if (info.path.prev === undefined) {
          made ??= { operation: info.operation.operation, names: [] };
          made.names.push(info.fieldName);
        }
        return info.fieldName === 'node' ? {} : 1;
      },
    });
  } catch {
    // Not a document, or no such operation.
  }
  return made;
}

export function graphql(count: Count): Fuzzed {
  const property = fc.asyncProperty(body, async (given) => {
    const read = readGraphqlCall(JSON.parse(JSON.stringify(given)));
    if (read.kind !== 'read') {
      expect(read.kind === 'opaque' ? read.why : read.error).toMatch(/\S/);
      return count(read.kind);
    }
    const made = await executed(given);
    count(made ? `a ${made.operation} that runs` : 'nothing is executed');
    if (made === undefined) return;
    expect(made.operation).toBe(read.operation);
    const judged = read.roots.map((field) => field.name.value);
    expect(made.names.filter((name) => !name.startsWith('__') && !judged.includes(name))).toEqual([]);
  });
  return { property, reaches: ['malformed', 'opaque', 'a query that runs', 'a mutation that runs'] };
}
