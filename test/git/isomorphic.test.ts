/** Another implementation of git's protocols: isomorphic-git, written in JavaScript. */
import fs from 'node:fs';
import { join } from 'node:path';
import iso from 'isomorphic-git';
import http from 'isomorphic-git/http/node';
import { beforeAll, expect, test } from 'vitest';
import { startGitWorld } from '../world/git-world.ts';
import { listAuditRows } from '../world/rows.ts';
import { git } from '../world/servers/git-host.ts';
import { newFolder } from '../world/stores.ts';
import { shared } from '../world/world.ts';

let bare: string;
const given = shared(() => startGitWorld('sqlite'));
beforeAll(async () => {
  bare = given.host.repository('acme/app');
});

test('clones, pushes a branch and deletes it', async () => {
  const agent = await given.agent();
  const dir = join(newFolder(), 'work');
  const onAuth = () => ({ username: 'x', password: agent.token() });
  const common = { fs, http, dir, onAuth };
  await iso.clone({ ...common, url: `${given.world.running.baseUrl}/git/acme/app.git` });
  expect(fs.readFileSync(join(dir, 'README.md'), 'utf8')).toBe('# acme/app\n');

  await iso.branch({ fs, dir, ref: 'agent/iso', checkout: true });
  fs.writeFileSync(join(dir, 'a.txt'), 'a');
  await iso.add({ fs, dir, filepath: 'a.txt' });
  const author = { name: 'A', email: 'a@acme.example' };
  const sha = await iso.commit({ fs, dir, message: 'a', author });
  const pushed = await iso.push({ ...common, ref: 'agent/iso' });
  expect(pushed).toMatchObject({ ok: true });
  expect(git(bare, 'rev-parse', 'agent/iso').trim()).toBe(sha);
  await iso.push({ ...common, ref: 'agent/iso', delete: true });
  expect(() => git(bare, 'rev-parse', '--verify', '-q', 'agent/iso')).toThrow();

  const rows = await listAuditRows(given.world.db, given.organisation.id, { limit: 50 });
  const refs = rows.flatMap(({ flags }) => JSON.parse(flags ?? '{}').pushed_refs ?? []);
  expect(refs).toEqual([
    { ref: 'refs/heads/agent/iso', action: 'delete' },
    { ref: 'refs/heads/agent/iso', action: 'create' },
  ]);
});

test('shows the error line of a refusal', async () => {
  const agent = await given.agent({ constraints: { repos: ['acme/other'] } });
  const onAuth = () => ({ username: 'x', password: agent.token() });
  const url = `${given.world.running.baseUrl}/git/acme/app`;
  const cloning = iso.clone({ fs, http, dir: join(newFolder(), 'work'), onAuth, url });
  const data = {
    statusCode: 403,
    response: expect.stringContaining("repo_not_allowed - acme/app is not in the agent's allowed repositories"),
  };
  await expect(cloning).rejects.toMatchObject({ data });
});
