/** Reverse proxies as installed on this machine, each configured with its block in docs/operations.md. */
import { spawn } from 'node:child_process';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { freePort } from '../../../bench/free-port.ts';
import { waitForHealth } from '../../../bench/process.ts';
import { ROOT } from '../checkout.ts';
import { afterFile } from '../runner/after-file.ts';
import { newFolder } from '../stores.ts';

const PAGE = readFileSync(join(ROOT, 'docs/operations.md'), 'utf8');
/** Modules in the folder that Debian uses. */
const MODULES = ['mpm_event', 'proxy', 'proxy_http', 'authz_core', 'authn_core'].map(
  (name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`,
);

export type ReverseProxy = {
  program: string;
  version: string;
  /** The language of the block on the page. */
  block: string;
  /** Returns a complete configuration, which listens on a port of 127.0.0.1. */
  file(block: string, port: number): string;
  args(file: string, folder: string): string[];
  signal: NodeJS.Signals;
};

/** As root, the workers need permission to write to these folders. */
const user = process.getuid?.() === 0 ? 'user root;' : '';
const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  .map((name) => `${name}_temp_path ${name};`)
  .join(' ');
export const REVERSE_PROXIES: ReverseProxy[] = [
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

/** Starts a proxy in front of the broker at this address, and returns its own; it ends with the test file. */
export async function startReverseProxy(
  { program, block, file, args, signal }: ReverseProxy,
  brokerUrl: string,
): Promise<string> {
  const [, text = ''] = new RegExp(`\`\`\`${block}\n(.*?\n)\`\`\`\n`, 's').exec(PAGE) ?? [];
  expect(text).toContain('127.0.0.1:8787');
  const [folder, port] = [newFolder(), await freePort()];
  chmodSync(folder, 0o755);
  const own = text.replace('127.0.0.1:8787', new URL(brokerUrl).host.replace('localhost', '127.0.0.1'));
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
