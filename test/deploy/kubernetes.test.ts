/**
 * The objects that the chart renders are valid for Kubernetes, and refer to each other correctly. They were rendered by deploy/check-chart.ts, which
 * needs helm or Go; a hash verifies that the chart has not changed since.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { readConfig } from '../../broker/environment/config.ts';
import { keptLimits } from '../../broker/git/kept-bodies.ts';
import { reserveOf } from '../../broker/git/spool-space.ts';
import { objectsFile, sourceHash, VARIANTS, valuesFile, valuesOf } from '../../deploy/check-chart.ts';
import { ROOT } from '../world/checkout.ts';
import { newFolder } from '../world/stores.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests look at whatever was rendered.
type Any = any;
type Thing = { apiVersion: string; kind: string; metadata: { name: string; labels: Record<string, string> } } & Record<
  string,
  Any
>;

const objectsOf = (variant: (typeof VARIANTS)[number]): Thing[] =>
  parseAllDocuments(readFileSync(objectsFile(variant), 'utf8'), { version: '1.1' }).map((one) => one.toJS());
const all = VARIANTS.flatMap((variant) => objectsOf(variant).map((object) => ({ variant, object })));
const CASES = all.map(({ variant, object }) => [`${variant}: ${object.kind} ${object.metadata.name}`, object] as const);

const ofKind = (variant: (typeof VARIANTS)[number], kind: string): Thing =>
  objectsOf(variant).find((object) => object.kind === kind)!;
/** Returns the object with its members sorted by name, the order in which the chart renders them. */
const sorted = (thing: object) => Object.fromEntries(Object.entries(thing).toSorted(([a], [b]) => (a < b ? -1 : 1)));
/** The pod templates of all objects that create pods. */
const podSpecs = all.flatMap(({ object }) => (object.spec?.template ? [object.spec.template.spec] : []));

describe.each(VARIANTS)('the %s objects', (variant) => {
  test('were rendered from the current chart (otherwise run: npm run chart:check -- --write)', () => {
    const [head] = readFileSync(objectsFile(variant), 'utf8').split('\n');
    expect(head).toContain(`SHA-256 ${sourceHash(variant)}`);
  });

  test('have values that are valid for the chart’s schema, which refuses missing and wrong values', () => {
    const schema = JSON.parse(readFileSync(join(ROOT, 'deploy/chart/agent-broker/values.schema.json'), 'utf8'));
    const valid = new Ajv({ allErrors: true, strict: false }).compile(schema);
    expect(valid(valuesOf(variant)), JSON.stringify(valid.errors)).toBe(true);
    const bare = parse(readFileSync(join(ROOT, 'deploy/chart/agent-broker/values.yaml'), 'utf8'));
    expect(valid(bare)).toBe(false);
    expect(valid.errors!.map(({ instancePath }) => instancePath).toSorted()).toEqual([
      '/baseUrl',
      '/database/existingSecret',
      '/masterKey/existingSecret',
    ]);
    expect(valid({ ...valuesOf(variant), replica: 3 })).toBe(false);
    expect(valid({ ...valuesOf(variant), baseUrl: 'https://broker.example.com/path' })).toBe(false);
  });
});

test('the minimal values contain only what the chart requires', () => {
  expect(Object.keys(parse(readFileSync(valuesFile('minimal'), 'utf8')))).toEqual(['baseUrl', 'database', 'masterKey']);
});

describe('the schemas of Kubernetes', () => {
  test.each(CASES)('accept %s', async (_name, object) => {
    const models = await import(/* @vite-ignore */ `kubernetes-models/${object.apiVersion}`);
    new models[object.kind](object).validate();
  });

  test('refuse a wrong type and a missing required member', async () => {
    const { StatefulSet } = await import('kubernetes-models/apps/v1');
    const good: Any = structuredClone(ofKind('minimal', 'StatefulSet'));
    good.spec.template.spec.terminationGracePeriodSeconds = '35';
    expect(() => new StatefulSet(good).validate()).toThrow('terminationGracePeriodSeconds');
    delete good.spec.selector;
    expect(() => new StatefulSet(good).validate()).toThrow('selector');
  });

  // The validators ignore unknown fields; the TypeScript types refuse them.
  test('contain every field that the chart uses', () => {
    const folder = newFolder();
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
    const typed = (objects: readonly Thing[]): string =>
      objects
        .map(
          (object, i) =>
            `import type { I${object.kind} as Kind${i} } from 'kubernetes-models/${object.apiVersion}';\nexport const object${i}: Kind${i} = ${JSON.stringify(object)};\n`,
        )
        .join('');
    const wrong = structuredClone(ofKind('minimal', 'StatefulSet'));
    wrong.spec.template.spec.containers[0].readinessProbe.periodInSeconds = 5;
    writeFileSync(join(folder, 'objects.mts'), typed(all.map(({ object }) => object)));
    writeFileSync(join(folder, 'wrong.mts'), typed([wrong]));
    const tsc = join(ROOT, 'node_modules', '.bin', 'tsc');
    const words = '--noEmit --strict --skipLibCheck --module nodenext --target es2024 --types'.split(' ');
    const { stdout } = spawnSync(tsc, [...words, '', 'objects.mts', 'wrong.mts'], { cwd: folder, encoding: 'utf8' });
    const problems = stdout.split('\n').filter((line) => /error TS/.test(line));
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(/^wrong\.mts.*periodInSeconds/);
  });
});

describe('references between objects', () => {
  test('services, disruption budget, network policy and autoscaler select the replicas, and not the job', () => {
    for (const variant of VARIANTS) {
      const set = ofKind(variant, 'StatefulSet');
      const replica = set.spec.template.metadata.labels;
      const job = ofKind(variant, 'Job').spec.template.metadata.labels;
      const selectors = objectsOf(variant).flatMap(({ kind, spec }) =>
        kind === 'Service'
          ? [spec.selector]
          : kind === 'PodDisruptionBudget' || kind === 'StatefulSet'
            ? [spec.selector.matchLabels]
            : kind === 'NetworkPolicy'
              ? [spec.podSelector.matchLabels]
              : [],
      );
      expect(selectors).toHaveLength(5);
      const matches = (selector: object, labels: object) =>
        Object.entries({ ...labels, ...selector }).length === Object.keys(labels).length &&
        Object.entries(selector).every(([name, value]) => (labels as Record<string, unknown>)[name] === value);
      for (const selector of selectors) {
        expect(matches(selector, replica)).toBe(true);
        expect(matches(selector, job)).toBe(false);
      }
      const services = objectsOf(variant).filter(({ kind }) => kind === 'Service');
      expect(services.map(({ metadata }) => metadata.name)).toContain(set.spec.serviceName);
    }
    const scaled = ofKind('full', 'HorizontalPodAutoscaler').spec.scaleTargetRef;
    const { kind, metadata } = ofKind('full', 'StatefulSet');
    expect(scaled).toEqual({ apiVersion: 'apps/v1', kind, name: metadata.name });
    // Otherwise each upgrade would reset the number of replicas that the autoscaler set.
    expect(ofKind('full', 'StatefulSet').spec.replicas).toBeUndefined();
    expect(ofKind('minimal', 'StatefulSet').spec.replicas).toBe(3);
  });

  test('every pod follows the restricted pod security standard, with a read-only root and no service account token', () => {
    expect(podSpecs).toHaveLength(2 * VARIANTS.length);
    for (const spec of podSpecs) {
      expect(spec.automountServiceAccountToken).toBe(false);
      expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
      for (const { securityContext } of spec.containers)
        expect(securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
    }
  });

  test('the chart references secrets and contains none, and the key is mounted as the broker requires it', () => {
    expect(all.filter(({ object }) => object.kind === 'Secret')).toEqual([]);
    for (const variant of VARIANTS) {
      const { spec } = ofKind(variant, 'StatefulSet').spec.template;
      const [broker] = spec.containers;
      const secret = (name: string) => broker.env.find((one: Thing) => one.name === name);
      expect(secret('DATABASE_URL').value).toBeUndefined();
      const keyFile = secret('AGENT_BROKER_KEY_FILE').value;
      const mount = broker.volumeMounts.find((one: Thing) => one.mountPath === keyFile);
      // Without subPath, a file of a mounted secret is a symbolic link.
      expect(mount).toMatchObject({ subPath: 'master.key', readOnly: true });
      const volume = spec.volumes.find((one: Thing) => one.name === mount.name);
      expect(volume.secret.defaultMode).toBe(0o400);
      expect(volume.secret.items.map((one: { path: string }) => one.path)).toEqual([mount.subPath]);
    }
  });

  test('migrations have the settings and files of the replicas, except the master key', () => {
    for (const variant of VARIANTS) {
      const [replica, job] = (['StatefulSet', 'Job'] as const).map(
        (kind) => ofKind(variant, kind).spec.template.spec as Any,
      );
      const named = (things: Thing[] = []) => things.map((one) => JSON.stringify(one));
      const [own, others] = [named(job.containers[0].env), named(replica.containers[0].env)];
      expect(own).toEqual(others.filter((one) => !one.includes('AGENT_BROKER_KEY_FILE')));
      const { extraVolumes, extraVolumeMounts, env } = valuesOf(variant) as Any;
      expect(own).toEqual(expect.arrayContaining(named(env)));
      expect(named(job.volumes).toSorted()).toEqual(named(extraVolumes.map(sorted)).toSorted());
      expect(named(job.containers[0].volumeMounts)).toEqual(named(extraVolumeMounts.map(sorted)));
      expect(named(replica.volumes)).toEqual(expect.arrayContaining(named(job.volumes)));
      expect(named(replica.containers[0].volumeMounts)).toEqual(
        expect.arrayContaining(named(job.containers[0].volumeMounts)),
      );
    }
    expect(ofKind('full', 'Job').spec.template.spec.volumes).toHaveLength(1);
  });

  test('a draining replica is not killed, and fails its readiness probe before it stops', () => {
    for (const variant of VARIANTS) {
      const { spec } = ofKind(variant, 'StatefulSet').spec.template;
      const [broker] = spec.containers;
      const drain = Number(broker.env.find((one: Thing) => one.name === 'DRAIN_SECONDS').value);
      expect(spec.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(drain + 20);
      expect(broker.readinessProbe.periodSeconds * broker.readinessProbe.failureThreshold).toBeLessThanOrEqual(
        drain / 2,
      );
    }
  });
});

test('the volume of a replica is large enough for the pending pushes and the reserve', () => {
  const { gitMaxRequestBytes } = readConfig({ BASE_URL: 'https://broker.example.com' });
  const { size } = valuesOf('minimal').persistence as { size: string };
  expect(size).toMatch(/^\d+Gi$/);
  const bytes = Number.parseInt(size, 10) * 1024 ** 3;
  const { all, reserve } = keptLimits(gitMaxRequestBytes).files;
  expect(bytes - reserveOf(bytes)).toBeGreaterThanOrEqual(all + reserve);
});

test('the ingress accepts the largest git request, and the memory alert fires below the memory limit of a pod', () => {
  const { annotations } = ofKind('full', 'Ingress').metadata as Any;
  const { gitMaxRequestBytes } = readConfig({ BASE_URL: 'https://broker.example.com' });
  expect(Number.parseInt(annotations['nginx.ingress.kubernetes.io/proxy-body-size'], 10) * 1024 ** 2).toBe(
    gitMaxRequestBytes,
  );
  const alerts = readFileSync(join(ROOT, 'deploy/prometheus/alerts.yaml'), 'utf8');
  const alarm = Number(/process_resident_memory_bytes\S* > (\S+)/.exec(alerts)?.[1]);
  const { memory } = (valuesOf('minimal').resources as Any).limits;
  expect(memory).toBe('1Gi');
  expect(alarm).toBeLessThan(0.9 * 1024 ** 3);
});
