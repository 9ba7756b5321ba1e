/** The kinds of objects in a Kubernetes cluster that have scopes, by area. Source as in kubernetes.ts. */

/** `base`: its API group and version. `one`: its singular name. `isCluster`: it is not namespaced. */
export type Kind = { area: string; base: string; plural: string; one: string; isCluster: boolean };

const kinds = (area: string, base: string, plurals: string, isCluster = false): Kind[] =>
  plurals.split(' ').map((plural) => ({ area, base, plural, one: singular(plural), isCluster }));

/** Derives the singular: `networkpolicies`: networkpolicy; `ingresses`: ingress; `storageclasses`: storageclass. */
const singular = (plural: string): string =>
  plural === 'endpoints'
    ? plural
    : plural
        .replace(/ies$/, 'y')
        .replace(/sses$/, 'ss')
        .replace(/([^s])s$/, '$1');

export const kubernetesKinds: readonly Kind[] = [
  ...kinds('cluster', '/api/v1', 'nodes persistentvolumes', true),
  ...kinds('cluster', '/apis/storage.k8s.io/v1', 'storageclasses', true),
  ...kinds('cluster', '/apis/scheduling.k8s.io/v1', 'priorityclasses', true),
  ...kinds('cluster', '/apis/apiextensions.k8s.io/v1', 'customresourcedefinitions', true),
  ...kinds('cluster', '/apis/metrics.k8s.io/v1beta1', 'nodes', true),
  ...kinds('namespaces', '/api/v1', 'namespaces', true),
  ...kinds('pods', '/api/v1', 'pods'),
  ...kinds('workloads', '/api/v1', 'replicationcontrollers'),
  ...kinds('workloads', '/apis/apps/v1', 'deployments statefulsets daemonsets replicasets'),
  ...kinds('workloads', '/apis/batch/v1', 'jobs cronjobs'),
  ...kinds('workloads', '/apis/autoscaling/v2', 'horizontalpodautoscalers'),
  ...kinds('workloads', '/apis/policy/v1', 'poddisruptionbudgets'),
  ...kinds('network', '/api/v1', 'services endpoints'),
  ...kinds('network', '/apis/discovery.k8s.io/v1', 'endpointslices'),
  ...kinds('network', '/apis/networking.k8s.io/v1', 'ingresses networkpolicies'),
  ...kinds('storage', '/api/v1', 'persistentvolumeclaims'),
  ...kinds('config', '/api/v1', 'configmaps resourcequotas limitranges'),
  ...kinds('secrets', '/api/v1', 'secrets'),
  ...kinds('events', '/api/v1', 'events'),
  ...kinds('events', '/apis/events.k8s.io/v1', 'events'),
  ...kinds('rbac', '/api/v1', 'serviceaccounts'),
  ...kinds('rbac', '/apis/rbac.authorization.k8s.io/v1', 'roles rolebindings'),
  ...kinds('rbac', '/apis/rbac.authorization.k8s.io/v1', 'clusterroles clusterrolebindings', true),
];
