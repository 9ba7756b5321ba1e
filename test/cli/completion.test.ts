/** Completion scripts in the real shells; the tests of a shell that is not installed are skipped. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { BIN } from '../world/checkout.ts';
import { newFolder } from '../world/stores.ts';

const folder = newFolder();

const isThere = (shell: string) => spawnSync(shell, ['-c', 'exit 0']).status === 0;

function scriptFor(shell: string): string {
  const path = join(folder, `completion.${shell}`);
  if (!existsSync(path))
    writeFileSync(path, execFileSync(process.execPath, [BIN, 'completion', shell], { cwd: folder }));
  return path;
}

/** The ways to type the program, with the function that completes it in bash. */
const PROGRAMS = [
  { program: ['agent-broker'], completes: '_agent_broker' },
  { program: ['npx', 'agent-broker'], completes: '_agent_broker_npx' },
];

/** Typed words, the last of them incomplete, and the expected completions. */
const TYPED: [string[], string[]][] = [
  [['ad'], ['add', 'add-mcp']],
  [
    ['add', 'g'],
    ['github', 'gmail', 'google-calendar'],
  ],
  [
    ['connect', 'c'],
    ['claude-code', 'claude-desktop', 'cline', 'codex', 'continue', 'copilot', 'cursor'],
  ],
  [['agent', 'create', '--client', 'z'], ['zed']],
  // The value of an option is not taken for a command.
  [['agent', 'create', '--policy', 'agent', '--cli'], ['--client']],
  [['keys', 'rotate', 'ev'], ['evidence']],
  [
    ['completion', ''],
    ['bash', 'fish', 'zsh'],
  ],
  [['agent', 'create', '--policy', ''], []],
];
const plain = (words: readonly string[]) =>
  words.filter((word) => word !== '' && !/^(help|-h|--help)$/.test(word)).sort();
const inBash = (script: string) => spawnSync('bash', ['--norc', '-c', script], { encoding: 'utf8' });
const inShell = (words: readonly string[]) => words.map((word) => `'${word}'`).join(' ');

describe('agent-broker completion', () => {
  test.each(TYPED)('bash: %j completes to %j, also after npx', (typed, completed) => {
    const script = PROGRAMS.map(
      ({ program, completes }) =>
        `COMP_WORDS=(${program.join(' ')} ${inShell(typed)}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); ${completes}; printf '%s\\n' "\${COMPREPLY[@]}" =====`,
    );
    const { stdout, stderr } = inBash(`source ${scriptFor('bash')}\n${script.join('\n')}`);
    expect(stderr).toBe('');
    for (const answer of stdout.split('=====\n').slice(0, -1)) {
      const found = plain(answer.split('\n'));
      expect(found).toEqual(typed.at(-1) === '' ? found.filter((word) => completed.includes(word)) : completed);
      expect(found).toEqual(expect.arrayContaining(completed));
    }
  });

  test('bash: an existing completion of npx is kept; otherwise npx completes to the program', () => {
    const of = 'complete -p agent-broker npx';
    const source = `source ${scriptFor('bash')}`;
    const own = 'complete -o filenames -F _agent_broker agent-broker\n';
    expect(inBash(`${source}; ${source}; ${of}`)).toMatchObject({
      stdout: `${own}complete -o default -o filenames -F _agent_broker_npx npx\n`,
      stderr: '',
    });
    expect(inBash(`complete -F mine npx; ${source}; ${of}`).stdout).toBe(`${own}complete -F mine npx\n`);
    const npx = (...words: string[]) =>
      inBash(
        `${source}; COMP_WORDS=(npx ${words.join(' ')}); COMP_CWORD=${words.length}; _agent_broker_npx; echo "\${COMPREPLY[@]}"`,
      ).stdout;
    expect([npx('ag'), npx('vitest', 'ag')]).toEqual(['agent-broker\n', '\n']);
  });

  test('bash: an option that takes a file completes file names', () => {
    writeFileSync(join(folder, 'key.pem'), '');
    const script = `source ${scriptFor('bash')}; cd ${folder}
COMP_WORDS=(agent-broker add github --key-file ke); COMP_CWORD=4; _agent_broker; echo "\${COMPREPLY[@]}"`;
    expect(spawnSync('bash', ['--norc', '-c', script], { encoding: 'utf8' }).stdout).toBe('key.pem\n');
  });

  const zsh = isThere('zsh');
  test.skipIf(!zsh)(`zsh${zsh ? '' : ' (skipped: not installed)'}`, () => {
    const script = `autoload -U compinit; compinit -u -D; source ${scriptFor('zsh')}
t() { emulate -L sh; setopt kshglob noshglob braceexpand nokshautoload; f=$1; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); $f; echo "\${COMPREPLY[*]}"; }
${PROGRAMS.flatMap(({ program, completes }) => TYPED.map(([typed]) => `t ${completes} ${program.join(' ')} ${inShell(typed)}`)).join('\n')}
echo $_comps[npx]`;
    const { stdout, stderr } = spawnSync('zsh', ['-f', '-c', script], { encoding: 'utf8' });
    expect(stderr).toBe('');
    const lines = stdout.split('\n');
    // zsh itself filters by the typed prefix.
    for (const [i, [typed, completed]] of [...TYPED, ...TYPED].entries()) {
      const found = plain(lines[i]!.split(' ').filter((word) => word.startsWith(typed.at(-1)!)));
      expect(found).toEqual(expect.arrayContaining(completed));
    }
    expect(lines[TYPED.length * 2]).toContain('_agent_broker_npx');
  });

  const fish = isThere('fish');
  test.skipIf(!fish)(`fish${fish ? '' : ' (skipped: not installed)'}`, () => {
    const script = [
      `source ${scriptFor('fish')}`,
      ...PROGRAMS.flatMap(({ program }) =>
        TYPED.map(([typed]) => `complete -C "${[...program, ...typed].join(' ')}"; echo =====`),
      ),
      'complete -C "npx agent-b"',
    ].join('\n');
    const { stdout, stderr } = spawnSync('fish', ['-N', '-c', script], {
      encoding: 'utf8',
      env: { ...process.env, HOME: folder },
    });
    expect(stderr).toBe('');
    const answers = stdout.split('=====\n');
    expect(answers.pop()).toBe('agent-broker\n');
    for (const [i, [, completed]] of [...TYPED, ...TYPED].entries())
      expect(plain(answers[i]!.split('\n').map((line) => line.split('\t')[0]!))).toEqual(completed);
  });

  test('the script contains every command and option of --help', () => {
    const script = execFileSync(process.execPath, [BIN, 'completion', 'bash'], { encoding: 'utf8' });
    const walk = (path: readonly string[]): void => {
      const help = execFileSync(process.execPath, [BIN, ...path, '--help'], { encoding: 'utf8' });
      const names = [...help.matchAll(/^ {2}(?:-\w, )?(--[\w-]+)/gm)].map(([, name]) => name!);
      const line = script.split('\n').find((one) => one.startsWith(`    '${path.join(' ')}') echo`));
      expect(line).toBeDefined();
      // --version belongs to the program; every --help lists it.
      for (const name of names.filter((one) => path.length === 0 || one !== '--version')) expect(line).toContain(name);
    };
    for (const path of [[], ['connect'], ['agent', 'create'], ['serve']]) walk(path);
  });

  test('exits 2 for an unknown shell', () => {
    expect(spawnSync(process.execPath, [BIN, 'completion', 'tcsh'], { encoding: 'utf8' }).status).toBe(2);
  });
});
