/** The blocks for reverse proxies in docs/operations.md, in front of a broker, with the proxies as they are installed. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { beforeAll, describe, expect, test } from 'vitest';
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
const ABOVE_THE_LIMIT_OF_NGINX = 3 * 1024 * 1024;
/** Debian says the folder of its modules. */
const MODULES = ['mpm_event', 'proxy', 'proxy_http', 'authz_core', 'authn_core'].map(
  (name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`,
);

type Proxy = {
  program: string;
  version: string;
  /** The language of the block on the page. */
  block: string;
  /** A whole configuration of it, which listens on a port of 127.0.0.1. */
  file(block: string, port: number): string;
  args(file: string, folder: string): string[];
  signal: NodeJS.Signals;
};

/** Whoever is root has to say that its workers may write where it does. */
const user = process.getuid?.() === 0 ? 'user root;' : '';
const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  .map((name) => `${name}_temp_path ${name};`)
  .join(' ');
const PROXIES: Proxy[] = [
  {
    ...{ program: 'nginx', version: '-v', block: 'nginx', signal: 'SIGTERM' },
    file: (block, port) =>
      `daemon off; pid pid; ${user} error_log stderr crit; events {}
      http { access_log off; ${paths} server { listen 127.0.0.1:${port}; ${block} } }`,
    args: (file, folder) => ['-p', folder, '-c', file, '-e', 'stderr'],
  },
  {
    ...{ program: 'caddy', version: 'version', block: 'caddyfile', signal: 'SIGKILL' },
    file: (block, port) =>
      `{\n\tadmin off\n\tlog default {\n\t\toutput discard\n\t}\n}\n${block.replace(/^\S+/, `http://localhost:${port}`)}\n`,
    args: (file) => ['run', '--adapter', 'caddyfile', '--config', file],
  },
  {
    ...{ program: 'haproxy', version: '-v', block: 'haproxy', signal: 'SIGKILL' },
    file: (block, port) => `${block.replace(/bind .*/, `bind 127.0.0.1:${port}`)}\n`,
    args: (file) => ['-q', '-f', file],
  },
  {
    ...{ program: 'apache2', version: '-v', block: 'apache', signal: 'SIGKILL' },
    file: (block, port) =>
      ['ServerName localhost', 'PidFile pid', 'ErrorLog errors', `Listen 127.0.0.1:${port}`, 'User www-data']
        .concat('Group www-data', MODULES, block, '')
        .join('\n'),
    args: (file, folder) => ['-X', '-d', folder, '-f', file],
  },
];

let given: GitWorld;
beforeAll(async () => {
  given = await startGitWorld('sqlite', { TRUSTED_PROXIES: '127.0.0.1' });
  given.host.repository('acme/app');
});

/** Answers its address. */
async function started({ program, block, file, args, signal }: Proxy): Promise<string> {
  const [, text = ''] = new RegExp(`\`\`\`${block}\n(.*?\n)\`\`\`\n`, 's').exec(PAGE) ?? [];
  expect(text).toContain('127.0.0.1:8787');
  const [folder, port] = [newFolder(), await freePort()];
  chmodSync(folder, 0o755);
  const own = text.replace(
    '127.0.0.1:8787',
    new URL(given.world.running.baseUrl).host.replace('localhost', '127.0.0.1'),
  );
  writeFileSync(join(folder, 'configuration'), file(own, port));
  const child = spawn(program, args(join(folder, 'configuration'), folder), {
    cwd: folder,
    env: { ...process.env, HOME: folder, PATH: `${process.env.PATH}:/usr/sbin` },
    stdio: 'ignore',
  });
  const ended = new Promise<void>((done) => child.once('exit', () => done()));
  afterFile(() => {
    child.kill(signal);
    return ended;
  });
  await waitForHealth(`http://localhost:${port}/health`, performance.now(), 10_000);
  return `http://localhost:${port}`;
}

describe.each(PROXIES)('$program', (proxy) => {
  const real = onlyWith(proxy.program, proxy.version);
  let proxied: string;
  beforeAll(async () => {
    if (real === test) proxied = await started(proxy);
  });

  real('lets a push of megabytes through, with a Content-Length and in chunks', async () => {
    const agent = await given.agent();
    const remote = remoteOf(agent, 'acme/app').replace(new URL(agent.baseUrl).host, new URL(proxied).host);
    const folder = join(newFolder(), 'work');
    expect((await runGit(['clone', '-q', remote, folder])).code).toBe(0);
    writeFileSync(join(folder, 'big.bin'), randomBytes(ABOVE_THE_LIMIT_OF_NGINX));
    for (const words of [
      ['add', '-A'],
      ['-c', 'user.name=a', '-c', 'user.email=a@acme.example', 'commit', '-qm', 'big'],
    ])
      expect((await runGit(words, { folder })).code).toBe(0);
    for (const buffer of ['16m', '64k']) {
      const pushed = await runGit(['push', 'origin', `HEAD:refs/heads/agent/${proxy.program}-${buffer}`], {
        folder,
        config: { 'http.postBuffer': buffer },
      });
      expect(pushed.code, pushed.stderr).toBe(0);
    }
  });

  real('passes events on immediately, and not when the answer ends', async () => {
    const { world, organisation } = given;
    const { token } = mintOwnerSession(world.running.broker, organisation.owner);
    const reader = await readEvents(`${proxied}/owner/events`, { authorization: `Bearer ${token}` });
    await reader.until(({ events }) => events.length === 1);
    reader.close();
  });

  real('passes paths on as they were written', async () => {
    const agent = await given.agent();
    const answerAt = async (base: string, path: string) => {
      const { hostname, port } = new URL(base);
      const authorization = `Bearer ${agent.token()}`;
      const { promise, resolve, reject } = Promise.withResolvers<[number | undefined, unknown]>();
      request({ hostname, port, path: `/proxy/codehost-main${path}`, headers: { authorization } })
        .on('response', (answer) =>
          json(answer).then((body) => resolve([answer.statusCode, (body as { message: string }).message]), reject),
        )
        .on('error', reject)
        .end();
      return await promise;
    };
    for (const path of [
      'contents/a%2Fb',
      'labels/a%20b?q=%2F',
      '/labels/x',
      './labels/x',
      'x/../labels/x',
      "labels/a'b(c)*",
    ])
      expect(await answerAt(proxied, `/repos/acme/app/${path}`), path).toEqual(
        await answerAt(given.world.running.baseUrl, `/repos/acme/app/${path}`),
      );
  });
});
