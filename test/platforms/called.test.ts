/** Calls of built-in platforms by an agent through the broker, against a small server on loopback for each platform. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { beforeEach, describe, expect, test } from 'vitest';
import type { BuiltinName } from '../../broker/platforms/builtin-names.ts';
import { presetsOf } from '../../broker/platforms/presets.ts';
import { expectStatus } from '../world/agent.ts';
import { CANARY, givenWorld, shared } from '../world/world.ts';
import { manifestOf } from './classified.ts';

type Call = { method: string; endpoint: string; scope: string; data?: unknown; headers?: Record<string, string> };
/** `credential`: the headers in which the platform receives it. `refused`: a call that the preset does not permit, and one that no scope covers. */
type Case = {
  name: BuiltinName;
  preset: string;
  credential: Record<string, string | RegExp>;
  /** The connection's secret, if it is not a single text. */
  secret?: string;
  answer: (target: string) => unknown;
  read: Call;
  write: Call & { sentence: string };
  refused: Call[];
};

const CASES: Case[] = [
  {
    name: 'openai',
    preset: 'inference',
    credential: { authorization: `Bearer ${CANARY}` },
    answer: (target) =>
      target === '/models'
        ? { object: 'list', data: [{ id: 'gpt-x' }] }
        : { choices: [{ message: { content: 'Hi' } }] },
    read: { method: 'GET', endpoint: '/models', scope: 'openai:models.read' },
    write: {
      method: 'POST',
      endpoint: '/chat/completions',
      scope: 'openai:inference.run',
      data: { model: 'gpt-x', messages: [{ role: 'user', content: 'Hello' }] },
      sentence: 'have gpt-x answer 1 messages',
    },
    refused: [
      { method: 'DELETE', endpoint: '/files/file-1', scope: 'openai:files.delete' },
      { method: 'POST', endpoint: '/realtime/client_secrets', scope: 'openai:inference.run', data: {} },
      { method: 'GET', endpoint: '/organization/admin_api_keys', scope: 'openai:models.read' },
    ],
  },
  {
    name: 'anthropic',
    preset: 'inference',
    credential: { 'x-api-key': CANARY, 'anthropic-version': '2023-06-01' },
    answer: (target) =>
      target === '/v1/models' ? { data: [{ id: 'claude-x' }] } : { content: [{ type: 'text', text: 'Hi' }] },
    read: { method: 'GET', endpoint: '/v1/models', scope: 'anthropic:models.read' },
    write: {
      method: 'POST',
      endpoint: '/v1/messages',
      scope: 'anthropic:inference.run',
      data: { model: 'claude-x', max_tokens: 9, messages: [{ role: 'user', content: 'Hello' }] },
      sentence: 'have claude-x answer 1 messages and 1 other field',
    },
    refused: [
      { method: 'DELETE', endpoint: '/v1/files/file_1', scope: 'anthropic:files.delete' },
      { method: 'GET', endpoint: '/v1/organizations/api_keys', scope: 'anthropic:models.read' },
      { method: 'GET', endpoint: '/v1/vaults/v_1/credentials', scope: 'anthropic:models.read' },
    ],
  },
  {
    name: 'npm',
    preset: 'publish',
    credential: { authorization: `Bearer ${CANARY}` },
    answer: (target) => (target.startsWith('/@acme') ? { name: '@acme/app', 'dist-tags': { latest: '1.0.0' } } : {}),
    read: { method: 'GET', endpoint: '/@acme%2Fapp', scope: 'npm:packages.read' },
    write: {
      method: 'PUT',
      endpoint: '/@acme%2Fapp',
      scope: 'npm:packages.publish',
      data: { name: '@acme/app', description: 'An app', versions: {}, _attachments: {} },
      sentence: 'publish @acme%2Fapp: “An app” and 3 other fields',
    },
    refused: [
      { method: 'DELETE', endpoint: '/@acme%2Fapp/-rev/1-abc', scope: 'npm:packages.unpublish' },
      { method: 'DELETE', endpoint: '/@acme%2Fapp/-rev/1-abc', scope: 'npm:packages.publish' },
      // Another spelling of a path that needs another scope.
      { method: 'PUT', endpoint: '/app%2F-rev%2F1-abc', scope: 'npm:packages.publish', data: {} },
      { method: 'GET', endpoint: '/-%2Fnpm%2Fv1%2Ftokens', scope: 'npm:packages.read' },
      { method: 'PUT', endpoint: '/-%2Fuser%2Forg.couchdb.user:ann', scope: 'npm:packages.publish', data: {} },
      { method: 'POST', endpoint: '/-/npm/v1/tokens', scope: 'npm:packages.publish', data: { password: 'x' } },
      { method: 'PUT', endpoint: '/-/user/org.couchdb.user:ann', scope: 'npm:packages.publish', data: {} },
    ],
  },
  {
    name: 'kubernetes',
    preset: 'operate',
    credential: { authorization: `Bearer ${CANARY}` },
    answer: (target) => (target.endsWith('/pods') ? { kind: 'PodList', items: [] } : { kind: 'Scale' }),
    read: { method: 'GET', endpoint: '/api/v1/namespaces/shop/pods', scope: 'kubernetes:pods.read' },
    write: {
      method: 'PUT',
      endpoint: '/apis/apps/v1/namespaces/shop/deployments/web/scale',
      scope: 'kubernetes:workloads.scale',
      data: { spec: { replicas: 3 } },
      sentence: 'scale the deployment web in shop to 3',
    },
    refused: [
      { method: 'GET', endpoint: '/api/v1/namespaces/shop/secrets/db', scope: 'kubernetes:secrets.read' },
      { method: 'GET', endpoint: '/api/v1/namespaces/shop/secrets/db', scope: 'kubernetes:pods.read' },
      ...['exec', 'attach', 'portforward', 'proxy', 'proxy/admin'].map((into) => ({
        method: 'GET',
        endpoint: `/api/v1/namespaces/shop/pods/web-1/${into}`,
        scope: 'kubernetes:pods.read',
      })),
      {
        method: 'POST',
        endpoint: '/api/v1/namespaces/shop/pods/web-1/exec',
        scope: 'kubernetes:pods.delete',
        data: {},
      },
      {
        method: 'POST',
        endpoint: '/api/v1/namespaces/shop/serviceaccounts/web/token',
        scope: 'kubernetes:workloads.write',
        data: {},
      },
      {
        method: 'PUT',
        endpoint: '/api/v1/namespaces/shop/pods/web-1/ephemeralcontainers',
        scope: 'kubernetes:workloads.write',
        data: {},
      },
      { method: 'DELETE', endpoint: '/api/v1/namespaces/shop', scope: 'kubernetes:namespaces.delete' },
    ],
  },
  {
    name: 's3',
    preset: 'write',
    secret: JSON.stringify({ access_key_id: 'AKIACANARY0123456789', secret_access_key: CANARY }),
    credential: {
      authorization:
        /^AWS4-HMAC-SHA256 Credential=AKIACANARY0123456789\/\d{8}\/us-east-1\/s3\/aws4_request, SignedHeaders=/,
      'x-amz-content-sha256': /^[0-9a-f]{64}$/,
    },
    answer: (target) => (target.endsWith('.json') ? { total: 3 } : {}),
    read: { method: 'GET', endpoint: '/reports/2026/11.json', scope: 's3:objects.read' },
    write: {
      method: 'PUT',
      endpoint: '/reports/2026/12.json',
      scope: 's3:objects.write',
      data: { total: 4 },
      sentence: 'write 2026/12.json in the bucket reports, or what the query names of it with 1 field',
    },
    refused: [
      { method: 'DELETE', endpoint: '/reports/2026/11.json', scope: 's3:objects.delete' },
      // By its query, this is another operation.
      { method: 'PUT', endpoint: '/reports/2026/11.json?acl', scope: 's3:objects.write', data: {} },
      { method: 'PUT', endpoint: '/reports/2026/11.json?ACL=', scope: 's3:objects.write', data: {} },
      { method: 'PUT', endpoint: '/reports/2026/11.json?legal-hold', scope: 's3:objects.write', data: {} },
      { method: 'GET', endpoint: '/reports?policy', scope: 's3:listing.read' },
      { method: 'GET', endpoint: '/reports/?policy', scope: 's3:listing.read' },
      { method: 'GET', endpoint: '/reports?list-type=2&encryption', scope: 's3:listing.read' },
      { method: 'PUT', endpoint: '/reports', scope: 's3:buckets.write', data: {} },
      // The API of the store itself.
      { method: 'GET', endpoint: '/admin/user?uid=root', scope: 's3:objects.read' },
      { method: 'PUT', endpoint: '/minio/admin/v3/set-policy?name=consoleAdmin', scope: 's3:objects.write', data: {} },
      { method: 'POST', endpoint: '/minio/admin/v3/service?action=stop', scope: 's3:uploads.write', data: {} },
    ],
  },
];

const world = givenWorld();
const organisation = shared(() => world.organisation());

describe.each(CASES)('$name', ({ name, preset, credential, secret = CANARY, answer, read, write, refused }) => {
  const agent = shared(async () => {
    const manifest = { ...manifestOf(name), base_url: world.upstream.url };
    await organisation.platform({ id: name, manifest, secret });
    const scopeList = presetsOf(manifest).find((one) => one.name === preset)?.scopes ?? [];
    // The default policy of every organisation: reads are allowed, everything else is held.
    const policy = await organisation.policy([
      { effect: 'allow', methods: ['GET'] },
      { effect: 'require_approval', methods: ['POST', 'PUT', 'PATCH', 'DELETE'] },
    ]);
    return await organisation.agent({ policy, grants: { [name]: { scopeList } } });
  });
  const act = ({ headers = {}, ...call }: Call) => agent.act({ platform: name, headers, ...call });

  beforeEach(async () => {
    await world.forgive();
    world.upstream.answer = (request: IncomingMessage, response: ServerResponse) => {
      const known = Object.entries(credential).every(([header, value]) => {
        const sent = String(request.headers[header]);
        return typeof value === 'string' ? sent === value : value.test(sent);
      });
      response.writeHead(known ? 200 : 401, { 'content-type': 'application/json' });
      response.end(JSON.stringify(known ? answer(request.url ?? '') : { error: 'no credential' }));
    };
  });

  test('a read under the preset is sent with the credential, and the agent gets the answer', async () => {
    const answered = await act(read);
    expect([answered.status, answered.body.data], answered.text).toEqual([200, answer(read.endpoint)]);
    expect(world.upstream.seen).toMatchObject([{ method: read.method, target: read.endpoint }]);
    expect(answered.text).not.toContain(CANARY);
  });

  test('a change is held with its sentence, and is sent once approved', async () => {
    const { sentence, ...call } = write;
    const held = await act(call);
    expect([held.status, held.body.sentence], held.text).toEqual([202, sentence]);
    expect(world.upstream.seen).toEqual([]);
    await expectStatus(200, organisation.approve(held.body.approval_id));
    expect(world.upstream.seen).toMatchObject([{ method: call.method, target: call.endpoint }]);
    expect(JSON.parse(world.upstream.seen[0]!.body)).toEqual(call.data);
  });

  test.each(refused)('$method $endpoint under $scope is refused', async (call) => {
    await expectStatus(403, act(call));
    expect(world.upstream.seen).toEqual([]);
  });
});

describe('a patch of Kubernetes', () => {
  const WEB = '/apis/apps/v1/namespaces/shop/deployments/web';
  const YAML = 'apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: web }\nspec: { replicas: 3 }\n';
  const LIST = [{ op: 'replace', path: '/spec/replicas', value: 3 }];
  const agent = shared(async () => {
    const manifest = { ...manifestOf('kubernetes'), base_url: world.upstream.url };
    await organisation.platform({ id: 'cluster', manifest });
    return await organisation.agent({
      rules: [{ effect: 'deny', endpoints: ['/apis/**'], when: 'request.body.spec.replicas > 5' }, { effect: 'allow' }],
      grants: { cluster: { scopeList: ['kubernetes:workloads.write', 'kubernetes:config.write'] } },
    });
  });
  const patch = (endpoint: string, type: string, data: unknown) =>
    agent.act({
      platform: 'cluster',
      method: 'PATCH',
      endpoint,
      scope: endpoint === WEB ? 'kubernetes:workloads.write' : 'kubernetes:config.write',
      headers: { 'Content-Type': type },
      data,
    });
  const MAP = '/api/v1/namespaces/shop/configmaps/web';

  test.each([
    ['application/merge-patch+json', { data: { a: null } }],
    ['application/strategic-merge-patch+json', { data: { a: 'b' } }],
    ['application/json-patch+json', [{ op: 'add', path: '/data/a', value: 'b' }]],
    ['application/apply-patch+yaml', 'apiVersion: v1\nkind: ConfigMap\ndata: { a: b }\n'],
  ])('of the type %s is sent unmodified', async (type, data) => {
    await expectStatus(200, patch(MAP, type, data));
    const { method, target, headers, body } = world.upstream.seen.at(-1)!;
    expect([method, target, headers['content-type']]).toEqual(['PATCH', MAP, type]);
    expect(body).toBe(typeof data === 'string' ? data : JSON.stringify(data));
  });

  test.each([
    ['application/merge-patch+json', { spec: { replicas: 3 } }, 200],
    ['application/strategic-merge-patch+json', { spec: { replicas: 6 } }, 403],
    // Neither body is read, so a rule on the body decides against the agent.
    ['application/json-patch+json', LIST, 403],
    ['application/apply-patch+yaml', YAML, 403],
  ])('of the type %s with %j is checked by its members: %i', async (type, data, status) => {
    const answered = await patch(WEB, type, data);
    expect(answered.status, answered.text).toBe(status);
    expect(world.upstream.seen).toHaveLength(status === 200 ? 1 : 0);
  });
});
