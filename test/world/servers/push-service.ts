/**
 * A push service (RFC 8030) on loopback, over TLS, at a public name that only the broker of this world resolves; and browsers that subscribed to it,
 * with keys of the test. It validates like a real one, and decrypts what only the browser could.
 */
import { createDecipheriv, createECDH, type ECDH, hkdfSync, randomBytes } from 'node:crypto';
import { createServer } from 'node:https';
import { buffer } from 'node:stream/consumers';
import { importJWK, jwtVerify } from 'jose';
import { expect } from 'vitest';
import { certificateFor } from '../../egress/certificate.ts';
import { listenOnLoopback } from '../listen.ts';
import { resolveLocally } from '../resolve-locally.ts';
import type { World } from '../world.ts';

const HOST = 'push.example';

export type Pushed = {
  path: string;
  headers: Record<string, string>;
  /** Claims of the VAPID token, whose signature was verified with the key sent along. */
  claims: Record<string, unknown>;
  /** That key, in the form in which browsers get it. */
  key: string;
  body: Buffer;
};

export type PushService = {
  origin: string;
  pushed: Pushed[];
  /** Overrides status and headers of the answer; 201 by default. */
  answer: { status: number; headers?: Record<string, string> } | undefined;
  waitFor(count: number): Promise<Pushed[]>;
};

/** A browser's subscription in the form of `PushSubscription.toJSON()`, and a function that decrypts its messages. */
export type Subscribed = {
  json: { endpoint: string; expirationTime: null; keys: { p256dh: string; auth: string } };
  read(body: Buffer): Record<string, unknown>;
};

/** Starts the service, and makes this world's broker resolve it. */
export async function startPushService(world: World): Promise<PushService> {
  const { key, cert } = certificateFor(HOST);
  const problems: unknown[] = [];
  const service: PushService = {
    origin: '',
    pushed: [],
    answer: undefined,
    waitFor: async (count) => {
      await expect.poll(() => service.pushed.length, { timeout: 10_000, interval: 10 }).toBeGreaterThanOrEqual(count);
      expect(problems).toEqual([]);
      return service.pushed;
    },
  };
  const server = createServer({ key, cert }, async (request, response) => {
    const received = await buffer(request);
    const headers = request.headers as Record<string, string>;
    const { claims, key: vapidKey } = await verified(headers.authorization ?? '').catch((error) => {
      problems.push(error);
      return { claims: {}, key: '' };
    });
    service.pushed.push({ path: `${request.url}`, headers, claims, key: vapidKey, body: received });
    const { status, headers: more } = service.answer ?? { status: 201 };
    response.writeHead(status, { location: `${service.origin}/message/1`, ...more }).end();
  });
  const port = await listenOnLoopback(server);
  service.origin = `https://${HOST}:${port}`;
  await resolveLocally(world, HOST, port, cert);
  return service;
}

/** Parses and verifies `vapid t=…, k=…` (RFC 8292 section 3). */
async function verified(authorization: string): Promise<Pick<Pushed, 'claims' | 'key'>> {
  const [, token = '', key = ''] = /^vapid t=([^,]+), k=([A-Za-z0-9_-]+)$/.exec(authorization) ?? [];
  const point = Buffer.from(key, 'base64url');
  const half = (from: number) => point.subarray(from, from + 32).toString('base64url');
  const publicKey = await importJWK({ kty: 'EC', crv: 'P-256', x: half(1), y: half(33) }, 'ES256');
  return { claims: (await jwtVerify(token, publicKey, { algorithms: ['ES256'] })).payload, key };
}

/** Creates a browser's subscription at this service. */
export function subscribe(service: PushService): Subscribed {
  const ecdh = createECDH('prime256v1');
  const auth = randomBytes(16);
  return {
    json: {
      endpoint: `${service.origin}/push/${randomBytes(12).toString('base64url')}`,
      expirationTime: null,
      keys: { p256dh: ecdh.generateKeys('base64url'), auth: auth.toString('base64url') },
    },
    read: (body) => JSON.parse(decrypted(ecdh, auth, body).toString('utf8')),
  };
}

/** Decrypts by RFC 8291 section 3.4, and the single record of RFC 8188 section 2. */
function decrypted(ecdh: ECDH, auth: Buffer, body: Buffer): Buffer {
  const derive = (secret: Buffer, salt: Buffer, info: Buffer | string, length: number) =>
    Buffer.from(hkdfSync('sha256', secret, salt, info, length));
  const salt = body.subarray(0, 16);
  const server = body.subarray(21, 21 + body.readUInt8(20));
  const info = Buffer.concat([Buffer.from('WebPush: info\0'), ecdh.getPublicKey(), server]);
  const secret = derive(ecdh.computeSecret(server), auth, info, 32);
  const key = derive(secret, salt, 'Content-Encoding: aes128gcm\0', 16);
  const nonce = derive(secret, salt, 'Content-Encoding: nonce\0', 12);
  const record = body.subarray(21 + server.length);
  const open = createDecipheriv('aes-128-gcm', key, nonce);
  open.setAuthTag(record.subarray(-16));
  const padded = Buffer.concat([open.update(record.subarray(0, -16)), open.final()]);
  return padded.subarray(0, padded.lastIndexOf(2));
}
