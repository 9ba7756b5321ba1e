/** A broker that crashes leaves nothing of its memory on the disk: no diagnostic report, and no core with memory in it. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { afterFile } from '../world/after-file.ts';
import { leaksOf } from '../world/canary.ts';
import { BIN } from '../world/checkout.ts';
import { newFolder } from '../world/stores.ts';

test('crashed where cores and reports are asked for', { timeout: 180_000 }, async () => {
  const cwd = newFolder();
  const masterKey = randomBytes(32).toString('base64');
  const metricsToken = `CANARY-${randomBytes(24).toString('hex')}`;
  const child = spawn(
    'sh',
    ['-c', 'ulimit -c unlimited; exec "$@"', 'sh', process.execPath, BIN, 'serve', '--no-sandbox'],
    {
      cwd,
      env: {
        PATH: process.env.PATH,
        PORT: '0',
        AGENT_BROKER_DATA: join(cwd, 'data'),
        AGENT_BROKER_MASTER_KEY: masterKey,
        METRICS_TOKEN: metricsToken,
        NODE_OPTIONS: `--report-on-fatalerror --report-on-signal --report-uncaught-exception --report-directory=${cwd}`,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  afterFile(() => child.kill('SIGKILL'));
  const run = join(cwd, 'data', 'run', 'broker.json');
  await vi.waitUntil(
    () => {
      try {
        return readFileSync(run, 'utf8').includes('url');
      } catch {
        return false;
      }
    },
    { timeout: 40_000 },
  );
  const ended = once(child, 'exit');
  child.kill('SIGABRT');
  await ended;
  const left = readdirSync(cwd).filter((name) => name !== 'data');
  expect(left.filter((name) => !name.startsWith('core'))).toEqual([]);
  for (const name of left) {
    const core = readFileSync(join(cwd, name));
    expect(core.length, 'a core without memory').toBeLessThan(1_048_576);
    const secrets = [masterKey, Buffer.from(masterKey, 'base64').toString('latin1'), metricsToken];
    expect(secrets.map((secret) => core.includes(secret, 0, 'latin1'))).toEqual([false, false, false]);
    expect(leaksOf(metricsToken, core)).toEqual([]);
  }
});
