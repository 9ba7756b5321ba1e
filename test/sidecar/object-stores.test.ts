/** Installed tools that keep files in an object store, by the lines of docs/unmodified.md, and with a static key. */
import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeEach, describe, expect, test } from 'vitest';
import { BUCKET } from '../world/servers/object-store.ts';
import { newFolder } from '../world/stores.ts';
import { ALLOW_ALL, shared } from '../world/world.ts';
import { givenObjectStore } from './object-store-world.ts';
import { ROWS, typed } from './page-lines.ts';
import { profileOf, run, sh } from './run-world.ts';
import { onlyWith } from './tls-world.ts';

/** The agent's scopes: no settings, and no permanent deletion of versions. */
const SCOPES = ['buckets.read', 'listing.read', 'objects.read', 'objects.write', 'objects.delete', 'uploads.write'];
/** Larger than one part of a multipart upload. */
const BIG = Buffer.alloc(11_000_000, 'what an object holds, with \0 and \xff');

describe('object stores', { timeout: 180_000 }, () => {
  const { store, organisation } = givenObjectStore();
  const agent = shared(() =>
    organisation.agent({ rules: ALLOW_ALL, grants: { s3: { scopeList: SCOPES.map((scope) => `s3:${scope}`) } } }),
  );
  const files = (): string => {
    const folder = newFolder();
    mkdirSync(join(folder, 'below'));
    writeFileSync(join(folder, 'a.txt'), 'hello');
    // A stored file is not parsed as JSON, so neither a method override nor comments in it matter.
    writeFileSync(join(folder, 'below/ü & b.json'), '{"_method":"DELETE"}');
    writeFileSync(join(folder, 'tsconfig.json'), '{ "strict": true } // always\n');
    writeFileSync(join(folder, 'big.bin'), BIG);
    return folder;
  };
  const contentOf = (folder: string) =>
    Object.fromEntries(
      readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ parentPath, name }) => [
          join(parentPath, name).slice(folder.length),
          readFileSync(join(parentPath, name), 'base64'),
        ]),
    );
  beforeEach(() => {
    store.objects.clear();
    store.problems.length = 0;
  });

  onlyWith('restic', 'version')('restic writes a backup and restores it', async () => {
    const [folder, back] = [files(), newFolder()];
    const env = { RESTIC_PASSWORD: 'of the backup', RESTIC_PROGRESS_FPS: '0.1' };
    // Up to 8 MiB each body is signed, because this store does not use TLS.
    const lines = `export RESTIC_REPOSITORY="s3:http://127.0.0.1:$AGENT_BROKER_S3_PORT/${BUCKET}" RESTIC_PACK_SIZE=4
      restic init && restic backup '${folder}' && restic check --read-data && restic restore latest --target '${back}'`;
    const { code, stdout, stderr } = await run(profileOf(agent), ['--port', 's3', ...sh(lines)], env);
    expect(code, stdout + stderr).toBe(0);
    expect(contentOf(join(back, folder))).toEqual(contentOf(folder));
    const listed = await typed('restic', profileOf(agent), env);
    expect(listed.stdout, listed.stderr).toContain(folder);
    expect(store.problems).toEqual([]);
  });

  onlyWith('rclone', 'version')('rclone copies files there and back, large ones in parts', async () => {
    const [folder, back] = [files(), newFolder()];
    const issued = await organisation.ask('POST', `/owner/agents/${agent.agentId}/static-keys`, {
      label: 'rclone',
      connection: 's3',
    });
    const config = join(newFolder(), 'rclone.conf');
    writeFileSync(
      config,
      `[store]\ntype = s3\nprovider = Other\naccess_key_id = ${issued.body.key}\nsecret_access_key = any\nendpoint = ${issued.body.url}\nupload_cutoff = 5M\nchunk_size = 5M\n`,
    );
    const rclone = (...words: string[]) =>
      promisify(execFile)('rclone', ['--config', config, '--retries', '1', ...words], {
        env: { PATH: process.env.PATH },
      });
    await rclone('copy', folder, `store:${BUCKET}/copy`);
    expect(store.objects.get('copy/big.bin')?.equals(BIG)).toBe(true);
    await rclone('check', folder, `store:${BUCKET}/copy`);
    await rclone('copy', `store:${BUCKET}/copy`, back);
    expect(contentOf(back)).toEqual(contentOf(folder));
    const listed = await typed('rclone', profileOf(agent));
    expect(listed.stdout, listed.stderr).toBe('copy/\n');
    await rclone('delete', `store:${BUCKET}/copy`);
    expect([...store.objects.keys()]).toEqual([]);
    await expect(rclone('mkdir', 'store:another')).rejects.toThrow('scope');
    expect(store.problems).toEqual([]);
  });

  test('docs/unmodified.md has a line for each of them', () => {
    expect([...ROWS.keys()]).toEqual(expect.arrayContaining(['rclone', 'restic']));
  });
});
