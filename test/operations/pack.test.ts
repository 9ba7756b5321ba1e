/** What a user installs: the packed tarball, in an empty folder, run by its name. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync, lstatSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ROOT } from '../world/checkout.ts';
import { newFolder } from '../world/stores.ts';

const run = promisify(execFile);
/** npm's scripts find the Node of this test first. */
const PATH = `${dirname(process.execPath)}${delimiter}${process.env.PATH}`;

describe('the packed package', () => {
  const folder = newFolder();
  let installed = false;
  // Not the whole environment: the test runner adds variables of its own, such as BASE_URL.
  const env: NodeJS.ProcessEnv = { PATH, HOME: process.env.HOME, LOG_LEVEL: 'silent' };

  beforeAll(async () => {
    // npm itself gets the whole environment, which has the machine's certificates, proxy and registry.
    const npm = (...args: string[]) =>
      run('npm', args, { cwd: args[0] === 'pack' ? ROOT : folder, env: { ...process.env, PATH } });
    // CI has just built what is packed; elsewhere packing builds it.
    await npm('pack', '--pack-destination', folder, ...(process.env.CI ? ['--ignore-scripts'] : []));
    const tarball = readdirSync(folder).find((file) => file.endsWith('.tgz'))!;
    await npm('init', '-y');
    try {
      const scaledTimeout = ['--fetch-retries', '1', '--fetch-retry-mintimeout', '500', '--fetch-timeout', '30000'];
      const quiet = ['--omit=dev', '--no-audit', '--no-fund', '--prefer-offline'];
      await npm('install', ...quiet, ...scaledTimeout, join(folder, tarball));
      installed = true;
    } catch (error) {
      // Installing needs the registry for what is not in npm's cache; without a registry this cannot be tested here.
      if (process.env.CI || !/ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ENOTCACHED|ETIMEDOUT/.test(String(error))) throw error;
    }
  }, 450_000);

  beforeEach((context) => {
    context.skip(!installed, 'the npm registry cannot be reached, so the tarball was not installed');
  });

  test('it contains JavaScript, and no source, test or key', () => {
    const files = readdirSync(join(folder, 'node_modules', 'agent-broker'), { recursive: true }).map(String);
    expect(files).toContain(join('dist', 'cli.js'));
    // Named by docs/deploy.md and docs/observability.md for an installation from npm.
    for (const file of ['grafana/agent-broker.json', 'prometheus/alerts.yaml', 'systemd/agent-broker.service'])
      expect(files).toContain(join('deploy', file));
    const types = (file: string) => file.startsWith(join('dist', 'mcp', 'client')) && file.endsWith('.d.ts');
    expect(files.filter((file) => file.endsWith('.ts') && !types(file))).toEqual([]);
    // Anything that depends on this package would report its installation.
    expect(existsSync(join(folder, 'node_modules', '@scarf'))).toBe(false);
    expect(files.filter((file) => /(^|\/)(test|bench)(\/|$)|\.pem$|\.key$/.test(file))).toEqual([]);
  });

  test('its code is ASCII, which Node stores as one byte per character, and does not load Node’s fetch', () => {
    const dist = join(folder, 'node_modules', 'agent-broker', 'dist');
    const programs = readdirSync(dist).filter((file) => file.endsWith('.js'));
    expect(programs.length).toBeGreaterThan(100);
    for (const file of programs) {
      const text = readFileSync(join(dist, file), 'utf8');
      expect([file, /[^\0-\x7f]/.exec(text)?.[0]]).toEqual([file, undefined]);
      expect([file, /^import .*"(?:node:)?http";$/m.exec(text)?.[0]]).toEqual([file, undefined]);
    }
  });

  test('an installation is small, and contains none of the bundled packages', () => {
    const bytes = diskUsage(join(folder, 'node_modules'));
    // 22.0 MB, of which the guides take 3.2 MB as text and as pages. Much more means a new dependency: use less of it, or load it on use.
    expect(bytes).toBeLessThan(23_000_000);
    const installed = readdirSync(join(folder, 'node_modules')).filter((name) => !name.startsWith('.'));
    expect(installed.sort()).toEqual(['@simplewebauthn', 'agent-broker', 'htm', 'preact', 'uplot']);
  });

  test('the licences of bundled packages are included, with their versions', () => {
    const file = join(folder, 'node_modules', 'agent-broker', 'dist', 'LICENSES.txt');
    const text = readFileSync(file, 'utf8');
    const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
    for (const name of [
      '@bufbuild/cel',
      '@bufbuild/protobuf',
      '@bufbuild/re2',
      '@modelcontextprotocol/server',
      'express',
      'graphql',
      'oidc-provider',
      'pg',
      'zod',
    ]) {
      const part = text.split(`\n${'-'.repeat(80)}\n\n`).find((one) => one.startsWith(`${name} `));
      expect(part).toContain(`${name} ${packages[`node_modules/${name}`].version}: `);
      expect(part).toMatch(/copyright/i);
    }
  });

  test('npx agent-broker --help lists the commands', async () => {
    const { stdout } = await run('npx', ['--no-install', 'agent-broker', '--help'], { cwd: folder, env });
    for (const command of ['serve', 'demo', 'plan', 'apply', 'export', 'owner', 'token', 'verify', 'keys'])
      expect(stdout).toMatch(new RegExp(`^  ${command}\\b`, 'm'));
  });

  test('npx agent-broker serve answers /health, with its console, and stops on SIGTERM', async () => {
    const child = spawn(process.execPath, [join(folder, 'node_modules', '.bin', 'agent-broker'), 'serve'], {
      cwd: folder,
      env: { ...env, PORT: '0', DRAIN_SECONDS: '0', AGENT_BROKER_DATA: join(folder, 'data') },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    try {
      const url = await firstMatch(child, /running at (http:\/\/\S+)/);
      expect(await (await fetch(`${url}/health`)).json()).toEqual({ status: 'ok' });
      const version = (await (await fetch(`${url}/version`)).json()) as { builtAt: string };
      expect(Date.parse(version.builtAt)).toBeGreaterThan(0);
      const page = await (await fetch(`${url}/console`)).text();
      expect(page).toContain('<title>Agent Broker</title>');
      expect(page).toContain('src="/console/bundle/console.js"');
      expect(await (await fetch(`${url}/docs/reference`)).text()).toContain('id="reference"');
      expect(await (await fetch(`${url}/docs/static/swagger-ui.js`)).text()).toContain('SwaggerUIBundle');
      expect(await (await fetch(`${url}/docs/agents`)).text()).toContain('<h2 id="the-agent-token">');
      for (const library of ['preact', 'preact-hooks', 'htm', 'simplewebauthn-browser'])
        expect(await (await fetch(`${url}/console/vendor/${library}.js`)).text()).toMatch(
          /export\s*(\{|default|const)/,
        );
    } finally {
      child.kill('SIGTERM');
    }
    expect(await exitOf(child)).toBe(0);
  });

  test('agent-broker/client can be imported with its types, and no other module of the package', async () => {
    writeFileSync(
      join(folder, 'use.mts'),
      `import { AgentKeyError, type CallOutcome, connectAgent } from 'agent-broker/client';
       const broker = connectAgent({ url: 'http://127.0.0.1:9', bearer: 'none' });
       const ask = { platform: 'p', endpoint: '/x', method: 'GET', scope: 's' } as const;
       const outcome: CallOutcome = await broker.call(ask);
       if (outcome.kind === 'answered') throw new Error(String(outcome.upstreamStatus));
       // @ts-expect-error There is no such method.
       const wrong = () => broker.call({ ...ask, method: 'FETCH' });
       console.log(outcome.kind === 'failed' && outcome.error.code, typeof AgentKeyError, typeof wrong);`,
    );
    const tsc = join(ROOT, 'node_modules', '.bin', 'tsc');
    const strict = ['--strict', '--module', 'nodenext', '--target', 'es2024', '--lib', 'es2024,dom', '--types', ''];
    await run(tsc, [...strict, 'use.mts'], { cwd: folder, env });
    const { stdout } = await run(process.execPath, ['use.mjs'], { cwd: folder, env });
    expect(stdout).toBe('unreachable function function\n');
    await expect(
      run(process.execPath, ['-e', "import('agent-broker/dist/mcp/profile.js')"], { cwd: folder, env }),
    ).rejects.toThrow('ERR_PACKAGE_PATH_NOT_EXPORTED');
  });

  test('npx agent-broker mcp lists its tools, and ends when its input ends', async () => {
    const bin = join(folder, 'node_modules', '.bin', 'agent-broker');
    const child = spawn(process.execPath, [bin, 'mcp', '--profile', 'none.json'], { cwd: folder, env });
    child.stdin.write('{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n');
    expect(await firstMatch(child, /"name":"(read_platform)"/)).toBe('read_platform');
    child.stdin.end();
    expect(await exitOf(child)).toBe(0);
  });

  test('agent-broker demo ends with an approved refund and its receipt', async () => {
    const bin = join(folder, 'node_modules', '.bin', 'agent-broker');
    const { stdout } = await run(process.execPath, [bin, 'demo', '--json'], { cwd: folder, env });
    const story = JSON.parse(stdout) as { seconds: number; steps: object[] };
    expect(story.steps.at(-1)).toMatchObject({ receipt: { result: 'allowed', path: '/refunds', reason: 'approved' } });
    expect(story.seconds).toBeLessThan(15);
  });
});

/** Returns the bytes of the files below a folder in disk blocks of 4 KiB, as `du` counts them. */
function diskUsage(folder: string): number {
  const BLOCK = 4096;
  return readdirSync(folder, { recursive: true }).reduce(
    (sum, path) => sum + Math.ceil(lstatSync(join(folder, String(path))).size / BLOCK) * BLOCK,
    0,
  );
}

function firstMatch(child: ChildProcess, pattern: RegExp): Promise<string> {
  return new Promise((resolveMatch, reject) => {
    let output = '';
    const read = (chunk: Buffer) => {
      output += chunk;
      const found = pattern.exec(output);
      if (found) resolveMatch(found[1]!);
    };
    child.stdout!.on('data', read);
    child.stderr!.on('data', read);
    child.once('exit', (code) => reject(new Error(`it ended with ${code}: ${output}`)));
  });
}

function exitOf(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null) return Promise.resolve(child.exitCode);
  return new Promise((resolveExit) => child.once('exit', resolveExit));
}
