/** A broker with a platform that uses TLS, under a name that only this broker resolves: other programs need the proxy of a run. */
import { execFileSync, spawnSync } from 'node:child_process';
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { test } from 'vitest';
import { makeOutbound } from '../../broker/egress/dispatcher.ts';
import { certificateFor } from '../egress/certificate.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { startUpstream, type Upstream } from '../world/servers/upstream.ts';
import { startWorld, type World } from '../world/world.ts';

export const HOST = 'api.demo.test';

/** `origin`: of the platform, `https://api.demo.test:<port>`. */
export type TlsWorld = { world: World; platform: Upstream; origin: string; port: number };

export async function startTlsWorld(): Promise<TlsWorld> {
  const world = await startWorld();
  const tls = certificateFor(HOST);
  const platform = await startUpstream(tls);
  const port = Number(new URL(platform.url).port);
  const outbound = makeOutbound({
    allowPrivate: [`${HOST}:${port}`],
    ca: tls.cert,
    lookup: ((_name: string, _options: unknown, found: (...one: unknown[]) => void) =>
      found(null, [{ address: '127.0.0.1', family: 4 }])) as never,
  });
  await world.running.broker.outbound.close();
  Object.assign(world.running.broker, { outbound });
  afterFile(platform.close);
  return { world, platform, origin: `https://${HOST}:${port}`, port };
}

/** A TLS host that belongs to no platform. On 127.0.0.2, because NO_PROXY of a run contains 127.0.0.1. */
export async function startUntouched(): Promise<Upstream & { certificate: string }> {
  const tls = certificateFor('127.0.0.2');
  const upstream = await startUpstream(tls, '127.0.0.2');
  afterFile(upstream.close);
  return Object.assign(upstream, { certificate: tls.cert });
}

export type Connected = { status: number; reason: string; text: string; socket: Socket };

/** Requests a tunnel from a proxy. */
export function connectBy(
  proxy: URL | { socketPath: string },
  target: string,
  headers: Record<string, string>,
): Promise<Connected> {
  const at = proxy instanceof URL ? { host: proxy.hostname, port: proxy.port } : proxy;
  return new Promise((resolve, reject) => {
    const asking = request({ ...at, method: 'CONNECT', path: target, headers });
    asking.on('error', reject);
    asking.on('connect', (response, socket, head) => {
      const { statusCode: status = 0, statusMessage: reason = '' } = response;
      if (status === 200) return resolve({ status, reason, text: '', socket });
      let text = head.toString();
      socket.on('data', (chunk) => {
        text += chunk;
      });
      socket.on('end', () => resolve({ status, reason, text, socket }));
      socket.resume();
    });
    asking.end();
  });
}

/** Sends bytes, and reads until the server ends the connection. `last`: the last byte is sent only after that. */
export function exchange(port: number, bytes: Buffer, last = false): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }, () => {
      socket.write(bytes.subarray(0, -1));
      if (last) socket.once('end', () => socket.end(bytes.subarray(-1)));
      else socket.end(bytes.subarray(-1));
    });
    const chunks: Buffer[] = [];
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('close', () => resolve(Buffer.concat(chunks)));
  });
}

/** The Python program itself, and not a wrapper that selects one by the caller's HOME. */
export const pythonPath = (): string | undefined => {
  if (spawnSync('python3', ['-c', 'import requests']).status !== 0) return undefined;
  return execFileSync('python3', ['-c', 'import sys; print(sys.executable)'], { encoding: 'utf8' }).trim();
};

/** Returns `test` if the tool is installed, `test.skip` otherwise. */
export function onlyWith(tool: string, ...words: string[]) {
  if (spawnSync(tool, words).status === 0) return test;
  if (process.env.CI) throw new Error(`${tool} is not installed`);
  console.warn(`${tool} is not installed, so it is not tested.`);
  return test.skip;
}
