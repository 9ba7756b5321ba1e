/** Requests signed with an HMAC over a template. */
import { createHash, createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { rawClient } from '../proxy/raw-client.ts';
import { expectStatus } from '../world/agent.ts';
import { exchange } from '../world/raw.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import type { Received } from './aws-verifier.ts';
import { callOf, givenSigningWorld } from './signing-world.ts';

const SECRET = { key_id: 'robot-1', key: 'the key that nobody sees' };

/** Like a crypto exchange: everything is signed, and a key id is sent. */
const FULL = {
  type: 'hmac',
  template: '{timestamp}\n{nonce}\n{method}\n{host}\n{target}\n{body_sha256}\n{key_id}',
  timestamp: 'milliseconds',
  headers: {
    Authorization: 'HMAC {key_id}:{signature}',
    'X-Timestamp': '{timestamp}',
    'X-Nonce': '{nonce}',
  },
};

describe.each(ONE_STORE)(`HMAC signatures on %s${postgresNote}`, (store) => {
  const { host, world, organisation, apply, agent: newAgent } = givenSigningWorld(store);
  const now = () => world.running.broker.clock();
  const signed = async (auth: object, secret: object = SECRET) => {
    await expectStatus(200, apply(auth, secret));
    return await newAgent();
  };
  const sha256 = (body: Buffer) => createHash('sha256').update(body);
  const verify = ({ method, target, headers, body }: Received): string | undefined => {
    const { 'x-timestamp': timestamp, 'x-nonce': nonce, authorization } = headers;
    const text = [timestamp, nonce, method, headers.host, target, sha256(body).digest('hex'), 'robot-1'].join('\n');
    const expected = createHmac('sha256', SECRET.key).update(text).digest('hex');
    if (Math.abs(Number(timestamp) - now()) > 60_000) return 'time';
    if (host.taken.some((one) => one.headers['x-nonce'] === nonce)) return 'replayed';
    return authorization === `HMAC robot-1:${expected}` ? undefined : 'signature';
  };

  test('cover method, host, path, query, time and body, as the platform verifies', async () => {
    const agent = await signed(FULL);
    host.verify = verify;
    for (const call of [
      callOf('GET', '/orders'),
      callOf('GET', '/orders/%C3%BC?b=2&a=1+2&c'),
      callOf('POST', '/orders', { data: { text: 'ü', n: [1, null] } }),
      callOf('DELETE', '/orders/1'),
    ]) {
      const answer = await agent.act({
        ...call,
        headers: { 'x-timestamp': '1', 'X-Nonce': 'mine', 'x-other': 'kept' },
      });
      expect([answer.status, answer.body._meta?.upstream_status], answer.text).toEqual([200, 200]);
    }
    expect(host.taken.map(({ headers }) => headers['x-other'])).toEqual(['kept', 'kept', 'kept', 'kept']);
    world.clock.skewMs = 3600_000;
    expect((await agent.act(callOf('GET', '/orders'))).status).toBe(200);
  });

  test.each([
    ['sha1', 'base64', 'text', 'seconds', SECRET.key],
    ['sha384', 'base64url', 'hex', 'iso8601', Buffer.from(SECRET.key).toString('hex')],
    ['sha512', 'hex', 'base64', 'seconds', Buffer.from(SECRET.key).toString('base64')],
  ] as const)(
    'with %s, in %s, with a key in %s and the time in %s',
    async (algorithm, encoding, key_encoding, timestamp, key) => {
      const auth = {
        ...{ type: 'hmac', algorithm, encoding, key_encoding, timestamp },
        template: 'v0:{timestamp}:{path}:{query}:{body}:{body_sha256_base64}',
        headers: { 'X-Signature': 't={timestamp},v0={signature}' },
      };
      const agent = await signed(auth, { key });
      host.verify = ({ headers, target, body }) => {
        const [, time = '', signature] = /^t=(.+),v0=(.+)$/.exec(String(headers['x-signature'])) ?? [];
        const [path, query = ''] = target.split('?');
        const text = `v0:${time}:${path}:${query}:${body}:${sha256(body).digest('base64')}`;
        const at = timestamp === 'seconds' ? Number(time) * 1000 : Date.parse(time);
        if (Math.abs(at - now()) > 60_000) return 'time';
        return createHmac(algorithm, SECRET.key).update(text).digest(encoding) === signature ? undefined : 'signature';
      };
      for (const call of [callOf('GET', '/a?b=c'), callOf('PUT', '/a', { data: { x: 'é' } })]) {
        const answer = await agent.act(call);
        expect([answer.status, answer.body._meta?.upstream_status], answer.text).toEqual([200, 200]);
      }
    },
  );

  test('through /proxy a body of up to 8 MiB is signed; a longer one is refused, unless the signature does not cover the body', async () => {
    const MIB = 1024 * 1024;
    const put = async (auth: object, size: number) => {
      const agent = await signed(auth);
      const headers = { 'content-type': 'application/octet-stream' };
      return await rawClient(() => agent)('PUT', '/proxy/main/a', { body: 'x'.repeat(size), headers });
    };
    host.verify = verify;
    expect((await put(FULL, 2 * MIB)).status).toBe(200);
    const longer = await put(FULL, 8 * MIB + 1);
    expect([longer.status, longer.body.error]).toEqual([413, 'payload_too_large']);
    expect(host.taken.map(({ body }) => body.length)).toEqual([2 * MIB]);
    // The request is well-formed, so it does not count as a strike: 50 malformed ones would halt the agent.
    const uploader = await signed(FULL);
    const port = Number(new URL(uploader.baseUrl).port);
    const head = `PUT /proxy/main/a HTTP/1.1\r\nHost: localhost:${port}\r\nAuthorization: Bearer ${uploader.token()}\r\n`;
    for (let i = 0; i < 51; i++) {
      const refused = await exchange(port, `${head}Content-Length: ${8 * MIB + 1}\r\nConnection: close\r\n\r\n`);
      expect(refused.status, refused.body).toBe(413);
    }
    host.verify = () => undefined;
    const bare = { ...FULL, template: '{timestamp}{nonce}{method}{target}' };
    expect((await put(bare, 8 * MIB + 1)).status).toBe(200);
  });

  test('the key is redacted from answers', async () => {
    const agent = await signed(FULL);
    host.verify = () => undefined;
    const answer = await expectStatus(200, agent.act(callOf('POST', '/orders', { data: { mine: SECRET.key } })));
    expect(answer.text).not.toContain(SECRET.key);
    expect(answer.text).toContain('robot-1');
  });

  test('the key is redacted also after calls whose manifest took a secret of other parts', async () => {
    const agent = await signed(FULL);
    host.verify = () => undefined;
    const bare = { type: 'hmac', template: '{timestamp}{method}', headers: { 'X-S': '{signature}{timestamp}' } };
    const setAuth = async (auth: object) => {
      const { body } = await organisation.ask('GET', '/owner/platforms/store');
      const entry = { kind: 'rest', base_url: host.url, auth, scopes: body.manifest.scopes };
      await expectStatus(200, organisation.ask('POST', '/owner/platforms/store', { entry, version: body.version }));
    };
    await setAuth(bare);
    const echo = callOf('POST', '/orders', { data: { mine: SECRET.key } });
    expect((await agent.act(echo)).status).not.toBe(200);
    await setAuth(FULL);
    const answer = await expectStatus(200, agent.act(echo));
    expect(answer.text).not.toContain(SECRET.key);
  });

  test.each([
    [{ template: '{timestamp}{verb}' }, 'auth.template', 'names {verb}; there are {method}, {host}'],
    [{ template: '{signature}' }, 'auth.template', 'names {signature}, which is computed from it'],
    [{ headers: { 'X-Time': '{timestamp}' } }, 'auth.headers', 'has no header with {signature}'],
    [{ headers: { 'X-S': '{signature}{body}' } }, 'auth.headers', 'names {body}, which no header carries'],
    [{ headers: { 'Content-Length': '{signature}' } }, 'auth.headers', 'belongs to the connection'],
    [{ algorithm: 'md5' }, 'auth.algorithm', ''],
  ])('a manifest with %j is refused', async (change, where, said) => {
    const answer = await apply({ ...FULL, ...change }, SECRET);
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining(where)]);
    expect(answer.text).toContain(said);
  });

  test('a manifest that sets a header of the signature is refused', async () => {
    const answer = await apply(FULL, SECRET, { headers: { 'x-nonce': '1' } });
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining('carries a credential')]);
  });

  test('a secret that is not a valid key is refused', async () => {
    const hex = { ...FULL, key_encoding: 'hex' };
    for (const [auth, secret, said] of [
      [FULL, { key: SECRET.key }, 'has no key_id'],
      [FULL, { key_id: 'x', key: 'short' }, 'has the part key, which is of fewer than 8 characters'],
      [hex, { key_id: 'x', key: 'CANARY-CANARY' }, 'has the part key, which is not hexadecimal'],
    ] as const) {
      const answer = await apply(auth, secret);
      expect([answer.status, answer.text]).toEqual([400, expect.stringContaining(said)]);
      expect(answer.text).not.toContain('CANARY');
    }
  });
});
