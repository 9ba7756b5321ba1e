/** The architecture rules of docs/architecture.md: imports point one way, and input and output are confined to single modules. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ROOT } from './world/checkout.ts';

/** In order: a file imports only from its own module and from modules above it in this list. */
const MODULES = [
  'broker/runtime',
  'broker/policy',
  'broker/log',
  'broker/wire',
  'broker/crypto',
  'broker/sentences',
  'broker/platforms',
  'broker/store',
  'broker/egress',
  'broker/telemetry',
  'broker/environment',
  /** The files directly in broker/: vault, keys, leases, the Broker record. */
  'broker',
  'broker/audit',
  'broker/receipt-log',
  'broker/auth',
  'broker/token-source',
  'broker/oauth-client',
  'broker/oauth-server',
  'broker/facts',
  'broker/people',
  'broker/config-file',
  'broker/approvals',
  'broker/notify',
  'broker/audit-push',
  'broker/calls',
  'broker/git',
  'broker/proxy',
  'broker/admin',
  'broker/config-plan',
  'broker/queries',
  'broker/services',
  'broker/http',
  'broker/console',
  'broker/docs',
  /** Starts and stops everything, so it may import all other modules. */
  'broker/process',
] as const;

/** Makes invisible characters visible, in browsers, terminals and sentences. It imports nothing. */
const SHARED = 'broker/console/static/visible.js';

type Import = { from: string; to: string; specifier: string };

function filesBelow(folder: string, ending = '.ts'): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(ending) && !entry.parentPath.includes('/dist'))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)));
}

const IMPORT = /(?:\bfrom\s+|\bimport\s*\(\s*|^import\s+)['"]([^'"]+)['"]/gm;

function importsOf(file: string): Import[] {
  const text = readFileSync(join(ROOT, file), 'utf8');
  return [...text.matchAll(IMPORT)].map(([, specifier = '']) => ({
    from: file,
    specifier,
    to: placeOf(file, specifier),
  }));
}

function placeOf(file: string, specifier: string): string {
  if (specifier.startsWith('.')) return relative(ROOT, resolve(ROOT, dirname(file), specifier));
  // As browsers load it.
  return specifier.startsWith('/console/')
    ? join('broker/console/static', specifier.slice('/console/'.length))
    : specifier;
}

function rankOf(file: string): number {
  if (file === SHARED) return 0;
  if (file === 'broker/services.ts') return MODULES.indexOf('broker/services');
  const [first = '', second = ''] = file.split('/');
  const module = second.endsWith('.ts') ? first : `${first}/${second}`;
  return MODULES.indexOf(module as (typeof MODULES)[number]);
}

/** The folders whose code is published. */
const SHIPPED = ['broker', 'json', 'mcp', 'lab', 'bin'];

const broker = filesBelow('broker');
const imports = broker.flatMap(importsOf);

const FOLDERS = ['json', 'mcp', 'lab', 'bin', 'bench'];

/** The groups of files that reach themselves (Tarjan's strongly connected components), sorted. */
function cyclesOf(to: ReadonlyMap<string, readonly string[]>): string[][] {
  const index = new Map<string, number>();
  const stack: string[] = [];
  const found: string[][] = [];
  const visit = (file: string): number => {
    const at = index.size;
    index.set(file, at);
    stack.push(file);
    let lowest = at;
    for (const next of to.get(file) ?? []) {
      if (!to.has(next)) continue;
      if (!index.has(next)) lowest = Math.min(lowest, visit(next));
      else if (stack.includes(next)) lowest = Math.min(lowest, index.get(next) ?? lowest);
    }
    if (lowest === at) {
      const group = stack.splice(stack.indexOf(file));
      if (group.length > 1) found.push(group.sort());
    }
    return lowest;
  };
  for (const file of to.keys()) if (!index.has(file)) visit(file);
  return found;
}

describe('the modules', () => {
  test('every file of broker/ belongs to a listed module', () => {
    expect(broker.filter((file) => rankOf(file) < 0)).toEqual([]);
  });

  test('no file imports from a module below its own in the list', () => {
    const up = imports.filter(({ from, to }) => to.startsWith('broker/') && rankOf(to) > rankOf(from));
    expect(up).toEqual([]);
  });

  test('there are no import cycles, type imports included', () => {
    const files = [
      ...broker,
      ...FOLDERS.flatMap((folder) => filesBelow(folder)),
      ...filesBelow('broker/console/static', '.js'),
      ...filesBelow('test/world'),
    ];
    const to = new Map(files.map((file) => [file, importsOf(file).map((one) => one.to)]));
    expect(cyclesOf(to)).toEqual([]);
    expect(
      cyclesOf(
        new Map([
          ['a', ['b']],
          ['b', ['c']],
          ['c', ['b']],
        ]),
      ),
    ).toEqual([['b', 'c']]);
  });

  test('the console file that every module may import imports nothing', () => {
    expect(importsOf(SHARED)).toEqual([]);
  });

  test('the check detects an import that points the wrong way', () => {
    expect(rankOf('broker/http/app.ts')).toBeGreaterThan(rankOf('broker/store/audit.ts'));
    expect(rankOf('broker/process/main.ts')).toBeGreaterThan(rankOf('broker/console/pages.ts'));
    expect(importsOf('broker/process/main.ts').map(({ to }) => to)).toContain('broker/http/app.ts');
  });

  test.each([
    ['SQL', 'broker/store', ['kysely', 'pg', 'node:sqlite']],
    ['Redis', 'broker/store', ['ioredis', 'rate-limiter-flexible']],
    ['Express', 'broker/http', ['express']],
    ['the network', 'broker/egress', ['undici', 'nodemailer', 'node:net', 'node:tls', 'node:dns', 'node:https']],
  ])('%s is used only in %s', (_what, module, packages) => {
    const elsewhere = imports.filter(
      ({ from, specifier }) =>
        !from.startsWith(`${module}/`) &&
        packages.some((name) => specifier === name || specifier.startsWith(`${name}/`)),
    );
    // Types of a listener's address, and reading an address's text, are no network.
    expect(elsewhere.filter(({ from }) => !isHarmless(from, packages))).toEqual([]);
  });

  test('functions name the parts of the Broker record that they use; only the files that start the process take the whole record', () => {
    const whole = broker.filter((file) => /[:&|(] *Broker\b(?!\[)/.test(readFileSync(join(ROOT, file), 'utf8')));
    expect(whole.toSorted()).toEqual(['broker/process/main.ts', 'broker/process/start.ts', 'broker/services.ts']);
  });

  test('the decision does no input or output', () => {
    const outside = imports.filter(
      ({ from, specifier }) => from.startsWith('broker/policy/') && specifier.startsWith('node:'),
    );
    expect(outside).toEqual([]);
  });

  test('only the configuration reads the environment in broker/', () => {
    const readers = broker.filter((file) => readFileSync(join(ROOT, file), 'utf8').includes('process.env'));
    expect(readers.filter((file) => !commentsOnly(file))).toEqual([]);
  });

  test('json/ imports nothing but itself', () => {
    const outside = filesBelow('json')
      .flatMap(importsOf)
      .filter(({ to }) => !to.startsWith('json/'));
    expect(outside).toEqual([]);
  });

  test('the client imports nothing but itself and Node', () => {
    const outside = filesBelow('mcp/client')
      .flatMap(importsOf)
      .filter(({ to }) => !to.startsWith('mcp/client/') && !to.startsWith('node:'));
    expect(outside).toEqual([]);
  });

  test.each(['mcp', 'lab'])('%s/ imports nothing from broker/', (folder) => {
    expect(
      filesBelow(folder)
        .flatMap(importsOf)
        .filter(({ to }) => to.startsWith('broker/')),
    ).toEqual([]);
  });

  test('broker/ imports nothing from bin/, test/ and bench/, and only broker/http imports from mcp/', () => {
    const outside = imports.filter(({ to }) => /^(bin|mcp|test|bench)\//.test(to));
    const isAllowed = ({ from, to }: Import) => from.startsWith('broker/http/') && /^mcp\/(tools|client)\//.test(to);
    expect(outside.filter((one) => !isAllowed(one))).toEqual([]);
  });

  test('console files that the command line uses have relative imports, which work in Node and in browsers', () => {
    const used = new Set(
      filesBelow('bin')
        .flatMap(importsOf)
        .map(({ to }) => to)
        .filter((to) => to.startsWith('broker/console/static/')),
    );
    for (const file of used)
      for (const { to, specifier } of importsOf(file)) if (/^\..*\.js$/.test(specifier)) used.add(to);
    expect(used.size).toBeGreaterThan(3);
    // Type imports are erased.
    const byAddress = [...used].filter((file) =>
      /^import .* from '\/console\//m.test(readFileSync(join(ROOT, file), 'utf8')),
    );
    expect(byAddress).toEqual([]);
  });

  test('commands named in messages can be typed as they stand (npx agent-broker …)', () => {
    const said = filesBelow('bin').flatMap((file) =>
      readFileSync(join(ROOT, file), 'utf8')
        .split('\n')
        .filter((line) => !/^\s*(?:\/\/|\/?\*)/.test(line) && /['`"].*[:"(] ?agent-broker [a-z]/.test(line))
        .map((line) => `${file}: ${line.trim()}`),
    );
    expect(said).toEqual([]);
  });

  test('only the recorder creates DurableValue', () => {
    const makers = broker.filter((file) => /\bDurableValue\b/.test(readFileSync(join(ROOT, file), 'utf8')));
    expect(makers).toEqual(['broker/audit/record.ts', 'broker/audit/recorder.ts']);
  });

  test('routes do not import the store and open no transactions', () => {
    const asksTheStore = (file: string) =>
      importsOf(file).some(({ to }) => to.startsWith('broker/store/')) ||
      /\b(recordChange|transaction)\(/.test(readFileSync(join(ROOT, file), 'utf8'));
    expect(broker.filter((file) => file.startsWith('broker/http/routes/') && asksTheStore(file))).toEqual([]);
    expect(asksTheStore('broker/admin/policies/policies.ts')).toBe(true);
  });

  test('broker/http imports only helpers for stored values from broker/store', () => {
    // Helpers for stored values: parsing of their JSON, limits, and which errors are faults of the store.
    const ofValues = ['agent-activity', 'agent-pages', 'open-json', 'store-fault', 'stored-json', 'stored-terms'];
    const asked = broker
      .filter((file) => file.startsWith('broker/http/'))
      .flatMap((file) => {
        const text = readFileSync(join(ROOT, file), 'utf8');
        const modules = [...text.matchAll(/^import (?!type)[^;]*?from '[./]*store\/([\w-]+)\.ts';$/gm)];
        return modules.flatMap(([, name = '']) => (ofValues.includes(name) ? [] : [`${file}: ${name}`]));
      });
    expect(asked).toEqual([]);
  });

  test('there are no utils, helpers, common or barrel files', () => {
    const files = SHIPPED.flatMap((folder) => filesBelow(folder));
    expect(files.filter((file) => /(^|\/)(utils?|helpers?|commons?|index)(\.ts|\/)/.test(file))).toEqual([]);
  });

  test('no file has more than 250 lines', () => {
    const files = SHIPPED.flatMap((folder) => filesBelow(folder));
    // Published migrations are never edited.
    const code = files.filter((file) => !file.includes('/migrations/'));
    const long = code.filter((file) => readFileSync(join(ROOT, file), 'utf8').split('\n').length > 251);
    expect(long).toEqual([]);
  });
});

test('published code imports only packages that the build bundles, and reads those that are installed with it', () => {
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const shipped = SHIPPED.flatMap((folder) => filesBelow(folder));
  const specifiers = shipped.flatMap(importsOf).map(({ specifier }) => specifier);
  const isOf = (name: string) => specifiers.some((one) => one === name || one.startsWith(`${name}/`));
  // The build bundles these packages and their dependencies into dist; adding one is a decision.
  expect(Object.keys(devDependencies).filter(isOf)).toEqual([
    '@block65/webcrypto-web-push',
    '@bufbuild/cel',
    '@bufbuild/protobuf',
    '@bufbuild/re2',
    '@modelcontextprotocol/node',
    '@modelcontextprotocol/server',
    '@opentelemetry/api',
    '@opentelemetry/core',
    '@opentelemetry/otlp-exporter-base',
    '@opentelemetry/otlp-transformer',
    '@opentelemetry/resources',
    '@opentelemetry/sdk-metrics',
    '@opentelemetry/sdk-trace',
    '@peculiar/asn1-schema',
    '@peculiar/asn1-x509',
    '@prometheus-io/client',
    '@simplewebauthn/server',
    '@smithy/signature-v4',
    'canonicalize',
    'commander',
    'cross-spawn',
    'eventsource-parser',
    'express',
    'github-slugger',
    'graphql',
    'ioredis',
    'ipaddr.js',
    'jose',
    'jsonc-parser',
    'kysely',
    'marked',
    'nodemailer',
    'oidc-provider',
    'openid-client',
    'pg',
    'pino',
    'rate-limiter-flexible',
    'smol-toml',
    'undici',
    'uqr',
    'yaml',
    'zod',
  ]);
  // Dependencies are browser libraries, which the console reads as files.
  const texts = shipped.map((file) => readFileSync(join(ROOT, file), 'utf8'));
  const isNamed = (name: string) => texts.some((text) => text.includes(`'${name}'`) || text.includes(`'${name}/`));
  expect(Object.keys(dependencies).filter((name) => isOf(name) || !isNamed(name))).toEqual([]);
});

function isHarmless(file: string, packages: readonly string[]): boolean {
  const lines = readFileSync(join(ROOT, file), 'utf8')
    .split('\n')
    .filter((line) => packages.some((name) => line.includes(`'${name}'`)));
  return lines.every((line) => /^import (type |\{ (isIP|isIPv4|isIPv6)(, (isIP|isIPv4|isIPv6))* \})/.test(line));
}

function commentsOnly(file: string): boolean {
  const lines = readFileSync(join(ROOT, file), 'utf8')
    .split('\n')
    .filter((line) => line.includes('process.env'));
  return lines.every((line) => /^\s*(\/\/|\*|\/\*\*)/.test(line));
}
