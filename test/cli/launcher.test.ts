/** The launcher in a clone before `npm ci`, and npm in a checkout, also with an old Node. */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { COMPILE_CACHE, ROOT } from '../world/checkout.ts';
import { newFolder } from '../world/stores.ts';
import { missingScript, shellAtTerminal } from '../world/terminal.ts';

/** Copies the files of a fresh `git clone` that the command line needs. */
function clone(): string {
  const folder = newFolder();
  for (const path of [
    'bin',
    'mcp',
    'package.json',
    'package-lock.json',
    '.npmrc',
    'test/contract/generated/package.json',
  ])
    cpSync(join(ROOT, path), join(folder, path), { recursive: true, filter: (from) => !from.includes('node_modules') });
  return folder;
}

const nodes = [process.execPath, '/usr/bin/node'].filter((path) => existsSync(path));

test.each(nodes)('before "npm ci", %s prints that it must be run', (node) => {
  const folder = clone();
  for (const words of [['serve'], ['--version']]) {
    const script = join(folder, 'bin', 'agent-broker.js');
    const { status, stderr, stdout } = spawnSync(node, [script, ...words], { encoding: 'utf8', env: { HOME: folder } });
    expect([status, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/^Run "npm ci" in \S+ first: .*Node\.js 24.*\n$/);
  }
});

/** An npm whose Node is older than the package's `engines`. */
const old = ['/usr/bin/npm'].find((npm) => {
  if (!existsSync(npm) || !existsSync(join(dirname(npm), 'node'))) return false;
  const { stdout } = spawnSync(join(dirname(npm), 'node'), ['--version'], { encoding: 'utf8' });
  return Number(stdout.slice(1).split('.')[0]) < 24;
});

test.skipIf(!old)(`npm with an old Node prints no warnings${old ? '' : ' (skipped: no old Node here)'}`, () => {
  const folder = clone();
  mkdirSync(join(folder, 'home'));
  const env = {
    ...{ PATH: `${dirname(old!)}:/bin`, HOME: join(folder, 'home'), NODE_COMPILE_CACHE: COMPILE_CACHE },
    npm_config_update_notifier: 'false',
  };
  const npm = (...words: string[]) => spawnSync(old!, words, { cwd: folder, env, encoding: 'utf8' });
  const install = () => npm('ci', '--dry-run', '--offline', '--no-audit');
  const quiet = install();
  expect([quiet.status, quiet.stderr], quiet.stdout).toEqual([0, '']);
  expect(npm('start').stderr).toMatch(/^Run "npm ci" in \S+ first: [^\n]*\n$/);
  const npx = () =>
    spawnSync(join(dirname(old!), 'npx'), ['agent-broker', '--version'], { cwd: folder, env, encoding: 'utf8' });
  expect(npx().stderr).toMatch(/^Run "npm ci" in \S+ first: [^\n]*\n$/);
  // After the installation: dependencies, and the rest of the checkout.
  for (const path of ['node_modules', 'broker', 'json', 'lab']) symlinkSync(join(ROOT, path), join(folder, path));
  const { status, stdout, stderr } = npx();
  expect([status, stdout, stderr]).toEqual([0, expect.stringMatching(/^\d+\.\d+\.\d+\n$/), '']);
  rmSync(join(folder, 'node_modules'));
  rmSync(join(folder, '.npmrc'));
  // Without dependencies, since npm needs seconds to check them all.
  const { name, version, engines } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const bare = { name, version, engines };
  writeFileSync(join(folder, 'package.json'), JSON.stringify(bare));
  writeFileSync(
    join(folder, 'package-lock.json'),
    JSON.stringify({ name, version, lockfileVersion: 3, packages: { '': bare } }),
  );
  expect(install().stderr).toContain('EBADENGINE');
});

const cannotInterrupt = old ? missingScript : 'no old Node here';
test.skipIf(cannotInterrupt)(
  `Ctrl-C with an old Node lets the broker finish what is in flight${cannotInterrupt ? ` (skipped: ${cannotInterrupt})` : ''}`,
  async () => {
    const folder = newFolder();
    const broker = shellAtTerminal(
      `exec ${join(dirname(old!), 'node')} ${join(ROOT, 'bin', 'agent-broker.js')} serve`,
      {
        cwd: folder,
        env: { PATH: '/usr/bin:/bin', HOME: folder, NODE_COMPILE_CACHE: COMPILE_CACHE, PORT: '0', DRAIN_SECONDS: '2' },
      },
    );
    await broker.shows('is running at');
    broker.type('\x03');
    const { code, stdout } = await broker.ended;
    expect(code, stdout).toBe(0);
    expect(stdout).toContain('the broker has stopped');
  },
);
