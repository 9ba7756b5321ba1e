/** Edits one entry of a client's configuration and preserves the rest of the text: comments, order, other servers. */

import { findNodeAtLocation, type Node, type ParseError, parse, parseTree, printParseErrorCode } from 'jsonc-parser';
import { present } from '../../broker/runtime/present.ts';
import { CommandFailed } from '../failure.ts';
import { insertMember, removeMember, replaceValue, type Style } from './jsonc-member.ts';

export type Edited = {
  text: string;
  change: 'added' | 'changed' | 'removed' | 'none';
  /** The previous entry. */
  before: unknown;
};

/**
 * Returns the text with this entry at `[member, name]`; without it when `entry` is undefined. `text` empty: there was no file. Throws
 * CommandFailed, naming `path`, when the text is not a valid configuration.
 */
export function editEntry(
  text: string,
  [member, name]: readonly [string, string],
  entry: object | undefined,
  path: string,
): Edited {
  const { bom, body } = splitBom(text);
  const root = body.trim() === '' ? {} : readObject(body, path);
  refuseTwice(body, [member, name], path);
  const servers = root[member];
  if (servers !== undefined && !isObject(servers))
    throw new CommandFailed(
      `In ${path}, "${member}" is no object, so nothing was changed. Correct it, then try again.`,
    );
  const before = servers?.[name];
  if (sameJson(before, entry)) return { text, change: 'none', before };
  const style: Style = { eol: body.includes('\r\n') ? '\r\n' : '\n', indent: indentOf(body) };
  const start = body.trim() === '' ? `{}${style.eol}` : body;
  const at = (path: string[]): Node | undefined =>
    findNodeAtLocation(present(parseTree(start, [], TOLERANT), 'JSON'), path);
  const [value, list] = [at([member, name]), at([member])];
  const changed =
    entry === undefined
      ? removeMember(start, present(value?.parent, 'member'))
      : value
        ? replaceValue(start, value, entry, style)
        : list
          ? insertMember(start, list, [name, entry], style)
          : insertMember(start, present(at([]), 'root'), [member, { [name]: entry }], style);
  const { [name]: _, ...others } = servers ?? {};
  const wanted = { ...root, [member]: entry === undefined ? others : { ...servers, [name]: entry } };
  if (!holds(changed, wanted))
    throw new CommandFailed(
      `${path} cannot be changed without touching something else in it, so nothing was changed. Change "${member}" by hand.`,
    );
  const change = entry === undefined ? 'removed' : before === undefined ? 'added' : 'changed';
  return { text: bom + changed, change, before };
}

const TOLERANT = { allowTrailingComma: true };

type Json = Record<string, unknown>;

const isObject = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const splitBom = (text: string) =>
  text.startsWith('\uFEFF') ? { bom: '\uFEFF', body: text.slice(1) } : { bom: '', body: text };

function readObject(body: string, path: string): Json {
  const errors: ParseError[] = [];
  const root = parse(body, errors, TOLERANT);
  const [first] = errors;
  if (first) {
    const line = body.slice(0, first.offset).split('\n').length;
    throw new CommandFailed(
      `${path} is not JSON (line ${line}: ${printParseErrorCode(first.error)}), so nothing was changed. Correct it, then try again.`,
    );
  }
  if (!isObject(root)) throw new CommandFailed(`${path} holds no JSON object, so nothing was changed.`);
  return root;
}

/** Refuses duplicate members: most programs use the last one, others the first. */
function refuseTwice(body: string, path: readonly string[], file: string): void {
  let objects = [parseTree(body, [], TOLERANT)];
  for (const name of path) {
    const found = objects.flatMap(
      (object) => object?.children?.filter((one) => one.children?.[0]?.value === name) ?? [],
    );
    if (found.length > 1)
      throw new CommandFailed(
        `In ${file}, "${name}" is duplicated, so nothing was changed. Remove one of the two, then try again.`,
      );
    objects = found.map((one) => one.children?.[1]);
  }
}

/** Whether a text contains exactly these members. Verifies the result before it is written. */
function holds(text: string, wanted: Json): boolean {
  const errors: ParseError[] = [];
  return sameJson(parse(text, errors, TOLERANT), wanted) && errors.length === 0;
}

/** Returns the indentation of the first indented line. */
const indentOf = (body: string): string => /^([ \t]+)\S/m.exec(body)?.[1] ?? '  ';

/** Compares by text: this program writes entries with a fixed order of members. */
const sameJson = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Returns a line diff of an entry: the lines between the common prefix and suffix. */
export function changedLines(name: string, before: unknown, after: unknown): string[] {
  const old = linesOf(name, before);
  const now = linesOf(name, after);
  let top = 0;
  while (top < old.length && top < now.length && old[top] === now[top]) top++;
  let end = 0;
  while (end < old.length - top && end < now.length - top && old.at(-1 - end) === now.at(-1 - end)) end++;
  const middle = (lines: string[], mark: string) => lines.slice(top, lines.length - end).map((line) => mark + line);
  return [...middle(old, '- '), ...middle(now, '+ ')];
}

const linesOf = (name: string, value: unknown): string[] =>
  value === undefined ? [] : `${JSON.stringify(name)}: ${JSON.stringify(value, null, 2)}`.split('\n');
