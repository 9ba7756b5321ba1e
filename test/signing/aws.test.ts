/** Requests signed with AWS Signature Version 4, verified by a server that shares no code with the signer. */
import { describe, expect, test } from 'vitest';
import { Secret } from '../../broker/crypto/secret.ts';
import { signRequest } from '../../broker/egress/sign-request.ts';
import type { Payload } from '../../broker/egress/signable.ts';
import { manifestOf } from '../platforms/classified.ts';
import { rawClient } from '../proxy/raw-client.ts';
import { expectStatus } from '../world/agent.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { awsProblem } from './aws-verifier.ts';
import { callOf, givenSigningWorld } from './signing-world.ts';

const S3 = { type: 'aws_sigv4', region: 'eu-central-1', service: 's3' } as const;
const KEY = { access_key_id: 'AKIAIOSFODNN7EXAMPLE', secret_access_key: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY' };
const TEMPORARY = { ...KEY, session_token: 'FwoGZXIvYXdzEXAMPLE//session-token==' };

describe.each(ONE_STORE)(`AWS Signature Version 4 on %s${postgresNote}`, (store) => {
  const { host, world, organisation, apply, agent: newAgent } = givenSigningWorld(store);
  const now = () => world.running.broker.clock();
  const signed = async (auth: { type: 'aws_sigv4'; region: string; service: string } = S3, key: typeof KEY = KEY) => {
    await expectStatus(200, apply(auth, key));
    host.verify = (received) => awsProblem(received, key, { ...auth, now: now() });
    return await newAgent();
  };

  test.each<[string, string, object?]>([
    ['GET', '/bucket/photo.jpg'],
    ['GET', '/'],
    ['GET', "/bucket/a%20b/%C3%BC!$&'()*,;=:@~_.-x%2B%25.txt"],
    ['GET', '/bucket?list-type=2&prefix=a%2Fb&delimiter=%2F&max-keys=10'],
    ['GET', '/bucket?z=1&versions&a=&a=b&a=B&A=~*!()&b=%C3%BC%20%26%3D&c=x:y/z?q=1&d[]=$,;@'],
    ['PUT', '/bucket/key', { data: { text: 'ü', n: [1, null] } }],
    ['DELETE', '/bucket/key?versionId=null'],
  ])(
    '%s %s is signed correctly, for S3 and for services that escape the path twice',
    async (method, endpoint, more = {}) => {
      for (const auth of [S3, { ...S3, service: 'execute-api' }]) {
        const agent = await signed(auth);
        const answer = await agent.act(callOf(method, endpoint, more));
        expect([answer.status, answer.body._meta?.upstream_status], answer.text).toEqual([200, 200]);
      }
      expect(host.taken.map(({ target }) => target)).toEqual([endpoint, endpoint]);
    },
  );

  test('with temporary credentials the session token is sent and signed, and redacted from answers', async () => {
    const agent = await signed(S3, TEMPORARY);
    const answer = await agent.act(callOf('PUT', '/bucket/key', { data: { mine: TEMPORARY.secret_access_key } }));
    expect(answer.status, answer.text).toBe(200);
    expect(host.taken[0]?.headers['x-amz-security-token']).toBe(TEMPORARY.session_token);
    expect(answer.body.data.sent['x-amz-security-token']).toBe('[redacted]');
    // The redaction reveals nothing to those who know the key already, nor to those who guess it.
    expect(answer.text).not.toContain(TEMPORARY.secret_access_key);
  });

  test('signature headers and other AWS headers of an agent are dropped; headers that the manifest allows are signed', async () => {
    host.verify = () => undefined;
    const applied = await apply(S3, KEY, {
      client_headers: ['x-amz-meta-*'],
      headers: { 'x-amz-storage-class': 'STANDARD' },
      default_headers: { 'x-amz-acl': 'private' },
    });
    expect(applied.status, applied.text).toBe(200);
    host.verify = (received) => awsProblem(received, KEY, { ...S3, now: now() });
    const headers = {
      Authorization: 'AWS4-HMAC-SHA256 Credential=mine',
      'X-Amz-Date': '20200101T000000Z',
      'X-Amz-Content-Sha256': 'UNSIGNED-PAYLOAD',
      'X-Amz-Security-Token': 'mine',
      'x-amz-sdk-checksum-algorithm': 'CRC32',
      'x-amz-acl': 'bucket-owner-read',
      'x-amz-meta-author': 'ann',
      'if-none-match': '*',
    };
    const agent = await newAgent();
    const answer = await expectStatus(200, agent.act(callOf('PUT', '/bucket/key', { headers, data: {} })));
    expect(answer.body._meta.dropped_headers).toEqual([
      'authorization',
      'x-amz-content-sha256',
      'x-amz-date',
      'x-amz-sdk-checksum-algorithm',
      'x-amz-security-token',
    ]);
    expect(host.taken[0]?.headers).toMatchObject({
      'x-amz-storage-class': 'STANDARD',
      'x-amz-acl': 'bucket-owner-read',
      'x-amz-meta-author': 'ann',
      'if-none-match': '*',
    });
    for (const name of ['x-amz-sdk-checksum-algorithm', 'x-amz-security-token'])
      expect(host.taken[0]?.headers).not.toHaveProperty(name);
  });

  test('headers that libraries and proxies add to any request are dropped, unless the manifest names them', async () => {
    const added = {
      'X-Amzn-Trace-Id': 'Root=1',
      'x-request-id': 'r',
      'X-Forwarded-For': '192.0.2.1',
      'x-b3-traceid': '1',
    };
    const agent = await signed();
    const answer = await agent.act(callOf('PUT', '/bucket/key', { headers: added, data: {} }));
    expect([answer.status, answer.body._meta?.dropped_headers], answer.text).toEqual([
      200,
      ['x-amzn-trace-id', 'x-b3-traceid', 'x-forwarded-for', 'x-request-id'],
    ]);
    await apply(S3, KEY, { client_headers: ['x-request-id'] });
    const named = await (await newAgent()).act(callOf('PUT', '/bucket/key', { headers: added, data: {} }));
    expect(named.body._meta.dropped_headers).not.toContain('x-request-id');
    expect(host.taken.at(-1)?.headers['x-request-id']).toBe('r');
  });

  test('the default ACL `private` of an object is dropped, and sent when the manifest allows it', async () => {
    const put = async (rules: object, value: string) => {
      await apply(S3, KEY, rules);
      host.verify = (received) => awsProblem(received, KEY, { ...S3, now: now() });
      const agent = await newAgent();
      return await agent.act(callOf('PUT', '/bucket/key', { headers: { 'X-Amz-Acl': value }, data: {} }));
    };
    const left = await put({}, 'private');
    expect([left.status, left.body._meta?.dropped_headers], left.text).toEqual([200, ['x-amz-acl']]);
    expect(host.taken.at(-1)?.headers).not.toHaveProperty('x-amz-acl');
    for (const rules of [
      { client_headers: ['x-amz-acl'] },
      { default_headers: { 'x-amz-acl': 'bucket-owner-read' } },
    ]) {
      expect((await put(rules, 'private')).status).toBe(200);
      expect(host.taken.at(-1)?.headers['x-amz-acl']).toBe('private');
    }
    const sent = host.taken.length;
    for (const [rules, value] of [
      [{}, 'public-read'],
      [{}, 'private, public-read'],
      [{ refused_headers: ['x-amz-acl'] }, 'private'],
    ] as const)
      expect(await put(rules, value)).toMatchObject({ status: 400, body: { error: 'invalid_headers' } });
    await apply(S3, KEY);
    const acl = callOf('PUT', '/bucket/key?acl', { headers: { 'x-amz-acl': 'private' }, data: {} });
    expect(await (await newAgent()).act(acl)).toMatchObject({ status: 400, body: { error: 'invalid_headers' } });
    expect(host.taken).toHaveLength(sent);
  });

  test.each([
    'x-amz-copy-source',
    'X_Amz_Copy_Source',
    'x-amz-target',
    'X-Amz-Invocation-Type',
    'x-amz-acl',
    'x_amz_meta_a',
    'x-minio-force-delete',
    'X_Minio_Force_Delete',
    'x-goog-acl',
    'x-amzn-bedrock-guardrailidentifier',
  ])('a call with %s, which changes what it does, is refused, and nothing is sent', async (name) => {
    const agent = await signed();
    const answer = await agent.act(callOf('PUT', '/bucket/key', { headers: { [name]: '/other/secret' }, data: {} }));
    expect([answer.status, answer.body.error]).toEqual([400, 'invalid_headers']);
    expect(answer.text).toContain(`${name}\\" may change what the call does`);
    const unmodified = await rawClient(() => agent)('PUT', '/proxy/main/bucket/key', {
      headers: { [name]: '/other/secret' },
      body: '{}',
    });
    expect([unmodified.status, unmodified.text]).toEqual([400, expect.stringContaining(name.toLowerCase())]);
    expect(host.taken).toEqual([]);
  });

  test('a header in refused_headers is refused, even when a prefix in client_headers matches it', async () => {
    const { client_headers, refused_headers } = manifestOf('s3');
    await apply(S3, KEY, { client_headers, refused_headers });
    const agent = await newAgent();
    const raw = rawClient(() => agent);
    const names = ['x-amz-meta-snowball-auto-extract', 'X-Amz-Meta-Minio-Snowball-Prefix', 'x-amz-meta-rustfs-a'];
    for (const name of [...names, 'X_AMZ_META_SNOWBALL_AUTO_EXTRACT', 'cf-create-bucket-if-missing']) {
      const headers = { [name]: 'true' };
      const answer = await agent.act(callOf('PUT', '/bucket/a.tar', { headers, data: {} }));
      expect([answer.status, answer.body.error], name).toEqual([400, 'invalid_headers']);
      const unmodified = await raw('PUT', '/proxy/main/bucket/a.tar', { headers, body: '{}' });
      expect([unmodified.status, unmodified.text], name).toEqual([400, expect.stringContaining(name.toLowerCase())]);
    }
    expect(host.taken).toEqual([]);
    host.verify = (received) => awsProblem(received, KEY, { ...S3, now: now() });
    const headers = { 'x-amz-meta-author': 'ann' };
    expect((await agent.act(callOf('PUT', '/bucket/a.tar', { headers, data: {} }))).status).toBe(200);
    expect((await raw('PUT', '/proxy/main/bucket/a.tar', { headers, body: '{}' })).status).toBe(200);
    expect(host.taken.map((one) => one.headers['x-amz-meta-author'])).toEqual(['ann', 'ann']);
  });

  test.each([
    ['/bucket/a+b', 'the path holds a plus sign'],
    ['/bucket?prefix=a+b', 'the query holds a plus sign'],
    ['/bucket/key?X-Amz-Expires=60&x-amz-algorithm=AWS4-HMAC-SHA256', 'the query must not name X-Amz-Expires'],
    ['/bucket/key?AWSAccessKeyId=mine&Signature=x', 'the query must not name AWSAccessKeyId'],
    ['/bucket/key?x-amz-copy-source=%2Fother%2Fsecret', 'the query must not name x-amz-copy-source'],
    ['/bucket/key?a=b&X-Amz-Acl=public-read', 'the query must not name X-Amz-Acl'],
  ])('%s is refused, and nothing is sent', async (endpoint, said) => {
    const agent = await signed();
    const answer = await agent.act(callOf('GET', endpoint));
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining(said)]);
    expect(host.taken).toEqual([]);
    expect((await agent.act(callOf('GET', '/bucket/a%2Bb'))).status).toBe(200);
  });

  test('a held call is signed when it is sent', async () => {
    await signed();
    const held = await newAgent([{ effect: 'require_approval' }]);
    const { body } = await held.act(callOf('PUT', '/bucket/key', { data: { a: 1 } }));
    world.clock.skewMs = 20 * 60_000;
    await expectStatus(200, organisation.approve(body.approval_id));
    await expect.poll(() => host.taken.length, { timeout: 5_000 }).toBe(1);
  });

  test('a connection test reports what is wrong with the signature', async () => {
    await signed();
    const { id } = (await organisation.ask('GET', '/owner/connections')).body.connections[0];
    const tested = async () => (await organisation.ask('POST', `/owner/connections/${id}/test`, {})).body;
    expect(await tested()).toMatchObject({ ok: true, upstream_status: 200 });
    host.verify = (received) => awsProblem(received, KEY, { ...S3, region: 'us-east-1', now: now() });
    expect(await tested()).toMatchObject({
      ok: false,
      detail: expect.stringContaining('Check region and service in auth.'),
    });
    host.verify = (received) => awsProblem(received, { ...KEY, secret_access_key: 'another' }, { ...S3, now: now() });
    expect(await tested()).toMatchObject({
      ok: false,
      detail: expect.stringContaining('Replace the secret; if it is right'),
    });
    host.verify = (received) => awsProblem(received, KEY, { ...S3, now: now() + 3600_000 });
    expect(await tested()).toMatchObject({ ok: false, detail: expect.stringContaining("the broker's clock is wrong") });
    host.verify = (received) => awsProblem(received, KEY, { ...S3, now: now() }) ?? 'AccessDenied';
    expect(await tested()).toMatchObject({ ok: true, detail: expect.stringContaining('it accepts the signature') });
  });

  test('each part of a secret can come from its own source, and an export names the sources', async () => {
    const text = (secret: object) =>
      JSON.stringify({
        platforms: { store: { kind: 'rest', base_url: host.url, auth: S3, scopes: { 'store:read': ['GET /**'] } } },
        connections: { main: { platform: 'store', secret } },
      });
    const applying = (secret: object, values: object) =>
      organisation.ask('POST', '/owner/governance/apply', { text: text(secret), values });
    const secret = { access_key_id: { env: 'KEY_ID' }, secret_access_key: { file: 'keys/secret, of mine' } };
    const values = { 'env:KEY_ID': KEY.access_key_id, 'file:keys/secret, of mine': KEY.secret_access_key };
    const lacking = await applying({ access_key_id: { env: 'KEY_ID' } }, values);
    expect([lacking.status, lacking.text]).toEqual([400, expect.stringContaining('has no secret_access_key')]);
    await expectStatus(200, applying(secret, values));
    host.verify = (received) => awsProblem(received, KEY, { ...S3, now: now() });
    const agent = await organisation.agent({
      rules: [{ effect: 'allow' }],
      grants: { store: { scopeList: ['store:read'] } },
    });
    expect((await agent.act(callOf('GET', '/bucket/key'))).status).toBe(200);
    const exported = await organisation.ask('GET', '/owner/governance');
    expect(JSON.stringify(exported.body)).toContain('secret_access_key');
    expect(exported.text).toContain('keys/secret, of mine');
    expect(exported.text).not.toContain(KEY.secret_access_key);
    const again = await applying(secret, values);
    expect([again.status, again.body.changes ?? again.body.steps ?? []], again.text).toEqual([200, []]);
  });

  test('owners enter a secret by the names of its parts', async () => {
    await signed();
    const { id } = (await organisation.ask('GET', '/owner/connections')).body.connections[0];
    const give = (secret: unknown) => organisation.ask('POST', `/owner/connections/${id}/secret`, { secret });
    expect((await give({ ...KEY, secret_access_key: 'another-secret-key' })).status).toBe(200);
    const tested = async () => (await organisation.ask('POST', `/owner/connections/${id}/test`, {})).body.ok;
    expect(await tested()).toBe(false);
    expect((await give(KEY)).status).toBe(200);
    expect(await tested()).toBe(true);
    const refused = await give({ access_key_id: KEY.access_key_id, secret_acces_key: 'CANARY-CANARY' });
    expect([refused.status, refused.body.detail]).toEqual([
      400,
      expect.stringContaining('secret: has no secret_access_key'),
    ]);
    expect(refused.text).not.toContain('CANARY');
  });

  test('a secret that is not an access key is refused', async () => {
    for (const [secret, said] of [
      [
        'CANARY-CANARY',
        'has several parts: write a JSON object with access_key_id, secret_access_key, session_token (optional)',
      ],
      [
        { access_key_id: 'AKIA/CANARY', secret_access_key: 'x'.repeat(40) },
        'has the part access_key_id, which is not the id of an access key',
      ],
      [
        { access_key_id: 'AKIACANARY', secret_access_key: 'short' },
        'has the part secret_access_key, which is of fewer than 8 characters',
      ],
      [{ ...KEY, session_token: 'a\nCANARY' }, 'has the part session_token, which is not printable ASCII'],
    ] as const) {
      const answer = await apply(S3, secret);
      expect([answer.status, answer.text]).toEqual([400, expect.stringContaining(said)]);
      expect(answer.text).not.toContain('CANARY');
    }
  });
});

describe('a single request', () => {
  const sign = async (url: string, payload: Payload, auth: object = {}, headers = {}) =>
    await signRequest(
      { method: 'GET', url: new URL(url), headers, payload },
      { ...S3, ...auth },
      new Secret(JSON.stringify(KEY)),
      Date.UTC(2013, 4, 24),
    );
  const EMPTY = { kind: 'bytes', bytes: undefined } as const;

  // "Signature Calculations for the Authorization Header", examples.
  test.each([
    ['/test.txt', { range: 'bytes=0-9' }, 'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41'],
    ['/?lifecycle', {}, 'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543'],
    ['/?max-keys=2&prefix=J', {}, '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7'],
  ])('of the AWS documentation, %s, gets the documented signature', async (target, headers, signature) => {
    const signed = await sign(
      `https://examplebucket.s3.amazonaws.com${target}`,
      EMPTY,
      { region: 'us-east-1' },
      headers,
    );
    expect(signed).toMatchObject({
      ok: true,
      headers: { authorization: expect.stringContaining(`Signature=${signature}`) },
    });
  });

  test('with a streamed body is sent with an unsigned payload, over TLS and when the manifest allows it', async () => {
    const url = 'https://bucket.s3.example/key';
    const signed = await sign(url, { kind: 'unread' }, { unsigned_payload: true });
    if (!signed.ok) throw new Error(signed.detail);
    expect(signed.headers['x-amz-content-sha256']).toBe('UNSIGNED-PAYLOAD');
    const received = {
      method: 'GET',
      target: '/key',
      headers: { ...signed.headers, host: 'bucket.s3.example' },
      body: Buffer.from('any'),
    };
    const at = { ...S3, now: Date.UTC(2013, 4, 24) };
    expect(awsProblem(received, KEY, { ...at, unsigned: true })).toBeUndefined();
    expect(awsProblem(received, KEY, at)).toBe('XAmzContentSHA256Mismatch');
    for (const [to, auth] of [
      [url, {}],
      ['http://bucket.s3.example/key', { unsigned_payload: true }],
    ] as const)
      expect(await sign(to, { kind: 'unread' }, auth)).toMatchObject({ ok: false, error: 'body_refused' });
  });

  test('with a body over 8 MiB is not signed', async () => {
    const bytes = Buffer.alloc(8 * 1024 * 1024);
    expect(await sign('https://a.example/', { kind: 'bytes', bytes })).toMatchObject({ ok: true });
    const larger = { kind: 'bytes', bytes: Buffer.alloc(bytes.length + 1) } as const;
    expect(await sign('https://a.example/', larger)).toMatchObject({ ok: false, error: 'body_refused' });
  });
});
