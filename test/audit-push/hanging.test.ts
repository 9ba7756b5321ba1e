/** A folder of audit files that hangs, as a mount without its server: calls and other sinks do not wait for it, and the process can be stopped. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { send } from '../world/agent.ts';
import { BIN } from '../world/checkout.ts';
import { failingSync } from '../world/failing-sync.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { startAuditReceiver } from '../world/servers/audit-receiver.ts';
import { startUpstream } from '../world/servers/upstream.ts';
import { newFolder } from '../world/stores.ts';
import { READ, startWorld } from '../world/world.ts';

const folder = join(newFolder(), 'audit');
mkdirSync(folder);
const disk = failingSync({ hangsBelow: folder });
/** Returns the bytes of all files below the folder. */
const written = (): number =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
/** More sinks than the thread pool has threads. */
const SINKS = 6;

test.skipIf(!disk)(
  `calls and other sinks continue while an audit folder hangs${disk ? '' : ' (skipped: no compiler, or no Linux)'}`,
  async () => {
    const receiver = await startAuditReceiver();
    const platform = await startUpstream();
    afterFile(async () => {
      await receiver.close();
      await platform.close();
    });
    // A host name, because names are resolved in the thread pool, which also writes to the folder.
    const manifest = { base_url: `${platform.url.replace('127.0.0.1', 'localhost')}/v1` };
    const allowed = `${receiver.address},${new URL(manifest.base_url).host}`;
    const world = await startWorld('sqlite', { AUDIT_FOLDER: folder, AGENT_BROKER_ALLOW_PRIVATE: allowed });
    const writing = await world.demoOrganisation({ manifest });
    const agent = await writing.agent();
    for (let i = 0; i < SINKS; i++) await writing.ask('POST', '/owner/audit-sinks', { name: `f${i}`, kind: 'file' });
    const others = await world.demoOrganisation({ manifest });
    const another = await others.agent();
    const webhook = { name: 'w', kind: 'webhook', url: `${receiver.url}/in`, from: 'beginning' };
    expect((await others.ask('POST', '/owner/audit-sinks', webhook)).status).toBe(201);
    await world.running.stop();

    const child = spawn(process.execPath, [BIN, 'serve', '--no-sandbox'], {
      env: {
        PATH: process.env.PATH,
        ...world.environment,
        ...disk!.environment,
        PORT: new URL(world.running.baseUrl).port,
        DRAIN_SECONDS: '0',
        LOG_LEVEL: 'error',
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    afterFile(() => child.kill('SIGKILL'));
    await expect
      .poll(async () => (await send(`${world.running.baseUrl}/readyz`, {}).catch(() => undefined))?.status, {
        timeout: 40_000,
      })
      .toBe(200);
    disk!.fail();
    receiver.forget();
    const before = written();
    expect((await agent.act(READ)).status).toBe(200);
    // A row is written before it is synced: the first sink hangs from then on.
    await expect.poll(written, { timeout: 15_000 }).toBeGreaterThan(before);
    for (let i = 0; i < 3; i++) {
      const began = performance.now();
      expect((await another.act(READ)).status).toBe(200);
      expect(performance.now() - began, 'milliseconds of a call').toBeLessThan(3_000);
    }
    await receiver.waitFor(1);
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    expect(await ended, said).toEqual([null, 'SIGKILL']);
    expect(said).toContain('AUDIT_FOLDER does not answer');
  },
);
