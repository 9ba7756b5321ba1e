/**
 * Updates the lists of all operations of GitHub, Slack, Stripe and Jira from the packages of package.json in this folder: `npm run coverage:platforms`
 * installs those and runs this. Then prints the share of them that the built-in manifests classify.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { coverageOf, LISTED } from './count.ts';

const MODULES = join(import.meta.dirname, 'node_modules');
/** Members of answers that contain a key (broker/platforms/builtin/github-masks.ts). */
const KEYS = ['temp_clone_token', 'temp_download_token'];
const METHODS = ['get', 'post', 'put', 'patch', 'delete'];

const READERS: Record<(typeof LISTED)[number], { from: string; read(): string[] }> = {
  github: { from: '@octokit/openapi', read: githubOperations },
  slack: { from: '@slack/web-api', read: slackMethods },
  stripe: { from: 'stripe', read: stripeOperations },
};

for (const name of LISTED) {
  const { from, read } = READERS[name];
  const { version } = JSON.parse(readFileSync(join(MODULES, from, 'package.json'), 'utf8')) as { version: string };
  const operations = [...new Set(read())].sort();
  writeFileSync(join(import.meta.dirname, `${name}.txt`), `${[`# ${from} ${version}`, ...operations].join('\n')}\n`);
  const { counted, all, left } = coverageOf(name);
  console.log(`${name}: ${counted} of ${all} (${((100 * counted) / all).toFixed(1)} %) by ${from} ${version}`);
  for (const operation of left) console.log(`  in no scope: ${operation}`);
}

const { operations: withKeys, version } = githubOperationsWithKeys();
writeFileSync(
  join(import.meta.dirname, 'github-keys.txt'),
  `${[`# @octokit/openapi ${version}: answers with ${KEYS.join(' or ')}`, ...withKeys].join('\n')}\n`,
);

writeFileSync(join(import.meta.dirname, 'jira.txt'), `${jiraOperations().join('\n')}\n`);

/** Returns the operations whose answers may contain a key of GitHub itself, by their schemas and examples. */
function githubOperationsWithKeys(): { operations: string[]; version: string } {
  const read = (file: string) => JSON.parse(readFileSync(join(MODULES, '@octokit/openapi', file), 'utf8'));
  const document = read('generated/api.github.com.json');
  const found = (pointer: string) =>
    pointer
      .slice(2)
      .split('/')
      .reduce((at, step) => at?.[step.replaceAll('~1', '/').replaceAll('~0', '~')], document);
  const has = (value: unknown, seen = new Set<unknown>()): boolean => {
    if (typeof value !== 'object' || value === null || seen.has(value)) return false;
    seen.add(value);
    const { $ref } = value as { $ref?: unknown };
    if (typeof $ref === 'string') return has(found($ref), seen);
    return Object.entries(value).some(([name, member]) => KEYS.includes(name) || has(member, seen));
  };
  const paths = Object.entries(document.paths as Record<string, Record<string, { responses?: object }>>);
  const operations = paths.flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([method, { responses }]) => METHODS.includes(method) && has(responses))
      .map(([method]) => `${method.toUpperCase()} ${path}`),
  );
  return { operations: operations.sort(), version: read('package.json').version };
}

/** Returns `GET /repos/{owner}/{repo}`, followed by `deprecated` where the document says so. */
function githubOperations(): string[] {
  const text = readFileSync(join(MODULES, '@octokit/openapi/generated/api.github.com.json'), 'utf8');
  const { paths } = JSON.parse(text) as { paths: Record<string, Record<string, { deprecated?: boolean }>> };
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([method]) => METHODS.includes(method))
      .map(([method, { deprecated }]) => `${method.toUpperCase()} ${path}${deprecated ? ' deprecated' : ''}`),
  );
}

/** Returns `chat.postMessage`: Slack accepts GET and POST for each method. */
function slackMethods(): string[] {
  const text = readFileSync(join(MODULES, '@slack/web-api/dist/methods.js'), 'utf8');
  const bound = /(?:\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*)?\w+: bindApiCall\w*\(this, '([^']+)'\)/g;
  return [...text.matchAll(bound)].map(
    ([, comment = '', method]) => `${method}${comment.includes('@deprecated') ? ' deprecated' : ''}`,
  );
}

/** Returns `GET /v1/customers/{id}`, as in Stripe's client. */
function stripeOperations(): string[] {
  const folder = join(MODULES, 'stripe/esm/resources');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.js'));
  const asked = /_makeRequest\(\s*'([A-Z]+)',\s*(['`])([^'`]*)\2/g;
  return files.flatMap((file) =>
    [...readFileSync(join(folder, file), 'utf8').matchAll(asked)].map(
      ([, method, , path = '']) => `${method} ${path.replaceAll(/\$\{encodeURIComponent\((\w+)\)\}/g, '{$1}')}`,
    ),
  );
}

/** Returns `GET /rest/api/3/issue/{issueIdOrKey}`, as in jira.js, which is generated from Atlassian's own documents. */
function jiraOperations(): string[] {
  const folder = join(MODULES, 'jira.js/dist/esm');
  const { version } = JSON.parse(readFileSync(join(MODULES, 'jira.js/package.json'), 'utf8')) as { version: string };
  const asked = /url: [`']([^`'?]+)[^`']*[`'],\s*method: '([A-Z]+)'/g;
  const operations = ['version3', 'agile'].flatMap((area) =>
    readdirSync(join(folder, area))
      .filter((file) => file.endsWith('.mjs'))
      .flatMap((file) => [...readFileSync(join(folder, area, file), 'utf8').matchAll(asked)])
      .map(([, path = '', method]) => `${method} ${path.replaceAll(/\$\{(?:\w+\.)*(\w+)\}/g, '{$1}')}`),
  );
  return [`# jira.js ${version}`, ...[...new Set(operations)].sort()];
}
