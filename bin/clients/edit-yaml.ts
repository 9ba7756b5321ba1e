/**
 * Edits one item of the list `mcpServers` of a configuration in YAML, and preserves the rest of the text. Changes the text by lines, then
 * parses the result, which must equal the old content except for this item.
 */
import { isMap, isScalar, isSeq, parseDocument, stringify, type YAMLMap, type YAMLSeq } from 'yaml';
import { canonicalJson } from '../../broker/crypto/canonical.ts';
import { CommandFailed } from '../failure.ts';
import type { Edited } from './edit-config.ts';

type Item = Readonly<Record<string, unknown>>;
type Root = Record<string, unknown>;

/**
 * Returns the text with this item, identified by its `name`; without it when `entry` is undefined. `empty`: the content of a newly created file.
 *
 * @throws CommandFailed, naming `path`, when the text is not YAML, or cannot be changed without affecting other content
 */
export function editYaml(
  text: string,
  [member, name]: readonly [string, string],
  entry: Item | undefined,
  { path, empty }: { path: string; empty: Root },
): Edited {
  const bom = text.startsWith('\uFEFF') ? '\uFEFF' : '';
  const given = text.slice(bom.length);
  const body = given.trim() === '' && entry ? stringify(empty) : given;
  const { root, map } = read(body, path);
  const list = root[member] ?? [];
  if (!Array.isArray(list))
    throw new CommandFailed(`In ${path}, "${member}" is no list, so nothing was changed. Correct it, then try again.`);
  const named = list.filter((one) => isNamed(one, name));
  if (named.length > 1)
    throw new CommandFailed(
      `In ${path}, "${name}" is listed twice, so nothing was changed. Remove one of the two, then try again.`,
    );
  const [before] = named;
  if (same(before, entry)) return { text, change: 'none', before };
  const others = list.filter((one) => !isNamed(one, name));
  const eol = body.includes('\r\n') ? '\r\n' : '\n';
  const kept = before === undefined ? body : withoutItem(body, map, member, name, others.length === 0);
  const changed = entry === undefined ? kept : withItem(kept, read(kept, path).map, member, entry, eol);
  const wanted = { ...root, [member]: entry === undefined ? others : [...others, entry] };
  if (!holds(changed, wanted, member))
    throw new CommandFailed(
      `${path} cannot be changed without touching something else in it, so nothing was changed. Change "${member}" by hand.`,
    );
  const change = entry === undefined ? 'removed' : before === undefined ? 'added' : 'changed';
  return { text: bom + changed, change, before };
}

const isNamed = (item: unknown, name: string): boolean =>
  typeof item === 'object' && item !== null && (item as Root).name === name;

function read(body: string, path: string): { root: Root; map: YAMLMap | undefined } {
  const document = parseDocument(body, { keepSourceTokens: true });
  const [error] = document.errors;
  // The parser's message quotes the file, which may contain secrets.
  if (error)
    throw new CommandFailed(
      `${path} is not YAML (line ${error.linePos?.[0].line ?? 1}), so nothing was changed. Correct it, then try again.`,
    );
  const { contents } = document;
  if (contents !== null && !isMap(contents) && !(isScalar(contents) && contents.value === null))
    throw new CommandFailed(`${path} holds no map, so nothing was changed.`);
  const root: unknown = document.toJS();
  return { root: (root ?? {}) as Root, map: isMap(contents) ? contents : undefined };
}

function listIn(map: YAMLMap | undefined, member: string): YAMLSeq | undefined {
  const value = map?.get(member, true);
  return isSeq(value) && !value.flow && value.items.length > 0 ? value : undefined;
}

/** Appends the item to the list, or adds a new list at the end. */
function withItem(body: string, map: YAMLMap | undefined, member: string, entry: Item, eol: string): string {
  const lines = stringify([entry]).trimEnd().split('\n');
  const list = listIn(map, member);
  const [, end] = list?.range ?? [];
  if (list && end !== undefined) {
    const first = list.items[0] as { range?: [number, number, number] };
    const dash = body.lastIndexOf('-', first.range?.[0]);
    const indent = body.slice(body.lastIndexOf('\n', dash) + 1, dash);
    const at = body.slice(0, end).trimEnd().length;
    return `${body.slice(0, at)}${eol}${lines.map((line) => indent + line).join(eol)}${body.slice(at)}`;
  }
  const written = [`${member}:`, ...lines.map((line) => `  ${line}`)].join(eol);
  // The member exists without items: `mcpServers: []`, or `mcpServers:` without a value.
  const pair = map?.items.find((one) => isScalar(one.key) && one.key.value === member);
  if (pair && isScalar(pair.key) && pair.key.range) {
    const start = pair.key.range[0];
    const stop = (pair.value as { range?: [number, number, number] } | null)?.range?.[1] ?? pair.key.range[1] + 1;
    return `${body.slice(0, start)}${written}${body.slice(Math.max(stop, body.indexOf(':', start) + 1))}`;
  }
  const start = body.trim() === '' ? '' : `${body.replace(/\s*$/, '')}${eol}`;
  return `${start}${written}${eol}`;
}

/** Removes the lines of the item, and the member when it becomes empty. */
function withoutItem(body: string, map: YAMLMap | undefined, member: string, name: string, isAlone: boolean): string {
  const list = listIn(map, member);
  const item = list?.items.find((one) => isMap(one) && one.get('name') === name) as
    | { range?: [number, number, number] }
    | undefined;
  const [from, end] = item?.range ?? [];
  if (from === undefined || end === undefined) return body;
  const key = map?.items.find((one) => isScalar(one.key) && one.key.value === member)?.key;
  const dash = body.lastIndexOf('-', from);
  const [begin, keyEnd] = isAlone && isScalar(key) && key.range ? key.range : [dash, dash];
  const start = body.lastIndexOf('\n', begin) + 1;
  // Between the member and its first item there are only comments.
  const comments = body.slice(keyEnd, dash).match(/(?<=\s)#[^\r\n]*/g) ?? [];
  const eol = body.includes('\r\n') ? '\r\n' : '\n';
  const stop = body.slice(0, end).trimEnd().length;
  const line = body.indexOf('\n', stop);
  return [body.slice(0, start), ...comments.map((one) => one + eol), line === -1 ? '' : body.slice(line + 1)].join('');
}

const same = (a: unknown, b: unknown): boolean =>
  a === undefined || b === undefined ? a === b : canonicalJson(a as object) === canonicalJson(b as object);

/** Whether a text has exactly this content; an empty list equals a missing one. */
function holds(text: string, wanted: Root, member: string): boolean {
  const document = parseDocument(text);
  if (document.errors.length > 0) return false;
  const found = (document.toJS() ?? {}) as Root;
  const plain = ({ [member]: list, ...rest }: Root) => ({ ...rest, list: list ?? [] });
  return same(plain(found), plain(wanted));
}
