/** The scopes under which calls of model APIs, npm registries, clusters and object stores fall, and the calls that fall under none. */
import { describe, expect, test } from 'vitest';
import { parsePlatformEntry } from '../../broker/platforms/builtin.ts';
import type { BuiltinName } from '../../broker/platforms/builtin-names.ts';
import { compileManifest } from '../../broker/platforms/manifest.ts';
import type { Method } from '../../broker/policy/facts.ts';
import { isFollowed } from '../../broker/policy/follow-redirects.ts';
import { classify } from '../../broker/policy/operation.ts';
import { entryOf, rulesOf } from './classified.ts';

const POD = '/api/v1/namespaces/shop/pods/web-1';

const AREAS: [BuiltinName, string, string][] = [
  ['openai', 'GET /models/gpt-x', 'models.read'],
  ['openai', 'DELETE /models/ft:gpt-x', 'models.delete'],
  ['openai', 'POST /responses', 'inference.run'],
  ['openai', 'POST /embeddings', 'inference.run'],
  ['openai', 'DELETE /responses/resp_1', 'responses.delete'],
  ['openai', 'GET /files/file-1/content', 'files.read'],
  ['openai', 'POST /vector_stores/vs_1/search', 'vectorstores.read'],
  ['openai', 'POST /files', 'files.write'],
  ['openai', 'POST /audio/transcriptions', 'inference.run'],
  ['anthropic', 'POST /v1/files', 'files.write'],
  ['openai', 'POST /batches', 'batches.write'],
  ['openai', 'POST /fine_tuning/jobs', 'finetuning.write'],
  ['anthropic', 'POST /v1/messages', 'inference.run'],
  ['anthropic', 'POST /v1/messages/count_tokens', 'models.read'],
  ['anthropic', 'GET /v1/messages/batches/b_1/results', 'batches.read'],
  ['anthropic', 'POST /v1/messages/batches', 'batches.write'],
  ['anthropic', 'DELETE /v1/files/f_1', 'files.delete'],
  ['anthropic', 'POST /v1/sessions/s_1/events', 'sessions.write'],
  ['anthropic', 'POST /v1/memory_stores/m_1/memory_versions/v_1/redact', 'memory.delete'],
  ['npm', 'GET /react', 'packages.read'],
  ['npm', 'GET /@acme%2Fapp', 'packages.read'],
  ['npm', 'GET /@acme/app/1.0.0', 'packages.read'],
  ['npm', 'GET /@acme/app/-/app-1.0.0.tgz', 'packages.read'],
  ['npm', 'GET /@acme/app/-/@acme/app-1.0.0.tgz', 'packages.read'],
  ['npm', 'GET /@acme%2Fapp/-/@acme/app-1.0.0.tgz', 'packages.read'],
  ['npm', 'GET /download/@acme/app/1.0.0/5f1d2c3b4a5968778695a4b3c2d1e0f9a8b7c6d5', 'packages.read'],
  ['npm', 'PUT /@acme/app', 'packages.publish'],
  ['npm', 'PUT /react/-rev/7-abc', 'packages.unpublish'],
  ['npm', 'DELETE /@acme%2Fapp/-/app-1.0.0.tgz/-rev/7-abc', 'packages.unpublish'],
  ['npm', 'PUT /-/package/@acme%2Fapp/dist-tags/latest', 'tags.write'],
  ['npm', 'POST /-/package/@acme%2Fapp/access', 'access.write'],
  ['npm', 'GET /-/npm/v1/tokens', 'account.read'],
  ['npm', 'PUT /-/org/acme/user', 'orgs.write'],
  ['kubernetes', `GET ${POD}`, 'pods.read'],
  ['kubernetes', 'GET /api/v1/pods', 'pods.read'],
  ['kubernetes', `GET ${POD}/log`, 'logs.read'],
  ['kubernetes', `POST ${POD}/eviction`, 'pods.delete'],
  ['kubernetes', 'DELETE /api/v1/namespaces/shop/pods', 'pods.delete'],
  ['kubernetes', 'GET /api/v1/secrets', 'secrets.read'],
  ['kubernetes', 'GET /api/v1/namespaces/shop/secrets/db', 'secrets.read'],
  ['kubernetes', 'PUT /api/v1/namespaces/shop/secrets/db', 'secrets.write'],
  ['kubernetes', 'GET /api/v1/namespaces/shop/configmaps/web', 'config.read'],
  ['kubernetes', 'PUT /apis/apps/v1/namespaces/shop/deployments/web', 'workloads.write'],
  ['kubernetes', 'PUT /apis/apps/v1/namespaces/shop/statefulsets/db/scale', 'workloads.scale'],
  ['kubernetes', `PATCH ${POD}`, 'pods.write'],
  ['kubernetes', 'PATCH /apis/apps/v1/namespaces/shop/deployments/web', 'workloads.write'],
  ['kubernetes', 'PATCH /apis/apps/v1/namespaces/shop/deployments/web/scale', 'workloads.scale'],
  ['kubernetes', 'PATCH /api/v1/nodes/n1', 'nodes.write'],
  ['kubernetes', 'PATCH /api/v1/namespaces/shop', 'namespaces.write'],
  ['kubernetes', 'PATCH /api/v1/namespaces/shop/configmaps/web', 'config.write'],
  // The answer to a patch is the whole secret.
  ['kubernetes', 'PATCH /api/v1/namespaces/shop/secrets/db', 'secrets.patch'],
  ['kubernetes', 'DELETE /api/v1/namespaces/shop/secrets/db', 'secrets.delete'],
  // The answer is the list of them, or the secret.
  ['kubernetes', 'DELETE /api/v1/namespaces/shop/secrets', 'secrets.deletecollection'],
  ['kubernetes', 'DELETE /api/v1/namespaces/shop/secrets?dryRun=All', 'secrets.deletecollection'],
  ['kubernetes', 'DELETE /api/v1/namespaces/shop/secrets/db?dryRun=All', 'secrets.deletecollection'],
  ['kubernetes', 'DELETE /api/v1/namespaces/shop/secrets/db?propagationPolicy=Orphan', 'secrets.deletecollection'],
  ['kubernetes', 'DELETE /api/v1/namespaces/shop/secrets/db?orphanDependents=true', 'secrets.deletecollection'],
  ['kubernetes', 'PATCH /apis/rbac.authorization.k8s.io/v1/clusterroles/admin', 'rbac.write'],
  ['kubernetes', 'POST /apis/rbac.authorization.k8s.io/v1/clusterrolebindings', 'rbac.write'],
  ['kubernetes', 'DELETE /api/v1/namespaces/shop', 'namespaces.delete'],
  ['kubernetes', 'GET /apis/metrics.k8s.io/v1beta1/nodes', 'cluster.read'],
  ['s3', 'GET /', 'buckets.read'],
  ['s3', 'GET /reports?list-type=2&prefix=2026/', 'listing.read'],
  ['s3', 'GET /reports/2026/11.json', 'objects.read'],
  ['s3', 'GET /reports/2026/11.json?versionId=1', 'objects.read'],
  ['s3', 'GET /reports/2026/11.json?acl', 'permissions.read'],
  ['s3', 'PUT /reports/2026/11.json?partNumber=1&uploadId=u', 'objects.write'],
  ['s3', 'PUT /reports/2026/11.json?acl', 'permissions.write'],
  ['s3', 'PUT /reports/2026/11.json?encryption&versionId=1', 'config.write'],
  ['s3', 'PUT /reports?policy', 'permissions.write'],
  ['s3', 'DELETE /reports?publicAccessBlock', 'permissions.write'],
  ['s3', 'PUT /reports?lifecycle', 'config.write'],
  ['s3', 'DELETE /reports/2026/11.json', 'objects.delete'],
  ['s3', 'DELETE /reports/2026/11.json?versionId=1', 'versions.delete'],
  ['s3', 'PUT /reports/2026/11.json?retention', 'locks.write'],
  // The XML may name versions.
  ['s3', 'POST /reports?delete', 'versions.delete'],
  ['s3', 'POST /reports/?delete', 'versions.delete'],
  ['s3', 'POST /reports?metadataTable', 'config.write'],
  ['s3', 'PUT /reports?metadataInventoryTable', 'config.write'],
  ['s3', 'PUT /reports?abac', 'permissions.write'],
  ['s3', 'POST /reports/2026/11.csv?select&select-type=2', 'objects.read'],
  ['s3', 'POST /reports/2026/11.csv?restore&versionId=1', 'objects.restore'],
  ['s3', 'POST /reports/2026/11.json?uploads', 'uploads.write'],
];

const NONE: [BuiltinName, string][] = [
  ['openai', 'POST /realtime/client_secrets'],
  ['openai', 'POST /chatkit/sessions'],
  ['openai', 'GET /organization/admin_api_keys'],
  ['openai', 'POST /skills'],
  ['anthropic', 'POST /v1/skills'],
  ['openai', 'GET /v1/models'],
  ['anthropic', 'GET /v1/organizations/api_keys'],
  ['anthropic', 'GET /v1/vaults/v_1/credentials'],
  ['anthropic', 'POST /v1/tunnels/t_1/reveal_token'],
  ['anthropic', 'PUT /v1/messages'],
  ['npm', 'POST /-/npm/v1/tokens'],
  ['npm', 'PUT /-/user/org.couchdb.user:ann'],
  ['npm', 'POST /-/npm/v1/user'],
  ['npm', 'DELETE /react'],
  // Another spelling of a path that needs another scope.
  ['npm', 'GET /-%2Fnpm%2Fv1%2Ftokens'],
  ['npm', 'PUT /-%2Fuser%2Forg.couchdb.user:bob'],
  ['npm', 'PUT /-%2fuser%252Forg.couchdb.user:bob'],
  ['npm', 'GET /-%2Fuser%2Forg.couchdb.user:bob'],
  ['npm', 'PUT /-%2Fuser%2Forg.couchdb.user:bob/-rev/1-a'],
  ['npm', 'DELETE /-%2Fuser/-rev/1-a'],
  ['npm', 'PUT /react%2F-rev%2F7-abc'],
  ...['exec', 'attach', 'portforward', 'proxy', 'proxy/admin', 'ephemeralcontainers'].flatMap((into) =>
    ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].map((method): [BuiltinName, string] => [
      'kubernetes',
      `${method} ${POD}/${into}`,
    ]),
  ),
  ['kubernetes', 'GET /api/v1/nodes/n1/proxy/pods'],
  ['kubernetes', 'GET /api/v1/namespaces/shop/services/web/proxy'],
  ['kubernetes', 'POST /api/v1/namespaces/shop/serviceaccounts/web/token'],
  ['kubernetes', 'POST /apis/certificates.k8s.io/v1/certificatesigningrequests'],
  ...['status', 'log', 'eviction', 'binding', 'resize'].map((into): [BuiltinName, string] => [
    'kubernetes',
    `PATCH ${POD}/${into}`,
  ]),
  ['kubernetes', 'PATCH /api/v1/nodes/n1/status'],
  ['kubernetes', 'PATCH /api/v1/namespaces/shop/finalize'],
  ['kubernetes', 'PATCH /api/v1/namespaces/shop/serviceaccounts/web/token'],
  ['kubernetes', 'PATCH /apis/apps/v1/namespaces/shop/daemonsets/web/scale'],
  ['kubernetes', 'PATCH /api/v1/namespaces/shop/pods'],
  ['kubernetes', 'GET /api/v1/namespaces/shop/Secrets/db'],
  ['kubernetes', 'DELETE /api/v1/namespaces'],
  ['s3', 'PUT /'],
  ['s3', 'PATCH /reports/2026/11.json'],
  // Returns a credential.
  ['s3', 'GET /reports?session'],
  ['s3', 'GET /reports/?Session='],
  // Two query parameters that need two scopes.
  ['s3', 'PUT /reports/2026/11.json?acl&tagging'],
  // APIs of the stores themselves, with all methods.
  ...[
    '/admin',
    '/admin/user?uid=root&format=json',
    '/admin/user?key&uid=root&generate-key=true',
    '/admin/metadata/user?key=root',
    '/Admin/user',
    '/minio/',
    '/minio/admin/v3/export-iam',
    '/minio/admin/v3/service?action=stop',
    '/minio/kms/v1/key/create',
    '/minio/v2/metrics/cluster',
    '/rustfs/admin/v3/list-users',
    '/_/backbeat/metadata/reports/2026',
  ].flatMap((endpoint) =>
    ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].map((method): [BuiltinName, string] => ['s3', `${method} ${endpoint}`]),
  ),
];

function scopesOf(name: BuiltinName, operation: string, rules = rulesOf(name)): readonly string[] | 'none' {
  const [method, endpoint = ''] = operation.split(' ') as [Method, string];
  const [path = '', query = ''] = endpoint.split('?');
  const found = classify(rules, { method, path, query, headers: {}, body: undefined });
  return found.kind === 'classified' ? found.scopes : 'none';
}

describe('each area has a scope of its own', () => {
  test.each(AREAS)('%s: %s is %s', (name, operation, scope) => {
    expect(scopesOf(name, operation)).toEqual([`${name}:${scope}`]);
  });
});

describe('in no scope', () => {
  test.each(NONE)('%s: %s', (name, operation) => {
    expect(scopesOf(name, operation)).toBe('none');
  });
});

test('the redirect of a file of GitHub Packages is followed, and of nothing else of npm', () => {
  const follows = (path: string) => isFollowed(rulesOf('npm'), { method: 'GET', path });
  expect(follows('/download/@acme/app/1.0.0/4f5e')).toBe(true);
  for (const path of ['/@acme%2Fapp', '/@acme/app/-/app-1.0.0.tgz', '/download/a/1.0.0/4f5e'])
    expect(follows(path), path).toBe(false);
});

test('the classification of a call whose query names two operations states both scopes', () => {
  const call = { method: 'PUT', path: '/reports/1.json', query: 'acl&tagging', headers: {}, body: undefined } as const;
  const why =
    'the call names two operations in its query, s3:permissions.write for `/acl` and s3:tags.write for `/tagging`: send each in a separate call';
  expect(classify(rulesOf('s3'), call)).toEqual({ kind: 'unclassified', why });
});

test("an entry can restore the scopes of a bucket whose name is the path of a store's own API", () => {
  const entry = { ...entryOf('s3'), content_scopes: { 'GET /admin/**': [] } };
  const parsed = parsePlatformEntry(entry);
  if (!parsed.success) throw parsed.error;
  const rules = compileManifest('s3', parsed.data);
  expect(scopesOf('s3', 'GET /admin/logo.png', rules)).toEqual(['s3:objects.read']);
  expect(scopesOf('s3', 'PUT /admin/logo.png', rules)).toBe('none');
  expect(scopesOf('s3', 'GET /administration/logo.png')).toEqual(['s3:objects.read']);
});
