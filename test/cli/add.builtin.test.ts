/** `agent-broker add` of platforms that are often somewhere else than at their public address. */
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { placeOf } from '../../bin/add-entry.ts';
import { afterFile } from '../world/after-file.ts';
import { runCommand, startServe } from '../world/command.ts';
import { newFolder } from '../world/stores.ts';
import { startUpstream, type Upstream } from '../world/upstream.ts';

const TOKEN = 'CANARY-model-0123456789-abcdefghij';
const folder = newFolder();
const data = join(folder, 'data');
let upstream: Upstream;

beforeAll(async () => {
  upstream = await startUpstream();
  afterFile(() => upstream.close());
  const env = { AGENT_BROKER_DATA: data, AGENT_BROKER_ALLOW_PRIVATE: upstream.address };
  await startServe(['--no-sandbox'], { cwd: folder, env }, 'agent-broker plan');
});

const add = (...words: string[]) =>
  runCommand(['add', ...words, '--token-stdin'], {
    cwd: folder,
    env: { AGENT_BROKER_DATA: data },
    input: `${TOKEN}\n`,
  });

describe('agent-broker add', () => {
  test.each([
    ['openai', 'authorization', `Bearer ${TOKEN}`, 'inference'],
    ['anthropic', 'x-api-key', TOKEN, 'inference'],
    ['npm', 'authorization', `Bearer ${TOKEN}`, 'publish'],
    ['kubernetes', 'authorization', `Bearer ${TOKEN}`, 'operate'],
  ])(
    '%s elsewhere: tried there with the credential in %s, and what agents may be granted',
    async (name, header, value, preset) => {
      upstream.seen.length = 0;
      const added = await add(name, '--base-url', `${upstream.url}/${name}`);
      expect(added.code, added.stderr).toBe(0);
      expect(added.stdout).toContain(`Added ${name} (${name} at ${upstream.url}/${name}), connection "${name}"`);
      expect(added.stdout).toMatch(new RegExp(`^ {2}${preset} `, 'm'));
      expect(added.stdout + added.stderr).not.toContain(TOKEN);
      expect(upstream.seen.map(({ headers }) => headers[header])).toEqual([value]);
    },
  );

  test('a store of objects is signed for the region of its address', async () => {
    const key = JSON.stringify({ access_key_id: 'AKIACANARY0123456789', secret_access_key: TOKEN });
    upstream.seen.length = 0;
    const words = ['add', 's3', '--base-url', upstream.url, '--token-stdin'];
    const added = await runCommand(words, { cwd: folder, env: { AGENT_BROKER_DATA: data }, input: `${key}\n` });
    expect(added.code, added.stderr).toBe(0);
    expect(added.stdout + added.stderr).not.toContain(TOKEN);
    expect(upstream.seen[0]!.headers.authorization).toContain('/us-east-1/s3/aws4_request');
    expect(placeOf('s3', 'https://s3.eu-central-1.amazonaws.com').overrides.auth).toMatchObject({
      region: 'eu-central-1',
    });
  });

  test('a cluster has no public address: says to name it', async () => {
    const unnamed = await add('kubernetes', '--id', 'other');
    expect([unnamed.code, unnamed.stderr]).toEqual([2, expect.stringContaining('--base-url')]);
  });
});
