/** A crashing broker leaves none of its memory on the disk: no diagnostic report, and no core dump with memory. */
import { spawn } from 'node:child_process';
import { generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { leaksOf } from '../world/canary.ts';
import { BIN } from '../world/checkout.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { newFolder } from '../world/stores.ts';

test('a crash writes no report, and no core dump with memory, although both are enabled', {
  timeout: 180_000,
}, async () => {
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
    { timeout: scaledTimeout(40_000) },
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

test.each(['demo', 'mcp'])('%s writes no report on a signal either', async (command) => {
  const cwd = newFolder();
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const child = spawn(process.execPath, [BIN, command], {
    cwd,
    env: {
      PATH: process.env.PATH,
      HOME: cwd,
      PORT: '0',
      AGENT_BROKER_DATA: join(cwd, 'data'),
      AGENT_BROKER_URL: 'http://127.0.0.1:9',
      AGENT_BROKER_AGENT_ID: randomUUID(),
      AGENT_BROKER_OWNER_ID: randomUUID(),
      AGENT_BROKER_PRIVATE_KEY: privateKey.export({ format: 'pem', type: 'pkcs8' }).toString(),
      NODE_OPTIONS: `--report-on-signal --report-directory=${cwd}`,
    },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  afterFile(() => child.kill('SIGKILL'));
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
  if (command === 'mcp') {
    const initialize = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } };
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: initialize })}\n`);
  }
  await expect.poll(() => said, { timeout: 60_000 }).not.toBe('');
  const ended = once(child, 'exit');
  child.kill('SIGUSR2');
  await ended;
  expect(readdirSync(cwd).filter((name) => name.startsWith('report'))).toEqual([]);
});
