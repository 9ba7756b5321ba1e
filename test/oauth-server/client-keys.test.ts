/** Clients that authenticate with a key of their own (`private_key_jwt`, RFC 7523), and attempts to impersonate them. */
import { createHmac, randomUUID } from 'node:crypto';
import { createPrivateKeyJwtAuth } from '@modelcontextprotocol/client';
import { CompactSign, exportJWK, exportSPKI, generateKeyPair, type JWK, type JWTHeaderParameters, SignJWT } from 'jose';
import { beforeAll, describe, expect, test } from 'vitest';
import { CLIENT_AUTH_ALGORITHMS } from '../../broker/oauth-server/metadata.ts';
import { makeAuthorizationServer } from '../../broker/oauth-server/server.ts';
import { expectStatus, send } from '../world/agent.ts';
import { serveHandler } from '../world/listen.ts';
import { browserOf, CALLBACK, ClientMemory, connectClient } from '../world/mcp/person.ts';
import { callMcp, OAuthClient } from '../world/oauth-client.ts';
import { startClientSite } from '../world/servers/client-documents.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { DEMO_RULES, givenWorld, shared } from '../world/world.ts';

const TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
const seconds = () => Math.floor(Date.now() / 1000);

type Key = Awaited<ReturnType<typeof generateKeyPair>>['privateKey'];
type Pair = { publicKey: Key; privateKey: Key; jwk: JWK };

async function newPair(kid: string, alg = 'ES256'): Promise<Pair> {
  const { publicKey, privateKey } = await generateKeyPair(alg, { extractable: true });
  return { publicKey, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } };
}

const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

describe.each(ONE_STORE)(`clients with a key on %s${postgresNote}`, (store) => {
  let baseUrl: string;
  const world = givenWorld(store);
  const site = shared(() => startClientSite(world));
  const organisation = shared(() => world.organisation({ rules: DEMO_RULES }));
  const pair = shared(() => newPair('key-1'));
  beforeAll(() => {
    baseUrl = world.running.baseUrl;
  });
  const browser = () => browserOf(world, organisation.owner);
  const works = async (token: string) => (await callMcp(baseUrl, token)).status;

  const claimsOf = ({ id }: OAuthClient, changed: Record<string, unknown> = {}) => ({
    iss: id,
    sub: id,
    aud: baseUrl,
    iat: seconds(),
    exp: seconds() + 60,
    jti: randomUUID(),
    ...changed,
  });
  const assertion = (
    client: OAuthClient,
    changed: Record<string, unknown> = {},
    { key = pair.privateKey, header = {} }: { key?: Key; header?: Partial<JWTHeaderParameters> } = {},
  ) => new SignJWT(claimsOf(client, changed)).setProtectedHeader({ alg: 'ES256', kid: 'key-1', ...header }).sign(key);
  const proof = async (...asked: Parameters<typeof assertion>) => proofOf(await assertion(...asked));
  const proofOf = (jwt: string) => ({ client_assertion: jwt, client_assertion_type: TYPE });

  let number = 0;
  const keysAt = (...pairs: Pair[]) => {
    const path = `/keys-${++number}`;
    site.documents.set(path, { keys: pairs.map(({ jwk }) => jwk) });
    return site.origin + path;
  };
  const METHOD = { token_endpoint_auth_method: 'private_key_jwt' };
  const registered = async (metadata: Record<string, unknown>) => {
    const client = new OAuthClient(world);
    const { body } = await expectStatus(201, client.register({ ...METHOD, ...metadata }));
    expect(body).toMatchObject(METHOD);
    return client;
  };
  const documented = async (metadata: Record<string, unknown>) => {
    const client = new OAuthClient(world);
    const path = `/client-${++number}`;
    client.id = site.origin + path;
    site.documents.set(path, {
      client_id: client.id,
      client_name: 'Documented',
      redirect_uris: [CALLBACK],
      ...METHOD,
      ...metadata,
    });
    return client;
  };
  const KINDS: [string, () => Promise<OAuthClient>][] = [
    ['registered, with its keys', () => registered({ jwks: { keys: [pair.jwk] } })],
    ['registered, with the address of its keys', () => registered({ jwks_uri: keysAt(pair) })],
    ['described by a document, with its keys', () => documented({ jwks: { keys: [pair.jwk] } })],
    ['described by a document, with the address of its keys', () => documented({ jwks_uri: keysAt(pair) })],
  ];

  describe.each(KINDS)('%s', (_what, make) => {
    test('can redeem, refresh and revoke with its key, and not without it', async () => {
      const client = await make();
      const code = await client.code(browser());
      const bare = await client.redeem(code);
      expect([bare.status, bare.body.error]).toEqual([401, 'invalid_client']);
      const redeemed = await expectStatus(200, client.redeem(code, await proof(client)));
      const { access_token, refresh_token } = redeemed.body;
      expect(await works(access_token)).toBe(200);

      expect((await client.refresh(refresh_token)).body.error).toBe('invalid_client');
      // The assertion alone identifies the client (RFC 7521 section 4.2); the endpoint's address is a valid audience, too.
      const tokenEndpoint = await proof(client, { aud: `${baseUrl}/oauth/token` });
      const refreshed = await client.refresh(refresh_token, { ...tokenEndpoint, client_id: undefined });
      expect(refreshed.status, refreshed.text).toBe(200);

      const bareRevoke = await client.post('/oauth/revoke', { client_id: client.id, token: access_token });
      expect([bareRevoke.status, bareRevoke.body.error]).toEqual([401, 'invalid_client']);
      expect(await works(access_token)).toBe(200);
      const revoked = await client.post('/oauth/revoke', {
        token: access_token,
        ...(await proof(client, { aud: [baseUrl], iat: undefined })),
      });
      expect(revoked.status, revoked.text).toBe(200);
      expect(await works(access_token)).toBe(401);
      expect((await client.refresh(refreshed.body.refresh_token, await proof(client))).body.error).toBe(
        'invalid_grant',
      );
    });

    test('cannot be impersonated', async () => {
      const client = await make();
      const other = await registered({ jwks: { keys: [(await newPair('key-1')).jwk] } });
      const stranger = await newPair('key-1');
      const rsa = await newPair('key-1', 'RS256');
      const code = await client.code(browser());
      const hmac = (secret: string) => {
        const text = `${part({ alg: 'HS256', kid: 'key-1' })}.${part(claimsOf(client))}`;
        return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
      };
      const unsigned = (alg: string) => `${part({ alg, kid: 'key-1' })}.${part(claimsOf(client))}.`;
      const good = await assertion(client);
      const [header, , signature] = good.split('.') as [string, string, string];
      const endless = JSON.stringify(claimsOf(client, { exp: 'END' })).replace('"END"', '1e999');
      const theirs = keysAt(stranger);
      const signedRaw = async (text: string) => {
        return await new CompactSign(Buffer.from(text)).setProtectedHeader({ alg: 'ES256' }).sign(pair.privateKey);
      };
      const hostile: [string, string][] = [
        ['another key', await assertion(client, {}, { key: stranger.privateKey })],
        [
          'another key that it brings along',
          await assertion(client, {}, { key: stranger.privateKey, header: { jwk: stranger.jwk as never } }),
        ],
        [
          'another key at an address that it names',
          await assertion(client, {}, { key: stranger.privateKey, header: { jku: theirs } }),
        ],
        ['another kind of key', await assertion(client, {}, { key: rsa.privateKey, header: { alg: 'RS256' } })],
        [
          'a kid that there is not, and another key',
          await assertion(client, {}, { key: stranger.privateKey, header: { kid: '../key-2' } }),
        ],
        ['the public key as a secret', hmac(await exportSPKI(pair.publicKey))],
        ['the public key as a secret, as JSON', hmac(JSON.stringify(pair.jwk))],
        ['no secret at all', hmac('')],
        ['no signature', unsigned('none')],
        ['no signature, in other words', unsigned('NONE')],
        ['the signature of other claims', `${header}.${part(claimsOf(client))}.${signature}`],
        ['another audience', await assertion(client, { aud: 'https://else.example' })],
        ['the audience of /mcp', await assertion(client, { aud: `${baseUrl}/mcp` })],
        ['another audience beside ours', await assertion(client, { aud: [baseUrl, 'https://else.example'] })],
        ['no audience', await assertion(client, { aud: undefined })],
        ['an end that has been', await assertion(client, { iat: seconds() - 120, exp: seconds() - 60 })],
        ['an end a day ahead', await assertion(client, { exp: seconds() + 86_400 })],
        ['a time ten minutes ahead (iat)', await assertion(client, { iat: seconds() + 600, exp: seconds() + 660 })],
        ['an end that never comes', await signedRaw(endless)],
        ['no end', await assertion(client, { exp: undefined })],
        ['a beginning that is to come', await assertion(client, { nbf: seconds() + 600 })],
        ['no name of its own (jti)', await assertion(client, { jti: undefined })],
        ['a list for a name', await assertion(client, { jti: ['x'] })],
        ['another issuer', await assertion(client, { iss: other.id })],
      ];
      for (const [what, jwt] of hostile) {
        const answer = await client.redeem(code, proofOf(jwt));
        expect([what, answer.status, answer.body.error], answer.text).toEqual([what, 401, 'invalid_client']);
      }
      const malformed: [string, Record<string, string | undefined>][] = [
        ['another subject', await proof(client, { sub: other.id })],
        ['the assertion of another client', await proof(other)],
        ['no JWT', proofOf('x')],
        [
          'another type',
          { ...proofOf(good), client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:saml2-bearer' },
        ],
        ['no type', { client_assertion: good }],
      ];
      for (const [what, form] of malformed) {
        const answer = await client.redeem(code, form);
        expect([what, answer.status, answer.body.error]).toEqual([what, 400, 'invalid_request']);
      }
      expect(site.asked).not.toContain(new URL(theirs).pathname);
      await expectStatus(200, client.redeem(code, proofOf(good)));
    });

    test('can use each assertion once: a reuse later, at another endpoint, or concurrently is refused', async () => {
      const client = await make();
      const redeemed = await client.redeem(await client.code(browser()), await proof(client));
      const { access_token } = redeemed.body;
      const jwt = await assertion(client);
      let { refresh_token } = (await client.refresh(redeemed.body.refresh_token, proofOf(jwt))).body;
      for (const path of ['/oauth/token', '/oauth/revoke']) {
        const again = await client.post(path, {
          grant_type: 'refresh_token',
          refresh_token,
          token: access_token,
          ...proofOf(jwt),
        });
        expect([path, again.status, again.body.error]).toEqual([path, 401, 'invalid_client']);
      }
      expect(await works(access_token)).toBe(200);
      for (let turn = 0; turn < 3; turn++) {
        const once = proofOf(await assertion(client));
        const answers = await Promise.all(Array.from({ length: 8 }, () => client.refresh(refresh_token, once)));
        const passed = answers.filter(({ status }) => status === 200);
        expect(passed).toHaveLength(1);
        refresh_token = passed[0]!.body.refresh_token;
      }
    });
  });

  test.each(CLIENT_AUTH_ALGORITHMS)('%s is supported, as the metadata says', async (alg) => {
    const own = await newPair('key-1', alg);
    const client = await registered({ jwks: { keys: [own.jwk] }, token_endpoint_auth_signing_alg: alg });
    const code = await client.code(browser());
    const signed = (key: Key, algorithm: string) => proof(client, {}, { key, header: { alg: algorithm } });
    // An algorithm other than the registered one is refused, whatever the key.
    if (alg !== 'ES256') expect((await client.redeem(code, await signed(pair.privateKey, 'ES256'))).status).toBe(401);
    expect((await client.redeem(code, await signed(own.privateKey, alg))).status).toBe(200);
  });

  test('a client can rotate its key at the address of its keys', async () => {
    const next = await newPair('key-2');
    const path = `/keys-${++number}`;
    site.documents.set(path, { keys: [pair.jwk] });
    const client = await documented({ jwks_uri: site.origin + path });
    const { refresh_token } = (await client.redeem(await client.code(browser()), await proof(client))).body;
    const withNext = () => proof(client, {}, { key: next.privateKey, header: { kid: 'key-2' } });
    expect((await client.refresh(refresh_token, await withNext())).status).toBe(401);
    site.documents.set(path, { keys: [next.jwk] });
    expect((await client.refresh(refresh_token, await withNext())).status).toBe(200);
  });

  test('a client whose site fails refreshes with the last published keys, but not with keys that the site removed', async () => {
    const [client, path] = [await documented({ jwks_uri: keysAt(pair) }), `/keys-${number - 1}`];
    const { refresh_token } = (await client.redeem(await client.code(browser()), await proof(client))).body;
    for (const what of [path, `/client-${number}`]) site.documents.set(what, 503);
    const refreshed = await expectStatus(200, client.refresh(refresh_token, await proof(client)));
    const other = await newPair('key-1');
    const forged = await proof(client, {}, { key: other.privateKey });
    expect((await client.refresh(refreshed.body.refresh_token, forged)).body.error).toBe('invalid_client');
    site.documents.set(path, { keys: [other.jwk] });
    expect((await client.refresh(refreshed.body.refresh_token, await proof(client))).body.error).toBe('invalid_client');
  });

  test('a client of the MCP SDK can connect with its key', async () => {
    const memory = new ClientMemory();
    const { d, ...jwk } = await exportJWK(pair.privateKey);
    memory.more = { ...METHOD, jwks: { keys: [{ ...jwk, kid: 'key-1' }] } } as never;
    memory.addClientAuthentication = (headers, params, url, metadata) => {
      const { client_id: id } = memory.information!;
      const privateKey = { ...jwk, d } as never;
      return createPrivateKeyJwtAuth({ issuer: id, subject: id, privateKey, alg: 'ES256' })(
        headers,
        params,
        url,
        metadata,
      );
    };
    const { client } = await connectClient(world, browser(), { memory });
    expect((await client.listTools()).tools.length).toBeGreaterThan(0);
    await client.close();
  });

  test.each([
    ['no key at all', {}],
    ['a private key', async () => ({ jwks: { keys: [await exportJWK(pair.privateKey)] } })],
    ['a secret', { jwks: { keys: [{ kty: 'oct', k: 'c2VjcmV0' }] } }],
    ['both its keys and their address', { jwks: { keys: [] }, jwks_uri: 'https://app.example/keys' }],
    ['a signature that nobody makes', { jwks: { keys: [] }, token_endpoint_auth_signing_alg: 'HS256' }],
  ])('a registration with %s is refused', async (_what, metadata) => {
    const given = typeof metadata === 'function' ? await metadata() : metadata;
    const { status, body } = await new OAuthClient(world).register({ ...METHOD, ...given });
    expect([status, body.error]).toEqual([400, 'invalid_client_metadata']);
  });

  test.each([
    'https://127.0.0.1:1/keys',
    'https://169.254.169.254/keys',
    'https://localhost/keys',
    'https://[::1]/keys',
  ])('keys at %s are not fetched', async (jwks_uri) => {
    const client = await registered({ jwks_uri });
    const answer = await client.redeem('x', await proof(client));
    expect([answer.status, answer.body.error]).toEqual([401, 'invalid_client']);
  });

  test('an assertion used on one replica is refused by the others', async () => {
    const other = await serveHandler(makeAuthorizationServer(world.running.broker).handle);
    const client = await registered({ jwks: { keys: [pair.jwk] } });
    const { refresh_token } = (await client.redeem(await client.code(browser()), await proof(client))).body;
    const there = new OAuthClient(world, other);
    Object.assign(there, { id: client.id });
    for (let turn = 0; turn < 3; turn++) {
      const once = proofOf(await assertion(client));
      const refreshes = [client, there, client, there].map((one) => one.refresh(refresh_token, once));
      expect((await Promise.all(refreshes)).filter(({ status }) => status === 200)).toHaveLength(1);
    }
    expect((await send(`${other}/oauth/token`, { method: 'POST' })).status).toBe(400);
  });
});
