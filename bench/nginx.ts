/** nginx as a plain reverse proxy on loopback, when it is installed. */

import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { present } from '../broker/runtime/present.ts';
import { freePort } from './free-port.ts';
import { stopper, waitForHealth } from './process.ts';

export type Nginx = { version: string; port: number; pid: number; stop(): Promise<void> };

/** Starts nginx in front of these upstreams (`host:port`, round robin), in a folder of its own. Returns undefined when nginx is not installed. */
export async function startNginx(...upstreams: string[]): Promise<Nginx | undefined> {
  const version = nginxVersion();
  if (version === undefined) return undefined;
  const folder = mkdtempSync(join(tmpdir(), 'agent-broker-bench-nginx-'));
  const port = await freePort();
  writeFileSync(join(folder, 'nginx.conf'), configuration(port, upstreams));
  const startedAt = performance.now();
  const child = spawn('nginx', ['-p', folder, '-c', 'nginx.conf', '-e', 'error.log'], {
    env: { ...process.env, PATH: PATH_WITH_SBIN },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const end = stopper(child);
  const stop = async () => {
    await end();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await waitForHealth(`http://127.0.0.1:${port}/`, startedAt, 10_000);
  } catch (error) {
    await stop();
    throw error;
  }
  return { version, port, pid: present(child.pid, 'process'), stop };
}

/** Distributions install nginx in folders that are not on an ordinary user's PATH. */
const PATH_WITH_SBIN = `${process.env.PATH ?? ''}:/usr/sbin:/usr/local/sbin`;

function nginxVersion(): string | undefined {
  try {
    // nginx prints its version to stderr, so a shell redirects it; the command is a constant.
    const said = execFileSync('sh', ['-c', 'nginx -v 2>&1'], { env: { PATH: PATH_WITH_SBIN }, encoding: 'utf8' });
    return /nginx\/([\d.]+)/.exec(said)?.[1];
  } catch {
    return undefined;
  }
}

/** Returns a configuration tuned for speed: kept-alive upstream connections, no access log, no buffering to disk. */
function configuration(port: number, upstreams: readonly string[]): string {
  // When root starts nginx, its workers switch to another user, who could not read the folder.
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  return `
${user}
daemon off;
worker_processes auto;
pid nginx.pid;
error_log error.log crit;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  keepalive_requests 100000000;
  keepalive_timeout 300s;
  upstream platform {
    ${upstreams.map((one) => `server ${one};`).join(' ')}
    keepalive 64;
    keepalive_requests 100000000;
    keepalive_timeout 250s;
  }
  server {
    listen 127.0.0.1:${port};
    client_max_body_size 0;
    proxy_request_buffering off;
    proxy_max_temp_file_size 0;
    location / {
      proxy_pass http://platform;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $host;
    }
  }
}
`;
}
