/** AP-15: the folded parts of a request's body are counted, whatever its shape. Nothing can be approved that was never displayed. */
import fc from 'fast-check';
import { expect, test } from 'vitest';

type Node =
  | { kind: 'text'; path: string; value: string; folded: boolean }
  | { kind: 'plain'; path: string; value: unknown }
  | { kind: 'list' | 'object'; path: string; size: number; members: Member[] };
type Member = { name: string; namePath: string; nameFolded: boolean; value: Node };
type Layout = { tree: Node; folds: number };

const { EVERYTHING, MORE, layOut, readBody } = (await import(
  new URL('../../broker/console/static/request-view/fold.js', import.meta.url).href
)) as {
  EVERYTHING: symbol;
  MORE: number;
  readBody(body: unknown): { rows: number; tooMuch: boolean };
  layOut(reader: unknown, opened: Map<string, number | true> | symbol): Layout;
};

/** Converts the displayed tree back to JSON; a fold becomes a placeholder. */
const FOLD = { folded: true };
function shown(node: Node): unknown {
  if (node.kind === 'text') return node.folded ? FOLD : node.value;
  if (node.kind === 'plain') return node.value;
  const missing = node.size - node.members.length;
  const values = node.members.map(({ value }) => shown(value));
  if (node.kind === 'list') return missing > 0 ? [...values, FOLD] : values;
  const entries = node.members.map(({ name, nameFolded }, i) => [nameFolded ? `folded ${i}` : name, values[i]]);
  return Object.fromEntries(missing > 0 ? [...entries, ['', FOLD]] : entries);
}

const rows = (node: Node): number =>
  'members' in node ? node.members.reduce((sum, { value }) => sum + rows(value), 1) : 1;

/** Opens every fold that is present. */
function openAll(node: Node, opened: Map<string, number | true>): void {
  if (node.kind === 'text' && node.folded) opened.set(node.path, true);
  if (!('members' in node)) return;
  if (node.members.length < node.size) opened.set(node.path, Math.min(node.size, node.members.length + MORE));
  for (const { namePath, nameFolded, value } of node.members) {
    if (nameFolded) opened.set(namePath, true);
    openAll(value, opened);
  }
}

const long = fc.integer({ min: 1, max: 3_000 }).map((length) => 'x'.repeat(length));
const { body } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 6, withCrossShrink: true },
    fc.jsonValue({ maxDepth: 0 }),
    long,
    fc.array(tie('value'), { maxLength: 40 }),
    fc.dictionary(fc.oneof(fc.string(), long), tie('value'), { maxKeys: 40 }),
    fc.nat(700).map((length) => Array.from({ length }, (_, n) => n)),
  ),
  body: fc.dictionary(fc.oneof(fc.string(), long), tie('value'), { maxKeys: 60 }),
}));

test('the number of folds is 0 exactly when the whole body is displayed', () => {
  fc.assert(
    fc.property(body, (value) => {
      const { tree, folds } = layOut(readBody(value), new Map());
      expect(JSON.stringify(shown(tree)) === JSON.stringify(value)).toBe(folds === 0);
    }),
  );
});

test('opening all folds repeatedly terminates with the whole body displayed', () => {
  fc.assert(
    fc.property(body, (value) => {
      const reader = readBody(value);
      const opened = new Map<string, number | true>();
      let layout = layOut(reader, opened);
      for (let n = 0; layout.folds > 0 && n < 100; n++) {
        openAll(layout.tree, opened);
        layout = layOut(reader, opened);
      }
      expect(layout.folds).toBe(0);
      expect(JSON.stringify(shown(layout.tree))).toBe(JSON.stringify(value));
    }),
  );
});

test('expanding all at once displays the whole body', () => {
  fc.assert(
    fc.property(body, (value) => {
      const { tree, folds } = layOut(readBody(value), EVERYTHING);
      expect(folds).toBe(0);
      expect(JSON.stringify(shown(tree))).toBe(JSON.stringify(value));
    }),
  );
});

test('the initial layout is small, however large the body is', () => {
  const list = (length: number, of: unknown) => Array.from({ length }, () => of);
  const large = [
    list(90_000, 1),
    { a: list(30_000, { b: 1 }) },
    list(300, list(300, 1)),
    Object.fromEntries(list(20_000, 0).map((_, n) => [`name ${n}`, n])),
    list(4_000, { a: { b: { c: { d: ['x', 'y'] } } } }),
  ];
  for (const value of large) expect(rows(layOut(readBody(value), new Map()).tree)).toBeLessThan(1_300);
});

test('a body of everyday size is displayed whole', () => {
  const issue = {
    title: 'x',
    body: 'y'.repeat(900),
    labels: ['a', 'b'],
    assignees: [{ login: 'ann' }],
    milestone: null,
  };
  expect(layOut(readBody(issue), new Map()).folds).toBe(0);
});

test('member names of Object.prototype are treated like others', () => {
  const value = JSON.parse('{"__proto__":{"a":1},"constructor":"c","toString":[1],"":{"":"empty"},"a/b":1,"a~b":2}');
  const { tree, folds } = layOut(readBody(value), new Map());
  expect(folds).toBe(0);
  expect('members' in tree && tree.members.map(({ name }) => name)).toEqual(Object.keys(value));
  const paths = 'members' in tree ? tree.members.map(({ value: { path } }) => path) : [];
  expect(paths).toContain('/a~1b');
  expect(paths).toContain('/a~0b');
});
