/**
 * The code host of the bench, in a process of its own: git's smart HTTP with packs from files, so that the bench measures the transfer
 * and not `git pack-objects`. `/{owner}/{N}.git` answers a fetch with N MiB. A push is read completely and accepted.
 */

import { randomFillSync } from 'node:crypto';
import { createReadStream, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';

const MIB = 1024 * 1024;
const OID = '7d1b31e74ee336d15cbd21741bc88a537ed063a0';
const folder = mkdtempSync(join(tmpdir(), 'agent-broker-bench-git-'));
const files = new Map<number, string>();

function fileOf(megabytes: number): string {
  const known = files.get(megabytes);
  if (known !== undefined) return known;
  const path = join(folder, `${megabytes}.pack`);
  const piece = randomFillSync(Buffer.alloc(MIB));
  const file = openSync(path, 'w');
  for (let at = 0; at < megabytes; at++) writeSync(file, piece);
  files.set(megabytes, path);
  return path;
}

const line = (text: string): string => `${(text.length + 4).toString(16).padStart(4, '0')}${text}`;

const advertisement = (service: string): string =>
  `${line(`# service=${service}\n`)}0000${line(`${OID} refs/heads/main\0report-status delete-refs agent=git/2.39.5\n`)}0000`;
const REPORT = `${line('unpack ok\n')}${line('ok refs/heads/agent/bench\n')}0000`;

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://localhost');
  const service = url.searchParams.get('service');
  if (request.method === 'GET') {
    const type = service === null ? 'text/plain' : `application/x-${service}-advertisement`;
    response.writeHead(200, { 'content-type': type, 'cache-control': 'no-cache' });
    response.end(service === null ? 'ok' : advertisement(service));
    return;
  }
  let bytes = 0;
  for await (const piece of request) bytes += (piece as Buffer).length;
  if (url.pathname.endsWith('/git-receive-pack')) {
    response.writeHead(200, { 'content-type': 'application/x-git-receive-pack-result' });
    response.end(bytes === 4 ? '' : REPORT);
    return;
  }
  const [, megabytes] = /\/(\d+)\.git\/git-upload-pack$/.exec(url.pathname) ?? [];
  response.writeHead(200, { 'content-type': 'application/x-git-upload-pack-result' });
  await pipeline(createReadStream(fileOf(Number(megabytes)), { highWaterMark: MIB }), response);
}

const server = createServer((request, response) => {
  answer(request, response).catch(() => response.destroy());
});
server.keepAliveTimeout = 300_000;
server.requestTimeout = 0;
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
process.on('disconnect', () => process.exit(0));
process.on('SIGTERM', () => process.exit(0));
for (const megabytes of [50, 500]) fileOf(megabytes);
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
