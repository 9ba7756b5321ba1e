/** DID documents (specification, DID document; Discovery and health; DID resolution by agent status). */
import { createPublicKey, sign, verify } from 'node:crypto';
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { parse, Resolver } from 'did-resolver';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { getResolver } from 'web-did-resolver';
import { freePort } from '../../bench/free-port.ts';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { didOf as didOfHost } from '../../broker/broker.ts';
import { parsePublicKey } from '../../broker/crypto/public-key.ts';
import type { AgentStatus } from '../../broker/policy/facts.ts';
import type { AgentTable } from '../../broker/store/tables/agents.ts';
import { certificateFor } from '../egress/certificate.ts';
import { type Answer, expectStatus, jsonPost, makeKeyPair, send, type TestAgent } from '../world/agent.ts';
import { expectDeclared } from '../world/declared-routes.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { type Organisation, startWorld, type World } from '../world/world.ts';

const CONTEXT = ['https://www.w3.org/ns/did/v1', 'https://w3id.org/security/suites/jws-2020/v1'];
const UNKNOWN = 'agt_aaaaaaaaaaaaaaaaaaaa';

describe.each(ONE_STORE)(`DID documents on %s${postgresNote}`, (store) => {
  let world: World;
  let published: Organisation;
  let unpublished: Organisation;
  let host: string;
  beforeAll(async () => {
    world = await startWorld(store);
    host = `localhost%3A${new URL(world.running.baseUrl).port}`;
    published = await world.organisation();
    unpublished = await world.organisation();
    await publish(published, true);
  });
  beforeEach(() => {
    world.clock.skewMs = 0;
  });

  const publish = async (organisation: Organisation, publish_identity_documents: boolean) => {
    const answer = await organisation.ask('POST', '/owner/organisation', { publish_identity_documents });
    expect([answer.status, answer.body.publish_identity_documents]).toEqual([200, publish_identity_documents]);
  };
  const get = async (path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> => {
    const answer = await send(world.running.baseUrl + path, { method, headers });
    if (method === 'GET') expectDeclared('GET', path, answer);
    return answer;
  };
  const documentOf = (agentId: string, headers?: Record<string, string>) => get(`/agents/${agentId}/did.json`, headers);
  const didOf = (agentId: string) => `did:web:${host}:agents:${agentId}`;
  const servicesOf = (did: string) => [
    {
      id: `${did}#authzen`,
      type: 'AuthZENPolicyDecisionPoint',
      serviceEndpoint: `${world.running.baseUrl}/v1/authzen/access`,
    },
    {
      id: `${did}#trqp`,
      type: 'TRQPAuthorization',
      serviceEndpoint: `${world.running.baseUrl}/v1/trqp/authorization`,
    },
    {
      id: `${did}#trqp-recognition`,
      type: 'TRQPRecognition',
      serviceEndpoint: `${world.running.baseUrl}/v1/trqp/recognition`,
    },
  ];
  const agentIn = (organisation: Organisation, agent: Partial<AgentTable> = {}) =>
    organisation.agent({ agent, policy: null, grants: {} });
  const keyless = { public_key_pem: null, key_fingerprint: null };
  const move = (agent: TestAgent, verb: string) => published.ask('POST', `/owner/agents/${agent.agentId}/${verb}`, {});

  const expectPublic = (answer: Answer) => {
    expect(answer.headers.get('content-type')).toBe('application/did+json');
    expect(answer.headers.get('cache-control')).toBe('public, max-age=60');
    expect(answer.headers.get('access-control-allow-origin')).toBe('*');
    expect(answer.headers.get('access-control-allow-credentials')).toBeNull();
  };

  describe('by agent status', () => {
    test('DI-01 active with its own key: the whole document, with which the agent’s token can be verified', async () => {
      const agent = await agentIn(published);
      const answer = await expectStatus(200, documentOf(agent.agentId));
      expectPublic(answer);
      const did = didOf(agent.agentId);
      const parsed = parsePublicKey(agent.keys.publicPem);
      if (!parsed.ok) throw new Error(parsed.error);
      const method = `${did}#key-${parsed.fingerprint}`;
      const { n, e } = createPublicKey(agent.keys.publicPem).export({ format: 'jwk' });
      expect(answer.body).toEqual({
        '@context': CONTEXT,
        id: did,
        controller: did,
        verificationMethod: [
          {
            id: method,
            type: 'JsonWebKey2020',
            controller: did,
            publicKeyJwk: { kty: 'RSA', n, e, alg: 'RS256', use: 'sig', kid: agent.agentId },
          },
        ],
        authentication: [method],
        assertionMethod: [method],
        service: servicesOf(did),
      });
      expect((await agent.get('/v1/agents/me')).body.did).toBe(did);
      const key = createPublicKey({ key: answer.body.verificationMethod[0].publicKeyJwk, format: 'jwk' });
      const text = Buffer.from('said by the agent');
      expect(verify('sha256', text, key, sign('sha256', text, agent.keys.privateKey))).toBe(true);
    });

    test('the document contains neither owner nor organisation nor name', async () => {
      const agent = await published.agent({ name: 'secret-project-triage', policy: null, grants: {} });
      const { name } = (await published.ask('GET', '/owner/organisation')).body;
      for (const { text } of [await documentOf(agent.agentId), await get('/.well-known/did.json')])
        for (const word of ['secret-project', name, published.id, published.owner.id, published.owner.email, agent.id])
          expect(text).not.toContain(word);
    });

    test('DI-01 suspended: the key is listed without any purpose; resumed: complete again', async () => {
      const agent = await agentIn(published);
      const { body: before } = await documentOf(agent.agentId);
      await move(agent, 'suspend');
      const suspended = await expectStatus(200, documentOf(agent.agentId));
      expectPublic(suspended);
      expect(suspended.body).toEqual({ ...before, authentication: [], assertionMethod: [] });
      await move(agent, 'resume');
      expect((await documentOf(agent.agentId)).body).toEqual(before);
    });

    test('while all agents of the organisation are stopped each is as one that is suspended', async () => {
      const agent = await agentIn(published);
      const revoked = await agentIn(published);
      await move(revoked, 'revoke');
      const { body: before } = await documentOf(agent.agentId);
      expect((await published.ask('POST', '/owner/agents/suspend-all', {})).status).toBe(200);
      const stopped = await documentOf(agent.agentId);
      expect((await agent.get('/v1/agents/me')).body.agent_status).toBe('suspended');
      expect([stopped.status, stopped.body]).toEqual([200, { ...before, authentication: [], assertionMethod: [] }]);
      expect((await documentOf(revoked.agentId)).status).toBe(410);
      expect((await published.ask('POST', '/owner/agents/resume-all', {})).status).toBe(200);
      expect((await documentOf(agent.agentId)).body).toEqual(before);
    });

    test('DI-01 revoked and deleted: 410', async () => {
      const revoked = await agentIn(published);
      expect((await documentOf(revoked.agentId)).status).toBe(200);
      await move(revoked, 'revoke');
      const deleted = await agentIn(published, { status: 'deleted' });
      const overAlone = await agentIn(published, { expires_at: Date.now() - 1000 });
      const revokedKeyless = await agentIn(published, { ...keyless, agent_type: 'child', status: 'revoked' });
      for (const { agentId } of [revoked, deleted, overAlone, revokedKeyless]) {
        const answer = await documentOf(agentId);
        expect([answer.status, answer.body]).toEqual([410, { deactivated: true, id: didOf(agentId) }]);
        expectPublic(answer);
      }
    });

    test('an agent’s document becomes a 410 when its lifetime ends, and not before', async () => {
      const agent = await agentIn(published, { expires_at: Date.now() + 600_000 });
      expect((await documentOf(agent.agentId)).status).toBe(200);
      world.clock.skewMs = 600_001;
      expect((await documentOf(agent.agentId)).status).toBe(410);
    });

    test('an agent that the broker authenticates: no key; the controller is the root DID, and for a child its parent, too', async () => {
      const parent = await agentIn(published);
      const client = await agentIn(published, { ...keyless, agent_type: 'mcp_client' });
      const child = await agentIn(published, { ...keyless, agent_type: 'child', parent_id: parent.id });
      const root = `did:web:${host}`;
      const without = (agentId: string, controller: unknown) => ({
        '@context': CONTEXT,
        id: didOf(agentId),
        controller,
        authentication: [],
        assertionMethod: [],
        service: servicesOf(didOf(agentId)),
      });
      expect((await documentOf(client.agentId)).body).toEqual(without(client.agentId, root));
      expect((await documentOf(child.agentId)).body).toEqual(without(child.agentId, [root, didOf(parent.agentId)]));
      await move(child, 'suspend');
      expect((await documentOf(child.agentId)).body).not.toHaveProperty('verificationMethod');
    });

    test('DI-01 unknown and unpublished agents all get the same 404', async () => {
      const hidden: [string, string][] = [['unknown', UNKNOWN]];
      for (const status of ['pending', 'pending_bind'] as const)
        for (const agent_type of ['key', 'mcp_client', null] as const)
          hidden.push([
            `${status} ${agent_type}`,
            (await agentIn(published, { ...keyless, status, agent_type })).agentId,
          ]);
      hidden.push(['pending, with a key', (await agentIn(published, { status: 'pending' })).agentId]);
      for (const status of ['active', 'suspended', 'revoked', 'deleted', 'pending_bind'] satisfies AgentStatus[]) {
        const key = status === 'pending_bind' ? keyless : {};
        hidden.push([`${status}, unpublished`, (await agentIn(unpublished, { ...key, status })).agentId]);
      }
      hidden.push(['no key, unpublished', (await agentIn(unpublished, { ...keyless, agent_type: 'child' })).agentId]);
      const seen = new Set<string>();
      for (const [what, agentId] of hidden) {
        const answer = await documentOf(agentId);
        expectEnvelope(answer, 404, 'not_found');
        expect(answer.headers.get('access-control-allow-origin'), what).toBe('*');
        // DI-02: a 404 is not cached, so that publishing takes effect immediately.
        expect(answer.headers.get('cache-control'), what).toBe('no-store');
        seen.add(sameOf(answer));
      }
      expect([...seen]).toHaveLength(1);
    });

    test('the reasons for a 404 cannot be distinguished by response time', async () => {
      const ids = [
        UNKNOWN,
        (await agentIn(unpublished)).agentId,
        (await agentIn(unpublished, { status: 'revoked' })).agentId,
        (await agentIn(published, { ...keyless, status: 'pending_bind' })).agentId,
      ];
      const took = ids.map((): number[] => []);
      for (let round = 0; round < 60; round++)
        for (const [at, id] of ids.entries()) {
          const from = performance.now();
          await send(`${world.running.baseUrl}/agents/${id}/did.json`, {});
          took[at]!.push(performance.now() - from);
        }
      // The fast ones of each: load of other programs shows in the slow ones.
      const quick = took.map((times) => times.toSorted((a, b) => a - b)[10]!);
      expect(Math.max(...quick), `in ms: ${quick}`).toBeLessThan(2 * Math.min(...quick) + 1);
    });

    test.each(['AGT_AAAAAAAAAAAAAAAAAAAA', 'agt_..%2Fx', 'agt_short', `${UNKNOWN}aa`, 'did', '%00', 'agt_%C3%A9'])(
      'DI-01 %s is not an agent id: 404',
      async (id) => {
        expectEnvelope(await documentOf(id), 404, 'not_found');
      },
    );

    test('agent ids are case-sensitive', async () => {
      const agent = await agentIn(published);
      expect((await documentOf(agent.agentId.toUpperCase())).status).toBe(404);
    });
  });

  test('the fragment changes with the key, and the old key is removed', async () => {
    const agent = await agentIn(published);
    const { body: before } = await documentOf(agent.agentId);
    const token = (await published.ask('POST', `/owner/agents/${agent.agentId}/bootstrap-token`, { rotate: true })).body
      .bootstrap_token;
    const keys = makeKeyPair();
    const bound = await send(
      `${world.running.baseUrl}/v1/agents/bind`,
      jsonPost({ bootstrap_token: token, public_key_pem: keys.publicPem }),
    );
    expect(bound.status, bound.text).toBe(200);
    const { body: after } = await documentOf(agent.agentId);
    expect(after.verificationMethod).toHaveLength(1);
    expect(after.verificationMethod[0].id).not.toBe(before.verificationMethod[0].id);
    expect(after.verificationMethod[0].publicKeyJwk).toMatchObject(
      createPublicKey(keys.publicPem).export({ format: 'jwk' }),
    );
    expect(after.authentication).toEqual([after.verificationMethod[0].id]);
  });

  test('publishing follows the setting, and changes are recorded', async () => {
    const organisation = await world.organisation();
    const agent = await agentIn(organisation);
    expect((await documentOf(agent.agentId)).status).toBe(404);
    await publish(organisation, true);
    expect((await documentOf(agent.agentId)).status).toBe(200);
    await publish(organisation, false);
    expect((await documentOf(agent.agentId)).status).toBe(404);
    const { rows } = (await organisation.ask('GET', '/owner/audit')).body;
    expect(rows.filter(({ reason }: { reason: string }) => reason === 'organisation_changed')).toHaveLength(2);
  });

  test('only an admin can switch publishing', async () => {
    const approver = await published.addOwner('approver');
    const answer = await published.ask('POST', '/owner/organisation', { publish_identity_documents: false }, approver);
    expectEnvelope(answer, 403, 'forbidden');
  });

  test('a governance file can switch publishing on, without a warning that it has no effect', async () => {
    const organisation = await world.organisation();
    const agent = await agentIn(organisation, { origin: 'owner' });
    const applied = await organisation.ask('POST', '/owner/governance/apply', {
      text: 'publish_identity_documents: true\n',
    });
    expect(applied.status, applied.text).toBe(200);
    expect(applied.text).not.toContain('no effect');
    expect((await documentOf(agent.agentId)).status).toBe(200);
  });

  test('DI-02 the ETag identifies the current document', async () => {
    const agent = await agentIn(published);
    const first = await documentOf(agent.agentId);
    const etag = first.headers.get('etag')!;
    expect(etag).toMatch(/^"[\w-]{43}"$/);
    const same = await documentOf(agent.agentId, { 'if-none-match': etag });
    expect([same.status, same.text, same.headers.get('etag')]).toEqual([304, '', etag]);
    expect(same.headers.get('cache-control')).toBe('public, max-age=60');
    await move(agent, 'suspend');
    const changed = await expectStatus(200, documentOf(agent.agentId, { 'if-none-match': etag }));
    expect(changed.headers.get('etag')).not.toBe(etag);
  });

  describe('the root document', () => {
    test('has the root key and no other key', async () => {
      const answer = await expectStatus(200, get('/.well-known/did.json'));
      expectPublic(answer);
      const did = `did:web:${host}`;
      const { broker } = world.running;
      const { kid, publicJwk } = broker.keys.signer('root', broker.clock());
      const method = `${did}#key-${kid}`;
      expect(answer.body).toEqual({
        '@context': CONTEXT,
        id: did,
        controller: did,
        verificationMethod: [
          {
            id: method,
            type: 'JsonWebKey2020',
            controller: did,
            publicKeyJwk: { ...publicJwk, alg: 'ES256', use: 'sig', kid },
          },
        ],
        authentication: [method],
        assertionMethod: [method],
        service: [
          ...servicesOf(did),
          {
            id: `${did}#receipt-keys`,
            type: 'JsonWebKeySet',
            serviceEndpoint: `${world.running.baseUrl}/.well-known/svc-receipt-keys.json`,
          },
        ],
      });
      expect(broker.did).toBe(did);
      const etag = answer.headers.get('etag')!;
      expect((await get('/.well-known/did.json', { 'if-none-match': etag })).status).toBe(304);
    });

    test('lists a new key before it signs, and is a 404 without keys', async () => {
      const { broker } = world.running;
      const { kid } = await broker.keys.rotate('root', broker.clock());
      const { body } = await get('/.well-known/did.json');
      expect(body.verificationMethod).toHaveLength(2);
      expect(body.authentication).toContain(`did:web:${host}#key-${kid}`);
      await broker.store.db.deleteFrom('signing_keys').where('use', '=', 'root').execute();
      await broker.keys.refresh();
      const answer = await get('/.well-known/did.json');
      expectEnvelope(answer, 404, 'not_found');
      expect(answer.headers.get('access-control-allow-origin')).toBe('*');
      await world.restart();
      expect((await get('/.well-known/did.json')).status).toBe(200);
    });
  });

  test('AZ-12 pages of any site may read public documents, and nothing else', async () => {
    const preflight = (path: string) =>
      get(
        path,
        {
          origin: 'https://elsewhere.example',
          'access-control-request-method': 'GET',
          'access-control-request-headers': 'if-none-match',
        },
        'OPTIONS',
      );
    for (const path of [
      `/agents/${UNKNOWN}/did.json`,
      '/.well-known/did.json',
      '/.well-known/svc-receipt-keys.json',
      '/v1/oauth/jwks.json',
    ]) {
      const { status, headers } = await preflight(path);
      expect([status, headers.get('access-control-allow-origin')], path).toEqual([204, '*']);
      expect(headers.get('access-control-allow-methods')).toBe('GET, HEAD');
      expect(headers.get('access-control-allow-credentials')).toBeNull();
    }
    for (const path of ['/v1/approvals/x', '/owner/organisation', '/owner/agents', '/v1/actions', '/v1/agents/me']) {
      const { status, headers } = await preflight(path);
      expect([status, headers.get('access-control-allow-origin')], path).toEqual([405, null]);
    }
    const mine = await get('/owner/organisation', { origin: 'https://elsewhere.example' });
    expect(mine.headers.get('access-control-allow-origin')).toBeNull();
  });
});

/** The parts of an answer that could distinguish it from another: without correlation id, time and remaining rate limit. */
function sameOf({ status, headers, text, body }: Answer): string {
  const shown = [...headers].filter(([name]) => !['x-correlation-id', 'date', 'ratelimit'].includes(name));
  return JSON.stringify([status, shown, text.replaceAll(body.correlation_id, '')]);
}

test('30 requests a minute per address, then 429 with Retry-After', async () => {
  const { running } = await startWorld('sqlite', { AGENT_BROKER_LIMIT_FACTOR: '1' });
  for (const path of [`/agents/${UNKNOWN}/did.json`, '/.well-known/did.json']) {
    const ask = () => send(running.baseUrl + path, {});
    for (let n = 0; n < 30; n++) expect([200, 404]).toContain((await ask()).status);
    const refused = await ask();
    expectEnvelope(refused, 429, 'rate_limited');
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(refused.headers.get('access-control-allow-origin')).toBe('*');
  }
});

describe('a third-party resolver, over TLS', () => {
  let world: World;
  let organisation: Organisation;
  beforeAll(async () => {
    const port = await freePort();
    const { key, cert } = certificateFor('localhost');
    const trusted = https.globalAgent.options.ca;
    https.globalAgent.options.ca = cert;
    // A reverse proxy, as in front of a broker that others resolve.
    const proxy = https.createServer({ key, cert }, (request, response) => {
      const { method, headers } = request;
      const to = new URL(request.url!, `http://127.0.0.1:${port}`);
      request.pipe(
        httpRequest(to, { method: method!, headers }, (answer) => {
          response.writeHead(answer.statusCode!, answer.headers);
          answer.pipe(response);
        }),
      );
    });
    await new Promise<void>((ready) => proxy.listen(0, 'localhost', ready));
    afterFile(async () => {
      https.globalAgent.options.ca = trusted;
      https.globalAgent.destroy();
      proxy.closeAllConnections();
      await new Promise((done) => proxy.close(done));
    });
    world = await startWorld('sqlite', {
      PORT: String(port),
      BASE_URL: `https://localhost:${(proxy.address() as AddressInfo).port}`,
    });
    organisation = await world.organisation();
    await publish();
  });
  const publish = async () => {
    await world.db
      .updateTable('organisations')
      .set({ publish_identity_documents: 1 })
      .where('id', '=', organisation.id)
      .execute();
  };
  const resolver = new Resolver(getResolver());
  /** Through the proxy, as external clients come. */
  const post = async (path: string, body: unknown, headers: Record<string, string> = {}) => {
    const request = https.request(world.running.baseUrl + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
    });
    request.end(JSON.stringify(body));
    const [answer] = (await once(request, 'response')) as [IncomingMessage];
    const said = await json(answer);
    expect(answer.statusCode, JSON.stringify(said)).toBe(200);
    return said as Record<string, string>;
  };

  test('resolves the broker and its agents, but no unknown or deactivated agents', async () => {
    const { did } = world.running.broker;
    const root = await resolver.resolve(did);
    expect(root.didResolutionMetadata.error).toBeUndefined();
    expect(root.didDocument).toMatchObject({ id: did });
    const agent = await organisation.agent({ policy: null, grants: {} });
    const found = await resolver.resolve(`${did}:agents:${agent.agentId}`);
    expect(found.didResolutionMetadata.error).toBeUndefined();
    expect(found.didDocument!.verificationMethod).toHaveLength(1);
    expect(found.didDocument!.service).toHaveLength(3);
    const gone = await organisation.agent({ agent: { status: 'revoked' }, policy: null, grants: {} });
    for (const id of [UNKNOWN, gone.agentId])
      expect((await resolver.resolve(`${did}:agents:${id}`)).didResolutionMetadata.error).toBe('notFound');
  });

  test('signatures of a replaced key cannot be verified by its DID any more; those of the new key can', async () => {
    const agent = await organisation.agent({ policy: null, grants: {} });
    const did = `${world.running.broker.did}:agents:${agent.agentId}`;
    const text = Buffer.from('said by the agent');
    const methodOf = async () => {
      const { didDocument } = await resolver.resolve(did);
      const [method, ...more] = didDocument!.verificationMethod!;
      expect(more).toEqual([]);
      expect(didDocument!.assertionMethod).toEqual([method!.id]);
      return method!;
    };
    const verifies = async (signature: Buffer) =>
      verify(
        'sha256',
        text,
        createPublicKey({ key: (await methodOf()).publicKeyJwk as never, format: 'jwk' }),
        signature,
      );
    const old = { method: await methodOf(), signature: sign('sha256', text, agent.keys.privateKey) };
    expect(await verifies(old.signature)).toBe(true);
    const session = `Bearer ${mintOwnerSession(world.running.broker, organisation.owner).token}`;
    const asked = await post(
      `/owner/agents/${agent.agentId}/bootstrap-token`,
      { rotate: true },
      { authorization: session },
    );
    const keys = makeKeyPair();
    const bound = await post('/v1/agents/bind', {
      bootstrap_token: asked.bootstrap_token,
      public_key_pem: keys.publicPem,
    });
    expect(bound.agent_id).toBe(agent.agentId);
    const parsed = parsePublicKey(keys.publicPem);
    if (!parsed.ok) throw new Error(parsed.error);
    const { id } = await methodOf();
    expect(id).toBe(`${did}#key-${parsed.fingerprint}`);
    expect(id).not.toBe(old.method.id);
    expect(await verifies(old.signature)).toBe(false);
    expect(await verifies(sign('sha256', text, keys.privateKey))).toBe(true);
  });
});

test.each([
  ['https://broker.example', 'did:web:broker.example'],
  ['http://localhost:8787', 'did:web:localhost%3A8787'],
  ['http://[::1]:8787', 'did:web:%5B%3A%3A1%5D%3A8787'],
])('the DID of %s matches the DID syntax (DID Core, section 3.1)', (baseUrl, did) => {
  expect(didOfHost(baseUrl)).toBe(did);
  expect(parse(did)?.did).toBe(did);
});
