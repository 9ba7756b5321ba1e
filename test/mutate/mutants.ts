/** The mutants of a TypeScript file: copies with one small fault each, such as a condition that always holds, or a statement left out. */
import { parseSync } from 'rolldown/utils';

/** The text from `start` to `end` (offsets of UTF-16 units) is replaced with `replacement`. `line` counts from 1. */
export type Mutant = { start: number; end: number; line: number; original: string; replacement: string };

type Node = { type: string; start: number; end: number; [member: string]: unknown };
type Place = { node: Node; parent: Node; text: (node: Node) => string };
type Change = [where: Node, replacement: string];

const OPERATORS = new Map([
  ['<', '<='],
  ['<=', '<'],
  ['>', '>='],
  ['>=', '>'],
  ['===', '!=='],
  ['!==', '==='],
  ['-', '+'],
  ['*', '/'],
  ['/', '*'],
]);

/** Methods that are replaced with another. */
const METHODS = new Map([
  ['some', 'every'],
  ['every', 'some'],
  ['startsWith', 'endsWith'],
  ['endsWith', 'startsWith'],
  ['min', 'max'],
  ['max', 'min'],
]);

/** Methods whose result can stand for the object itself, so the call is left out. `where` is that of a statement of SQL. */
const LEFT_OUT = new Set(['filter', 'sort', 'reverse', 'slice', 'trim', 'toLowerCase', 'toUpperCase', 'where']);

/** Longer lists are data, such as a table of names. */
const MAX_LIST_LENGTH = 8;

const isNode = (value: unknown): value is Node => typeof (value as Node | null)?.type === 'string';

/** The whole condition of an `if` becomes true and false, so an opposite of it would be one mutant more without another fault. */
const isCondition = ({ node, parent }: Place): boolean => parent.test === node;

/** The only statement of an `if` without `else` is left out by the condition that is false. */
const isGuarded = ({ node, parent }: Place): boolean => parent.consequent === node && !parent.alternate;

const leaveOut = (place: Place): Change[] => (isGuarded(place) ? [] : [[place.node, ';']]);

const eitherWay = ({ node }: Place): Change[] => [
  [node.test as Node, 'true'],
  [node.test as Node, 'false'],
];

const CHANGES: Record<string, (place: Place) => Change[]> = {
  IfStatement: eitherWay,
  ConditionalExpression: eitherWay,
  // A condition that always held would not end.
  WhileStatement: ({ node }) => [[node.test as Node, 'false']],
  LogicalExpression: ({ node, text }) => [
    [node, `(${text(node.left as Node)})`],
    [node, `(${text(node.right as Node)})`],
  ],
  BinaryExpression: (place) => {
    const { node, text } = place;
    const other = OPERATORS.get(node.operator as string);
    const isEquality = node.operator === '===' || node.operator === '!==';
    if (!other || (isEquality && isCondition(place))) return [];
    return [[node, `${text(node.left as Node)} ${other} ${text(node.right as Node)}`]];
  },
  UnaryExpression: (place) =>
    place.node.operator === '!' && !isCondition(place)
      ? [[place.node, `(${place.text(place.node.argument as Node)})`]]
      : [],
  ExpressionStatement: (place) => (/^(await )?\w*\.?log\./.test(place.text(place.node)) ? [] : leaveOut(place)),
  ThrowStatement: leaveOut,
  ReturnStatement: (place) => (place.node.argument ? [] : leaveOut(place)),
  Literal: ({ node }) => {
    if (typeof node.value === 'boolean') return [[node, String(!node.value)]];
    return typeof node.value === 'number' ? [[node, String(node.value + 1)]] : [];
  },
  CallExpression: ({ node, text }) => {
    const { object, property } = node.callee as { object?: Node; property?: Node };
    if (!object || !property) return [];
    const name = text(property);
    if (LEFT_OUT.has(name)) return [[node, text(object)]];
    const other = METHODS.get(name);
    return other ? [[property, other]] : [];
  },
  ArrayExpression: ({ node, text }) => {
    const elements = (node.elements as (Node | null)[]).filter(isNode);
    if (elements.length < 2 || elements.length > MAX_LIST_LENGTH) return [];
    const without = (left: Node) => elements.filter((element) => element !== left).map(text);
    return elements.map((element) => [node, `[${without(element).join(', ')}]`]);
  },
};

/** Returns the mutants of the file `name` with this text, in the order of their lines. */
export function mutantsOf(name: string, text: string): Mutant[] {
  const mutants: Mutant[] = [];
  const textOf = (node: Node) => text.slice(node.start, node.end);
  const visit = (node: Node, parent: Node): void => {
    // Types have no effect when the file runs.
    if (node.type.startsWith('TS') && !isNode(node.expression)) return;
    for (const [where, replacement] of CHANGES[node.type]?.({ node, parent, text: textOf }) ?? []) {
      const line = text.slice(0, where.start).split('\n').length;
      mutants.push({ start: where.start, end: where.end, line, original: textOf(where), replacement });
    }
    for (const child of Object.values(node).flat()) if (isNode(child)) visit(child, node);
  };
  const program = parseSync(name, text).program as unknown as Node;
  visit(program, program);
  return mutants.sort((one, other) => one.line - other.line);
}

/** The text with the fault in it. */
export const withMutant = (text: string, { start, end, replacement }: Mutant): string =>
  text.slice(0, start) + replacement + text.slice(end);
