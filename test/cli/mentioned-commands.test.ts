/** Every command named in a message, a comment, the console or a guide exists, with the options used. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { commandLine } from '../../bin/cli.ts';
import { type Node, treeOf } from '../../bin/completion/tree.ts';
import { sinkForm } from '../../broker/config-file/audit-sinks.ts';
import { KINDS } from '../../broker/config-file/channels.ts';
import { ROOT } from '../world/checkout.ts';

const NODES = new Map(treeOf(commandLine()).map((node) => [node.path, node]));
/** Where the words of our command end: another command or prose follows. */
const END = /^(--$|[|;&<>]|…|\\|[A-Z][a-z]|\(|#)/;

const filesIn = (folder: string, ending: RegExp): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => ending.test(name) && !/(^|\/)(node_modules|dist)\//.test(name))
    .map((name) => join(folder, name));

const SOURCES = ['bin', 'broker', 'mcp', 'lab'].flatMap((folder) => filesIn(folder, /\.(ts|js|html)$/));
const GUIDES = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', ...filesIn('docs', /\.md$/)];
const DEPLOY = filesIn('deploy', /\.(ya?ml|sh|service|md|txt|tpl)$/);

/** Returns why the words after the program's name are no valid command; undefined when they are. */
function problemOf(words: readonly string[]): string | undefined {
  let node: Node = NODES.get('')!;
  let at = 0;
  for (; at < words.length; at++) {
    const next = NODES.get([node.path, words[at]].filter(Boolean).join(' '));
    if (next === undefined) break;
    node = next;
  }
  const next = words[at];
  if (node.commands.length > 0 && next !== undefined && /^[a-z]/.test(next) && next !== 'help')
    return `there is no command ${[node.path, next].filter(Boolean).join(' ')}`;
  for (const word of words.slice(at)) {
    if (END.test(word)) return undefined;
    const flag = /^--?[a-z][a-z-]*/.exec(word)?.[0];
    if (flag !== undefined && !node.flags.some(({ names }) => names.includes(flag)))
      return `${node.path || 'the program'} has no option ${flag}`;
  }
  return undefined;
}

/** Yields the words after each mention of the program, up to the end of the string, code or line. */
function* namedIn(text: string, pattern: RegExp): Generator<{ line: number; words: string[] }> {
  for (const found of text.matchAll(pattern)) {
    const words = found[1]!
      .replace(/[.,:)<]+(\s|$|\/)/g, ' ; ')
      .split(/\s+/)
      .filter(Boolean);
    yield { line: text.slice(0, found.index).split('\n').length, words };
  }
}

const told = (files: readonly string[], pattern: RegExp) =>
  files.flatMap((file) =>
    [...namedIn(readFileSync(join(ROOT, file), 'utf8'), pattern)].map((named) => ({ ...named, file })),
  );

test.each([
  ['messages', SOURCES, /\$\{PROGRAM\} ([a-z-][^`'"\n]*)/g, 40],
  [
    'messages, for the same broker',
    SOURCES,
    /\$\{(?:\w+\.command\(|command\(|commandWith\(options, )['`]([a-z-][^`'"\n]*)/g,
    20,
  ],
  ['messages, with npx', SOURCES, /npx agent-broker ([a-z-][^`'"\n]*)/g, 20],
  [
    'guides, as they are typed',
    [...GUIDES, ...DEPLOY],
    /(?:npx agent-broker|^(?:\$ )?agent-broker) ([a-z-][^`'"\n]*)/gm,
    150,
  ],
  ['guides, in a sentence', GUIDES, /`agent-broker ([a-z-][^`'"\n]*)/g, 60],
])('commands in %s exist', (_what, files, pattern, atLeast) => {
  const commands = told(files, pattern);
  const wrong = commands.flatMap(({ file, line, words }) => {
    const problem = problemOf(words);
    return problem === undefined ? [] : [`${file}:${line}: ${words.join(' ')}: ${problem}`];
  });
  expect(wrong).toEqual([]);
  expect(commands.length).toBeGreaterThan(atLeast);
});

test.each([
  ['channel', Object.entries(KINDS).map(([kind, { settings }]) => [kind, Object.keys(settings)] as const)],
  [
    'audit-sink',
    sinkForm({}).options.map(({ shape: { kind, ...settings } }) => [kind.value, Object.keys(settings)] as const),
  ],
])('%s add: the help names every kind with its settings', (name, kinds) => {
  const command = commandLine().commands.find((one) => one.name() === name)!;
  const help = command.commands.find((one) => one.name() === 'add')!.description();
  const told = [...help.matchAll(/([a-z0-9]+) \(([^)]*)\)/g)].map(([, kind, settings]) => [kind, settings]);
  expect(told).toEqual(kinds.map(([kind, settings]) => [kind, settings.join(', ') || 'none']));
});
