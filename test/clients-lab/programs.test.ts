/** curl and Python's requests, configured with the broker's URL by their line in docs/unmodified.md. */
import { execFile, spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { shared } from '../world/world.ts';
import { lineOf } from './installed.ts';
import { givenLab } from './lab-world.ts';

const PATH = '/repos/acme/app';
type Asked = { method: string; path?: string; json?: string; wait?: string };
/** Returns the program and arguments that make a request, from the line of the page, which reads the repository. */
type Run = (line: string, asked: Asked) => [string, string[]];

const viaCurl: Run = (line, { method, path = PATH, json, wait }) => [
  'sh',
  [
    '-c',
    `${line.replace(PATH, path)} "$@"`,
    'sh',
    '-sS',
    '-X',
    method,
    ...(json === undefined ? [] : ['--json', json]),
    ...(wait === undefined ? [] : ['-H', `X-Svc-Wait: ${wait}`]),
  ],
];
const viaRequests: Run = (line, { method, path = PATH, json, wait }) => [
  'python3',
  [
    '-c',
    `import os, requests
TOKEN = os.environ['TOKEN']
print(${line
      .replace(PATH, path)
      .replace('.get(', `.${method.toLowerCase()}(`)
      .replace('}', wait === undefined ? '}' : `, 'X-Svc-Wait': '${wait}'}`)
      .replace(/\)$/, json === undefined ? ')' : `, json=${json})`)}.text)`,
  ],
];
const PROGRAMS: [string, Run, string[]][] = [
  ['curl', viaCurl, ['curl', '--version']],
  ['requests', viaRequests, ['python3', '-c', 'import requests']],
];

describe.each(PROGRAMS)('%s', (name, run, [program = '', ...probe]) => {
  const missing = spawnSync(program, probe).status !== 0;
  if (missing && process.env.CI) throw new Error(`${name} is not installed`);

  describe.skipIf(missing)(`through the broker${missing ? ` (skipped: ${name} is not installed)` : ''}`, () => {
    const { world, agent: agentOf, approve } = givenLab();
    const agent = shared(() =>
      agentOf('github', { without: 'codehost:repo.delete', heldScope: 'codehost:issues.write' }),
    );
    const ask = (asked: Asked): Promise<string> => {
      const [file, words] = run(lineOf(name, world.running.baseUrl), asked);
      const env = { ...process.env, TOKEN: agent.token() };
      return new Promise((resolve, reject) => {
        execFile(file, words, { env, encoding: 'utf8' }, (_, stdout, stderr) =>
          stderr === '' || stdout !== '' ? resolve(stdout) : reject(new Error(stderr)),
        );
      });
    };

    test('reads through the broker', async () => {
      expect(JSON.parse(await ask({ method: 'GET' }))).toMatchObject({ full_name: 'acme/app' });
      expect(world.upstream.seen).toHaveLength(1);
    });

    test('gets the reason when a call is refused', async () => {
      const { message } = JSON.parse(await ask({ method: 'DELETE' }));
      expect(message).toContain('agent-broker: scope_not_granted');
      expect(world.upstream.seen).toEqual([]);
    });

    test('gets the result of a call that was approved, which is made once', async () => {
      const issue = { method: 'POST', path: `${PATH}/issues`, json: '{"title": "It breaks"}', wait: '0' };
      const refused = await ask(issue);
      expect(world.upstream.seen).toEqual([]);
      await approve(refused);
      expect(JSON.parse(await ask(issue))).toMatchObject({ number: 7, title: 'It breaks' });
      expect(world.upstream.seen).toHaveLength(1);
    });
  });
});
