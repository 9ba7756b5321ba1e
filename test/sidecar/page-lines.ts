/** The lines of docs/unmodified.md that run a tool under `agent-broker run`, executed as a person would type them. */
import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { BIN, ROOT } from '../world/checkout.ts';
import { newFolder } from '../world/stores.ts';
import { pythonPath } from './tls-world.ts';

export const python = pythonPath() ?? 'python3';

/** Tools whose lines object-stores.test.ts and terraform.test.ts run. */
export const STORE_TOOLS = ['rclone', 'restic', 'terraform, state in S3', 'terraform, state over HTTP'];

const BEGINS = 'npx agent-broker run ';
/** By tool, the line, and its note in the page. */
export const ROWS = new Map(
  readFileSync(join(ROOT, 'docs/unmodified.md'), 'utf8')
    .split('\n')
    .flatMap((row) => {
      const [, tool, line, note] = /^\| `([^`]+)` \| `(npx agent-broker run [^`]+)` \| (.*)\|$/.exec(row) ?? [];
      return tool === undefined || line === undefined ? [] : [[tool, { line, note: note ?? '' }] as const];
    }),
);

/** Runs the line in a shell in this folder, with `npx agent-broker` being that of this checkout. */
export async function typed(
  tool: string,
  profile: string,
  more: Record<string, string> = {},
  folder: string = newFolder(),
) {
  const { line = '' } = ROWS.get(tool) ?? {};
  expect(line).toMatch(new RegExp(`^${BEGINS}`));
  const bin = join(newFolder(), 'bin');
  mkdirSync(bin);
  const scripts = {
    npx: `shift; exec '${process.execPath}' '${BIN}' "$@"`,
    // The installed program itself, and not a wrapper that selects one by the caller's HOME.
    pip: `exec '${python}' -m pip --disable-pip-version-check "$@"`,
  };
  for (const [name, script] of Object.entries(scripts)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  const child = spawn('sh', ['-c', line], {
    cwd: folder,
    env: {
      ...more,
      ...{ PATH: `${bin}:${process.env.PATH}`, HOME: newFolder(), AGENT_BROKER_PROFILE: profile },
      // Settings of the machine may name other indexes, and update checks would contact hosts that do not exist here.
      ...{ PIP_CONFIG_FILE: '/dev/null', PIP_ROOT_USER_ACTION: 'ignore' },
      ...{ npm_config_update_notifier: 'false', GH_NO_UPDATE_NOTIFIER: '1' },
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [out, err]: [string[], string[]] = [[], []];
  child.stdout.on('data', (chunk) => out.push(String(chunk)));
  child.stderr.on('data', (chunk) => err.push(String(chunk)));
  const code = await new Promise<number | null>((done) => child.on('close', done));
  return { code, stdout: out.join(''), stderr: err.join('') };
}
