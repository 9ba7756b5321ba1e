/** Package managers other than npm, under `agent-broker run`: their requests to the registry go through the broker, with its key. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { npm } from '../../broker/platforms/builtin/npm.ts';
import { profileOf, run, sh } from '../sidecar/run-world.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { newFolder } from '../world/stores.ts';
import { CANARY, givenWorld, shared } from '../world/world.ts';
import { withoutLab } from './installed.ts';

const PACKAGE = '{"name":"left","version":"1.0.0"}';
const program = (path: string) => `${process.execPath} ${join(import.meta.dirname, 'node_modules', path)}`;
/** By name, the command that adds a package to the project in the working folder. */
const MANAGERS = {
  'pnpm 11': `${program('pnpm/bin/pnpm.mjs')} add`,
  'Yarn 1': `${program('yarn/bin/yarn.js')} add --no-progress`,
  'Yarn 4': `touch yarn.lock; echo 'nodeLinker: node-modules' > .yarnrc.yml; ${program('@yarnpkg/cli-dist/bin/yarn.js')} add`,
};

describe.skipIf(withoutLab)(
  `package managers${withoutLab ? ` (skipped: ${withoutLab})` : ''}`,
  { timeout: scaledTimeout(60_000) },
  () => {
    const world = givenWorld();
    const profile = shared(async () => {
      const organisation = await world.organisation();
      await organisation.platform({ id: 'npm', manifest: { ...npm, base_url: world.upstream.url } });
      const rules = [{ effect: 'allow' }, { effect: 'deny', endpoints: ['/secret'] }];
      const grants = { npm: { scopeList: Object.keys(npm.scopes) } };
      return { file: profileOf(await organisation.agent({ rules, grants })) };
    });

    test.each(Object.entries(MANAGERS))('%s adds an allowed package, and fails on a denied one', async (_, add) => {
      const bytes = packed();
      const hash = (name: string, coding: 'hex' | 'base64') => createHash(name).update(bytes).digest(coding);
      const dist = {
        tarball: `${world.upstream.url}/left/-/left-1.0.0.tgz`,
        ...{ integrity: `sha512-${hash('sha512', 'base64')}`, shasum: hash('sha1', 'hex') },
      };
      const told = {
        ...{ name: 'left', 'dist-tags': { latest: '1.0.0' }, time: { '1.0.0': '2026-01-01T00:00:00Z' } },
        versions: { '1.0.0': { name: 'left', version: '1.0.0', dist } },
      };
      world.upstream.answer = ({ url = '' }, response) => {
        if (url === '/left/-/left-1.0.0.tgz') return void response.writeHead(200).end(bytes);
        response.writeHead(url === '/left' ? 200 : 404, { 'content-type': 'application/json' });
        response.end(JSON.stringify(url === '/left' ? told : {}));
      };
      const lines = `echo '{"name":"project"}' > package.json
        ${add} left && cat node_modules/left/package.json *lock*; ${add} secret >&2 && echo it is there`;
      const { stdout, stderr } = await run(profile.file, sh(lines));
      expect(stdout, stderr).toContain(PACKAGE);
      expect(stdout).not.toContain('it is there');
      // The URL of a run is valid only during the run, so it must not be written to a lock file.
      expect(stdout).not.toContain('/proxy/');
      const asked = world.upstream.seen.filter(({ target }) => !target.endsWith('.tgz'));
      expect(asked.map(({ target }) => target)).toContain('/left');
      expect(asked.map(({ target }) => target)).not.toContain('/secret');
      expect(new Set(asked.map(({ headers }) => headers.authorization))).toEqual(new Set([`Bearer ${CANARY}`]));
    });
  },
);

/** Returns the archive of an empty package. */
function packed(): Buffer {
  const folder = newFolder();
  mkdirSync(join(folder, 'package'));
  writeFileSync(join(folder, 'package/package.json'), PACKAGE);
  execFileSync('tar', ['-czf', 'left.tgz', 'package'], { cwd: folder });
  return readFileSync(join(folder, 'left.tgz'));
}
