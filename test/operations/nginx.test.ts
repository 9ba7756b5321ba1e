/** The block for nginx in docs/operations.md, in front of a broker, with nginx as it is installed. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { freePort } from '../../bench/free-port.ts';
import { waitForHealth } from '../../bench/process.ts';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { onlyWith } from '../sidecar/tls-world.ts';
import { afterFile } from '../world/after-file.ts';
import { ROOT } from '../world/checkout.ts';
import { readEvents } from '../world/event-stream.ts';
import { type GitWorld, remoteOf, runGit, startGitWorld } from '../world/git-world.ts';
import { newFolder } from '../world/stores.ts';

const PAGE = readFileSync(join(ROOT, 'docs/operations.md'), 'utf8');
const ABOVE_ITS_OWN_LIMIT = 3 * 1024 * 1024;

/** Answers its address. Whoever is root has to say that its workers may write where it does. */
async function nginxBefore(broker: string): Promise<string> {
  const [, location = ''] = /```nginx\n(location \/ \{.*?\n\})\n```/s.exec(PAGE) ?? [];
  expect(location).toContain('http://127.0.0.1:8787');
  const [folder, port] = [newFolder(), await freePort()];
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${name};`)
    .join(' ');
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off; pid pid; ${process.getuid?.() === 0 ? 'user root;' : ''} error_log stderr crit; events {}
    http { access_log off; ${paths} server { listen 127.0.0.1:${port}; ${location.replace('http://127.0.0.1:8787', broker)} } }`,
  );
  const child = spawn('nginx', ['-p', folder, '-c', 'nginx.conf', '-e', 'stderr'], {
    env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = new Promise<void>((done) => child.once('exit', () => done()));
  afterFile(() => {
    child.kill('SIGQUIT');
    return ended;
  });
  const url = `http://localhost:${port}`;
  await waitForHealth(`${url}/health`, performance.now(), 10_000);
  return url;
}

let given: GitWorld;
let proxied: string;
const real = onlyWith('nginx', '-v');
if (real === test)
  beforeAll(async () => {
    given = await startGitWorld('sqlite');
    given.host.repository('acme/app');
    proxied = await nginxBefore(given.world.running.baseUrl);
  });

real('a push over the default limit of nginx arrives, with a Content-Length and in chunks', async () => {
  const agent = await given.agent();
  const remote = remoteOf(agent, 'acme/app').replace(new URL(agent.baseUrl).host, new URL(proxied).host);
  const folder = join(newFolder(), 'work');
  expect((await runGit(['clone', '-q', remote, folder])).code).toBe(0);
  writeFileSync(join(folder, 'big.bin'), randomBytes(ABOVE_ITS_OWN_LIMIT));
  for (const words of [
    ['add', '-A'],
    ['-c', 'user.name=a', '-c', 'user.email=a@acme.example', 'commit', '-qm', 'big'],
  ])
    expect((await runGit(words, { folder })).code).toBe(0);
  for (const buffer of ['16m', '64k']) {
    const pushed = await runGit(['push', 'origin', `HEAD:refs/heads/agent/${buffer}`], {
      folder,
      config: { 'http.postBuffer': buffer },
    });
    expect(pushed.code, pushed.stderr).toBe(0);
  }
});

real('events are passed on immediately, and not when the answer ends', async () => {
  const { world, organisation } = given;
  const { token } = mintOwnerSession(world.running.broker, organisation.owner);
  const reader = await readEvents(`${proxied}/owner/events`, { authorization: `Bearer ${token}` });
  await reader.until(({ events }) => events.length === 1);
  reader.close();
});
