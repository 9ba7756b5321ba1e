/** Sentences for calls of a Kubernetes API server: by kind, as listed in ../kubernetes-kinds.ts. */
import { type Kind, kubernetesKinds } from '../kubernetes-kinds.ts';

/** Areas whose kinds can be created, changed and deleted. */
const CHANGED = new Set(['pods', 'workloads', 'network', 'storage', 'config', 'secrets', 'rbac']);

function ofKind({ base, plural, one, isCluster }: Kind): Record<string, string> {
  const at = isCluster ? `${base}/${plural}` : `${base}/namespaces/*/${plural}`;
  const named = isCluster ? '**{1}**' : '**{2}** in **{1}**';
  const where = isCluster ? '' : ' in **{1}**';
  const reads = one === 'secret' ? ' and read' : '';
  return {
    [`POST ${at}`]: `create the ${one}[ **{/metadata/name}**| **{/metadata/generateName}**]${where}`,
    [`PUT ${at}/*`]: `replace the ${one} ${named}`,
    // For secrets, the answer is the whole secret: `kubernetes:secrets.patch`, and `…deletecollection`.
    [`PATCH ${at}/*`]: `change${reads} the ${one} ${named}`,
    [`DELETE ${at}/*`]: `delete the ${one} ${named}`,
    [`DELETE ${at}`]: `delete${reads} all ${plural}${where}[ with the labels **{?labelSelector}**]`,
  };
}

const scaled = (plural: string, method: 'PUT' | 'PATCH'): [string, string] => [
  `${method} /apis/apps/v1/namespaces/*/${plural}/*/scale`,
  `scale the ${plural.slice(0, -1)} **{2}** in **{1}**[ to **{/spec/replicas}**]`,
];

export const kubernetesSentences: Record<string, string> = {
  ...Object.fromEntries(
    kubernetesKinds.filter(({ area }) => CHANGED.has(area)).flatMap((kind) => Object.entries(ofKind(kind))),
  ),
  ...Object.fromEntries(
    ['deployments', 'statefulsets', 'replicasets'].flatMap((plural) => [
      scaled(plural, 'PUT'),
      scaled(plural, 'PATCH'),
    ]),
  ),
  'POST /api/v1/namespaces/*/pods/*/eviction': 'evict the pod **{2}** in **{1}**',
  'PUT /api/v1/nodes/*': 'change the node **{1}**[, unschedulable: **{/spec/unschedulable}**]',
  'PATCH /api/v1/nodes/*': 'change the node **{1}**[, unschedulable: **{/spec/unschedulable}**]',
  'POST /api/v1/namespaces': 'create the namespace[ **{/metadata/name}**]',
  'PUT /api/v1/namespaces/*': 'replace the namespace **{1}**',
  'PATCH /api/v1/namespaces/*': 'change the namespace **{1}**',
  'DELETE /api/v1/namespaces/*': 'delete the namespace **{1}**, with all that is in it',
  'POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews':
    'ask whether the credential may[ {/spec/resourceAttributes/verb} {/spec/resourceAttributes/resource}]',
  'POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews':
    'ask what the credential may do[ in **{/spec/namespace}**]',
  'POST /apis/authentication.k8s.io/v1/selfsubjectreviews': 'ask whose the credential is',
};

function readsOfKind({ base, plural, one, isCluster }: Kind): Record<string, string> {
  const at = isCluster ? `${base}/${plural}` : `${base}/namespaces/*/${plural}`;
  const named = isCluster ? '**{1}**' : '**{2}** in **{1}**';
  // Metrics have the names of the objects that they measure.
  const [several, each] = base.includes('metrics') ? [`the usage of ${plural}`, `usage of the ${one}`] : [plural, one];
  const labels = '[ with the labels **{?labelSelector}**]';
  return {
    [`GET ${base}/${plural}`]: `list ${several}${isCluster ? '' : ' in all namespaces'}${labels}`,
    [`GET ${at}`]: `list ${several}${isCluster ? '' : ' in **{1}**'}${labels}`,
    [`GET ${at}/*`]: `read the ${each} ${named}`,
    [`GET ${at}/*/status`]: `read the status of the ${one} ${named}`,
  };
}

export const kubernetesReads: Record<string, string> = {
  ...Object.fromEntries(kubernetesKinds.flatMap((kind) => Object.entries(readsOfKind(kind)))),
  ...Object.fromEntries(
    ['deployments', 'statefulsets', 'replicasets'].map((plural) => [
      `GET /apis/apps/v1/namespaces/*/${plural}/*/scale`,
      `read the scale of the ${plural.slice(0, -1)} **{2}** in **{1}**`,
    ]),
  ),
  'GET /api/v1/namespaces/*/pods/*/log': 'read the log of the pod **{2}** in **{1}**[, container {?container}]',
  'GET /version': 'read the version of the server',
  'GET /livez': 'see whether the server lives',
  'GET /readyz': 'see whether the server is ready',
  'GET /api': 'list versions of the core API',
  'GET /apis': 'list API groups',
  'GET /api/v1': 'list kinds of the core API',
  'GET /apis/*': 'read about the API group **{1}**',
  'GET /apis/*/*': 'list kinds of the API group **{1}/{2}**',
  'GET /openapi/v2': 'read the schema of the API',
  'GET /openapi/v3': 'read the schema of the API',
  'GET /openapi/v3/**': 'read the schema of[ **{**}**| the API]',
};
