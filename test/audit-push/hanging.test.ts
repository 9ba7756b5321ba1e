/** A folder of audit files that hangs, as a mount whose server is gone: no call and no other sink waits for it, and the process ends when it is told to. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { afterFile } from '../world/after-file.ts';
import { send } from '../world/agent.ts';
import { BIN } from '../world/checkout.ts';
import { failingSync } from '../world/failing-sync.ts';
import { READ } from '../world/requests.ts';
import { newFolder } from '../world/stores.ts';
import { startWorld } from '../world/world.ts';

const folder = join(newFolder(), 'audit');
mkdirSync(folder);
const disk = failingSync({ hangsBelow: folder });
/** More than the pool has threads. */
const SINKS = 6;

test.skipIf(!disk)(`calls and other sinks go on${disk ? '' : ' (skipped: no compiler, or no Linux)'}`, async () => {
  let batches = 0;
  const server = createServer(async (request, response) => {
    for await (const _ of request);
    if (request.url === '/in') batches++;
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  afterFile(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  // By name: names are looked up in the pool of threads, where the folder is written, too.
  const manifest = { base_url: `http://localhost:${port}/v1` };
  const allowed = `127.0.0.1:${port},localhost:${port}`;
  const world = await startWorld('sqlite', { AUDIT_FOLDER: folder, AGENT_BROKER_ALLOW_PRIVATE: allowed });
  const writing = await world.demoOrganisation({ manifest });
  const agent = await writing.agent();
  for (let i = 0; i < SINKS; i++) await writing.ask('POST', '/owner/audit-sinks', { name: `f${i}`, kind: 'file' });
  const others = await world.demoOrganisation({ manifest });
  const another = await others.agent();
  const webhook = { name: 'w', kind: 'webhook', url: `http://127.0.0.1:${port}/in`, from: 'beginning' };
  expect((await others.ask('POST', '/owner/audit-sinks', webhook)).status).toBe(201);
  await world.running.stop();

  const child = spawn(process.execPath, [BIN, 'serve', '--no-sandbox'], {
    env: {
      PATH: process.env.PATH,
      ...world.environment,
      ...disk!.environment,
      PORT: new URL(world.running.baseUrl).port,
      DRAIN_SECONDS: '0',
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
  batches = 0;
  expect((await agent.act(READ)).status).toBe(200);
  // The write of the first sink is under way by then.
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  for (let i = 0; i < 3; i++) {
    const began = performance.now();
    expect((await another.act(READ)).status).toBe(200);
    expect(performance.now() - began, 'milliseconds of a call').toBeLessThan(3_000);
  }
  await expect.poll(() => batches, { timeout: 15_000 }).toBeGreaterThan(0);
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  expect(await ended, said).toEqual([null, 'SIGKILL']);
  expect(said).toContain('AUDIT_FOLDER does not answer');
});
