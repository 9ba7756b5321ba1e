/**
 * The API server of a Kubernetes cluster. Paths: Kubernetes API reference 1.34 (kubernetes/kubernetes, api/openapi-spec). Each cluster has its own address,
 * so `base_url` is a placeholder that the schema refuses until it is overridden. Deliberately in no scope: `exec`, `attach`, `portforward`, `proxy` and
 * ephemeral containers, which access running containers; tokens of service accounts, and certificates; webhooks of the API server; impersonation, by its
 * headers. The kind of a PATCH is its media type (Kubernetes API concepts, "Patch and apply"), which clients set themselves. Custom resources are added in
 * the platform's entry, under `scopes`.
 */
import type { ManifestInput } from '../manifest.ts';
import { type Kind, kubernetesKinds } from './kubernetes-kinds.ts';

const reads = ({ base, plural, isCluster }: Kind): string[] => [
  `GET ${base}/${plural}`,
  ...(isCluster
    ? [`GET ${base}/${plural}/*`, `GET ${base}/${plural}/*/status`]
    : ['', '/*', '/*/status'].map((rest) => `GET ${base}/namespaces/*/${plural}${rest}`)),
];
const placeOf = ({ base, plural, isCluster }: Kind): string =>
  isCluster ? `${base}/${plural}` : `${base}/namespaces/*/${plural}`;
const puts = (kind: Kind): string[] => [`POST ${placeOf(kind)}`, `PUT ${placeOf(kind)}/*`];
const patches = (kind: Kind): string[] => [`PATCH ${placeOf(kind)}/*`];
const writes = (kind: Kind): string[] => [...puts(kind), ...patches(kind)];
const deletesOne = (kind: Kind): string[] => [`DELETE ${placeOf(kind)}/*`];
/** Deletes everything in a namespace that matches the selector in the query. */
const deletesAll = (kind: Kind): string[] => [`DELETE ${placeOf(kind)}`];
const deletes = (kind: Kind): string[] => [...deletesOne(kind), ...deletesAll(kind)];

const area = (name: string) => kubernetesKinds.filter((kind) => kind.area === name);
const SCALED = ['deployments', 'statefulsets', 'replicasets'].map((one) => `/apis/apps/v1/namespaces/*/${one}/*/scale`);
const WRITTEN = ['pods', 'workloads', 'network', 'storage', 'config', 'secrets', 'rbac'].flatMap(area);
const PATCHED = [
  ...WRITTEN.flatMap(patches),
  ...SCALED.map((path) => `PATCH ${path}`),
  'PATCH /api/v1/nodes/*',
  'PATCH /api/v1/namespaces/*',
];

const watching = [
  'kubernetes:cluster.read',
  'kubernetes:pods.read',
  'kubernetes:workloads.read',
  'kubernetes:network.read',
  'kubernetes:storage.read',
  'kubernetes:events.read',
];

/**
 * By default, deleting a secret returns only a status; with these parameters, which delete nothing yet or leave the deletion to the garbage collector, the
 * answer is the secret (apiserver, registry/generic/registry/store.go, `Delete`). The same applies to a secret with finalizers, which the request does not
 * show.
 */
const ANSWERS_WITH_OBJECT = [
  { pointer: '/propagationPolicy', unless: ['Background'] },
  { pointer: '/orphanDependents' },
  { pointer: '/dryRun' },
].map((rule) => ({ ...rule, scope: 'kubernetes:secrets.deletecollection' }));

export const kubernetes = {
  kind: 'rest',
  name: 'Kubernetes',
  docs: 'https://kubernetes.io/docs/reference/kubernetes-api',
  base_url: 'https://your-cluster.invalid',
  auth: { type: 'bearer' },
  // A followed log, or a watch, sends nothing while nothing happens.
  idle_seconds: 600,
  error_body: {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: '{detail}',
    reason: 'Forbidden',
    code: '{status}',
  },
  refused_headers: ['impersonate-*'],
  // A merge patch, a list of operations (RFC 6902), and YAML of a server-side apply.
  bodies: Object.fromEntries(PATCHED.map((operation) => [operation, ['json', 'list', 'text']])),
  scopes: {
    'kubernetes:cluster.read': [
      ...['/version', '/livez', '/readyz', '/api', '/apis', '/api/v1', '/apis/*', '/apis/*/*'].map(
        (path) => `GET ${path}`,
      ),
      ...['/openapi/v2', '/openapi/v3', '/openapi/v3/**'].map((path) => `GET ${path}`),
      ...area('cluster').flatMap(reads),
      ...area('namespaces').flatMap(reads),
    ],
    'kubernetes:nodes.write': ['PUT /api/v1/nodes/*', 'PATCH /api/v1/nodes/*'],
    'kubernetes:namespaces.write': [
      'POST /api/v1/namespaces',
      'PUT /api/v1/namespaces/*',
      'PATCH /api/v1/namespaces/*',
    ],
    // Deletes everything in the namespace, too.
    'kubernetes:namespaces.delete': ['DELETE /api/v1/namespaces/*'],
    'kubernetes:pods.read': area('pods').flatMap(reads),
    // A pod may mount secrets of its namespace and run as its service accounts; so may the pods of a workload.
    'kubernetes:pods.write': area('pods').flatMap(writes),
    'kubernetes:pods.delete': [...area('pods').flatMap(deletes), 'POST /api/v1/namespaces/*/pods/*/eviction'],
    // Logs of programs may contain secrets, too.
    'kubernetes:logs.read': ['GET /api/v1/namespaces/*/pods/*/log'],
    'kubernetes:workloads.read': [...area('workloads').flatMap(reads), ...SCALED.map((path) => `GET ${path}`)],
    'kubernetes:workloads.write': area('workloads').flatMap(writes),
    'kubernetes:workloads.scale': SCALED.flatMap((path) => [`PUT ${path}`, `PATCH ${path}`]),
    'kubernetes:workloads.delete': area('workloads').flatMap(deletes),
    'kubernetes:network.read': area('network').flatMap(reads),
    'kubernetes:network.write': area('network').flatMap(writes),
    'kubernetes:network.delete': area('network').flatMap(deletes),
    'kubernetes:storage.read': area('storage').flatMap(reads),
    'kubernetes:storage.write': area('storage').flatMap(writes),
    'kubernetes:storage.delete': area('storage').flatMap(deletes),
    'kubernetes:config.read': area('config').flatMap(reads),
    'kubernetes:config.write': area('config').flatMap(writes),
    'kubernetes:config.delete': area('config').flatMap(deletes),
    // The answers contain the secrets themselves.
    'kubernetes:secrets.read': area('secrets').flatMap(reads),
    'kubernetes:secrets.write': area('secrets').flatMap(puts),
    // The answer is the whole secret, even for a patch that changes nothing, so this also reads it.
    'kubernetes:secrets.patch': area('secrets').flatMap(patches),
    'kubernetes:secrets.delete': area('secrets').flatMap(deletesOne),
    // The answer contains all secrets that are deleted, or would be in a dry run, so this also reads them.
    'kubernetes:secrets.deletecollection': area('secrets').flatMap(deletesAll),
    'kubernetes:events.read': area('events').flatMap(reads),
    'kubernetes:rbac.read': area('rbac').flatMap(reads),
    // Changes who may do what in the cluster.
    'kubernetes:rbac.write': area('rbac').flatMap((kind) => [...writes(kind), ...deletes(kind)]),
    'kubernetes:access.read': [
      'POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
      'POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews',
      'POST /apis/authentication.k8s.io/v1/selfsubjectreviews',
    ],
  },
  content_scopes: Object.fromEntries(
    area('secrets')
      .flatMap(deletesOne)
      .map((operation) => [operation, ANSWERS_WITH_OBJECT]),
  ),
  presets: {
    read: watching,
    operate: [
      ...watching,
      'kubernetes:logs.read',
      'kubernetes:pods.delete',
      'kubernetes:workloads.write',
      'kubernetes:workloads.scale',
    ],
    everything: ['*'],
  },
} satisfies ManifestInput;
