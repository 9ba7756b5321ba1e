/** Audit sinks on the command line: added, listed, tried, paused, moved and removed; a secret is never printed. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { commandHost, startServe } from '../world/command.ts';
import { startAuditReceiver } from '../world/servers/audit-receiver.ts';
import { startUpstream } from '../world/servers/upstream.ts';
import { newFolder } from '../world/stores.ts';
import { shared } from '../world/world.ts';

const folder = newFolder();
const hosted = commandHost();
const env = { AGENT_BROKER_DATA: folder };
const run = (words: string[], more: Record<string, string> = {}) =>
  hosted(['audit-sink', ...words], { cwd: folder, env: { ...env, ...more } });

const receiver = shared(() => startAuditReceiver());
beforeAll(async () => {
  await startServe([], {
    cwd: folder,
    env: { ...env, AGENT_BROKER_ALLOW_PRIVATE: receiver.address, AUDIT_FOLDER: join(folder, 'audit') },
  });
});

test('a sink is added, listed, tried, paused, moved and removed', async () => {
  const hook = await run(['add', 'siem', 'webhook', `url=${receiver.url}/in`, '--from', 'beginning']);
  expect(hook.code, hook.stderr).toBe(0);
  expect(hook.stdout).toMatch(/from row 0 on[\s\S]*shown this once: whsec_/);
  await receiver.waitFor(1);
  const secret = JSON.stringify({ access_key_id: 'AKIAIOSFODNN7EXAMPLE', secret_access_key: 'SECRET-OF-S3' });
  const s3 = ['add', 'archive', 's3', `url=${receiver.url}`, 'region=eu-central-1', 'bucket=acme', 'path_style=true'];
  expect(await run(s3)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('by --secret-stdin or --secret-env'),
  });
  expect((await run([...s3, '--secret-env', 'S3_SECRET'], { S3_SECRET: secret })).stderr).toBe('');
  expect((await run(['add', 'disk', 'file', 'max_bytes=2048', '--format', 'json'])).code).toBe(0);
  const listed = await run(['list']);
  expect(listed.stdout).toMatch(
    /archive +s3 +ocsf +\d+ +\S+[\s\S]*disk +file +json +\d+ +working[\s\S]*siem +webhook +ocsf/,
  );
  expect((await run(['list', '--json'])).stdout).not.toContain('SECRET-OF-S3');
  expect((await run(['test', 'siem', 'disk'])).stdout).toMatch(/siem \(webhook\): works[\s\S]*disk \(file\): works/);
  expect(readdirSync(join(folder, 'audit'))).toHaveLength(1);
  expect((await run(['pause', 'siem'])).stdout).toContain('siem is paused');
  expect((await run(['seek', 'siem', '0'])).stdout).toMatch(/the next row is 0, and \d+ wait/);
  expect((await run(['resume', 'siem'])).stdout).toContain('siem is active');
  expect((await run(['remove', 'siem'])).stdout).toContain('no longer pushed to siem');
  const gone = await run(['test', 'seim']);
  expect([gone.code, gone.stderr]).toEqual([1, expect.stringContaining('There is no audit sink seim.')]);
});

test('a start that is no row, and an address with a password, are refused with what to write instead', async () => {
  for (const [words, says] of [
    [['--from', '-1'], 'from: write now, beginning, or the index of a row.'],
    [['--from', 'yesterday'], 'from: write now, beginning, or the index of a row.'],
    [['--from', '100000'], /from: the receipt log has \d+ rows\./],
  ] as const) {
    const refused = await run(['add', 'late', 'webhook', `url=${receiver.url}/in`, ...words]);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(says)]);
  }
  const address = `${receiver.url.replace('://', '://user:pw@')}/in`;
  const refused = await run(['add', 'late', 'webhook', `url=${address}`]);
  const says = 'url: holds a user name or password; leave it out, and give the credential as a secret.';
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining(says)]);
  expect((await run(['list'])).stdout).not.toContain('late');
});

test('--url is the broker’s address, not the sink’s: the mistake is reported, and no owner session is sent there', async () => {
  // An upstream of its own: the sinks above keep pushing to theirs.
  const other = await startUpstream();
  const misplaced = await run(['add', 'x', 'otlp', '--url', other.url, '--owner-token', 'CANARY']);
  expect([misplaced.code, misplaced.stderr]).toEqual([2, expect.stringContaining(`write url=${other.url}`)]);
  expect(other.seen).toEqual([]);
});
