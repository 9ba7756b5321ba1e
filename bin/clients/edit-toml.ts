/**
 * Edits one table of a client's configuration in TOML, and preserves the rest of the text. Changes the text by lines, then parses the
 * result, which must equal the old content except for this table.
 */
import { parse } from 'smol-toml';
import { CommandFailed } from '../failure.ts';
import type { Edited } from './edit-config.ts';

type Table = Record<string, unknown>;

/**
 * Returns the text with this table at `[member.name]`, and its objects as tables below it; without it when `entry` is undefined.
 *
 * @throws CommandFailed, naming `path`, when the text is not TOML, or cannot be changed without affecting other content
 */
export function editToml(
  text: string,
  [member, name]: readonly [string, string],
  entry: Readonly<Record<string, unknown>> | undefined,
  path: string,
): Edited {
  const bom = text.startsWith('\uFEFF') ? '\uFEFF' : '';
  const body = text.slice(bom.length);
  const root = read(body, path);
  const servers = root[member];
  if (servers !== undefined && !isTable(servers))
    throw new CommandFailed(`In ${path}, "${member}" is no table, so nothing was changed. Correct it, then try again.`);
  const before = servers?.[name];
  if (same(before, entry)) return { text, change: 'none', before };
  const eol = body.includes('\r\n') ? '\r\n' : '\n';
  const kept = before === undefined ? body : withoutTables(body, member, name);
  const start = kept.trim() === '' ? '' : `${kept.replace(/\s*$/, '')}${eol}`;
  const added = entry === undefined ? '' : written([member, name], entry).join(eol);
  const changed = entry === undefined ? restored(kept, body) : `${start}${start === '' ? '' : eol}${added}${eol}`;
  const { [name]: _, ...others } = servers ?? {};
  const rest = Object.keys(others).length === 0 && entry === undefined ? undefined : others;
  const wanted = { ...root, [member]: entry === undefined ? rest : { ...others, [name]: entry } };
  if (!holds(changed, wanted))
    throw new CommandFailed(
      `${path} cannot be changed without touching something else in it, so nothing was changed. Change [${member}.${name}] by hand.`,
    );
  const change = entry === undefined ? 'removed' : before === undefined ? 'added' : 'changed';
  return { text: bom + changed, change, before };
}

const isTable = (value: unknown): value is Table =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function read(body: string, path: string): Table {
  try {
    return parse(body);
  } catch (error) {
    // The parser's message quotes the file, which may contain secrets.
    const { line } = error as { line?: number };
    const where = line === undefined ? '' : ` (line ${line})`;
    throw new CommandFailed(`${path} is not TOML${where}, so nothing was changed. Correct it, then try again.`);
  }
}

/** Returns the text without this server's tables and the blank lines before each; a comment in front of another table stays. */
function withoutTables(body: string, member: string, name: string): string {
  const key = (word: string) => `(?:${word.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')}|"${word}"|'${word}')`;
  const own = new RegExp(`^[ \\t]*\\[[ \\t]*${key(member)}[ \\t]*\\.[ \\t]*${key(name)}[ \\t]*[.\\]]`);
  const lines = body.split(/(?<=\n)/);
  const gone = new Set<number>();
  for (let at = 0; at < lines.length; at++) {
    if (!own.test(lines[at] ?? '')) continue;
    let end = at + 1;
    let last = at;
    for (; end < lines.length && !/^[ \t]*\[/.test(lines[end] ?? ''); end++)
      if (/^[ \t]*[^\s#]/.test(lines[end] ?? '')) last = end;
    for (let line = at; line <= last; line++) gone.add(line);
    for (let line = at - 1; line >= 0 && (lines[line] ?? '').trim() === ''; line--) gone.add(line);
  }
  return lines.filter((_, line) => !gone.has(line)).join('');
}

/** Undoes the newline that was added before an appended table. */
const restored = (kept: string, body: string): string =>
  kept === '' || kept.endsWith('\n') ? kept : `${kept}${body.includes('\r\n') ? '\r\n' : '\n'}`;

/** Returns the lines of a table and of its nested tables. */
function written(keys: readonly string[], table: Readonly<Record<string, unknown>>): string[] {
  const own = Object.entries(table).filter(([, value]) => !isTable(value));
  const below = Object.entries(table).flatMap(([key, value]) =>
    isTable(value) ? ['', ...written([...keys, key], value)] : [],
  );
  return [
    `[${keys.map(keyOf).join('.')}]`,
    ...own.map(([key, value]) => `${keyOf(key)} = ${literal(value)}`),
    ...below,
  ];
}

const keyOf = (key: string): string => (/^[A-Za-z0-9_-]+$/.test(key) ? key : literal(key));

/** Formats a value. A basic string has the escapes of JSON, except for DEL. */
const literal = (value: unknown): string =>
  Array.isArray(value) ? `[${value.map(literal).join(', ')}]` : JSON.stringify(value).replaceAll('\u007f', '\\u007F');

/** Whether a text has exactly this content; an empty table equals a missing one. */
function holds(text: string, wanted: Table): boolean {
  try {
    return same(withoutEmpty(parse(text)), withoutEmpty(wanted));
  } catch {
    return false;
  }
}

const withoutEmpty = (root: Table): Table =>
  Object.fromEntries(
    Object.entries(root).filter(
      ([, value]) => value !== undefined && !(isTable(value) && Object.keys(value).length === 0),
    ),
  );

/** Whether two values are equal, regardless of the order of keys; dates are compared by their text. */
function same(a: unknown, b: unknown): boolean {
  if (a instanceof Date || b instanceof Date) return String(a) === String(b);
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((one, i) => same(one, b[i]));
  if (!isTable(a) || !isTable(b)) return Object.is(a, b);
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && same(a[key], b[key]));
}
