/** The lockfiles follow the dependency policy (CONTRIBUTING.md), and the audit evaluates npm's report. No network is used. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Accepted, AcceptedList, auditFindings } from '../../deploy/audit-findings.ts';
import { ROOT } from '../world/root.ts';

type Locked = {
  integrity?: string;
  resolved?: string;
  link?: boolean;
  hasInstallScript?: boolean;
  version?: string;
  license?: string;
};
const json = (path: string) => JSON.parse(readFileSync(join(ROOT, path), 'utf8'));
const manifest = json('package.json');
const WORKSPACES: string[] = manifest.workspaces;

/** Licences allowed in the product, its build and its tests. Any other needs an explicit decision. */
const LICENCES =
  /^\(?(?:Apache-2\.0|MIT|MIT-0|ISC|0BSD|BSD-[23]-Clause|BlueOak-1\.0\.0|CC0-1\.0|Unlicense|Zlib|Python-2\.0|MPL-2\.0)(?: (?:OR|AND) [\w.-]+)*\)?$/;
/** Packages reviewed one by one. The inspector is a client that tests use; its licence file says MIT and Apache-2.0. */
const OTHER_LICENCES = [['node_modules/@modelcontextprotocol/inspector', 'SEE LICENSE IN LICENSE']];
const LOCKFILES = ['package-lock.json', 'test/clients-lab/package-lock.json'];

/** Returns the problems of a package of a lockfile, as messages. */
function wrongWith(path: string, locked: Locked): string[] {
  if (path === '' || WORKSPACES.includes(path)) return [];
  if (locked.link) return WORKSPACES.includes(locked.resolved ?? '') ? [] : [`${path}: links ${locked.resolved}`];
  return [
    ...(/^sha512-[A-Za-z0-9+/]{86}==$/.test(locked.integrity ?? '') ? [] : [`${path}: no sha512 integrity`]),
    ...(/^\d+\.\d+\.\d+/.test(locked.version ?? '') ? [] : [`${path}: no version`]),
    // An absent `resolved` means the configured registry. git, file and http URLs are not registries.
    ...(/^(?:https:\/\/[^/]+\/.+\.tgz)?$/.test(locked.resolved ?? '') ? [] : [`${path}: from ${locked.resolved}`]),
  ];
}

describe.each(LOCKFILES)('%s', (file) => {
  const packages = Object.entries<Locked>(json(file).packages);

  test('pins every package by version and content hash, from a registry only', () => {
    expect(packages.length).toBeGreaterThan(20);
    expect(packages.flatMap(([path, locked]) => wrongWith(path, locked))).toEqual([]);
  });
});

test.each<[string, Locked]>([
  ['no integrity', { version: '1.0.0' }],
  ['a weak hash', { version: '1.0.0', integrity: 'sha1-AAAA' }],
  ['git', { version: '1.0.0', integrity: `sha512-${'A'.repeat(86)}==`, resolved: 'git+ssh://git@host/a/b.git#1' }],
  ['a file', { version: '1.0.0', integrity: `sha512-${'A'.repeat(86)}==`, resolved: 'file:../b.tgz' }],
  ['plain http', { version: '1.0.0', integrity: `sha512-${'A'.repeat(86)}==`, resolved: 'http://host/b.tgz' }],
  ['a link out of the checkout', { resolved: '../b', link: true }],
])('%s is reported', (_what, locked) => {
  expect(wrongWith('node_modules/b', locked)).toHaveLength(1);
});

test('each package with install scripts is decided on in package.json, and only one may run them', () => {
  const packages = Object.entries<Locked>(json('package-lock.json').packages);
  const names = packages.filter(([, one]) => one.hasInstallScript).map(([path]) => path.split('node_modules/').at(-1)!);
  const decided: Record<string, boolean> = manifest.allowScripts;
  expect(names.toSorted()).toEqual(Object.keys(decided).toSorted());
  expect(Object.keys(decided).filter((name) => decided[name])).toEqual(['node']);
  expect(readFileSync(join(ROOT, '.npmrc'), 'utf8')).toMatch(/^strict-allow-scripts=true$/m);
});

test('every licence is an allowed one', () => {
  const packages = Object.entries<Locked>(json('package-lock.json').packages);
  const others = packages.filter(
    ([path, one]) => path.includes('node_modules/') && !one.link && !LICENCES.test(one.license ?? ''),
  );
  expect(others.map(([path, one]) => [path, one.license])).toEqual(OTHER_LICENCES);
});

describe('the findings of the npm audit', () => {
  const URL = 'https://github.com/advisories/GHSA-aaaa-bbbb-cccc';
  const accepted: Accepted = {
    advisory: URL,
    package: 'b',
    reason: 'only in tests, which read nothing of strangers',
    until: '2026-06-30',
  };
  const report = { vulnerabilities: { a: { via: ['b'] }, b: { via: [{ url: URL, name: 'b', title: 'a fault' }] } } };

  test.each<[string, unknown, Accepted[], string, string[] | undefined]>([
    ['nothing found', { vulnerabilities: {} }, [], '2026-06-01', []],
    ['something new', report, [], '2026-06-01', [`new: ${URL} b: a fault`]],
    ['an accepted advisory', report, [accepted], '2026-06-30', []],
    [
      'an advisory accepted for another package',
      report,
      [{ ...accepted, package: 'c' }],
      '2026-06-01',
      [`new: ${URL} b: a fault`, `no longer found, take it out of the list: ${URL} c`],
    ],
    [
      'an acceptance that has expired',
      report,
      [accepted],
      '2026-07-01',
      [`accepted until 2026-06-30 only: ${URL} b: ${accepted.reason}`],
    ],
    [
      'an acceptance that is no longer needed',
      { vulnerabilities: {} },
      [accepted],
      '2026-06-01',
      [`no longer found, take it out of the list: ${URL} b`],
    ],
    [
      'a registry without an audit endpoint',
      { message: '405 Method Not Allowed', statusCode: 405 },
      [],
      '2026-06-01',
      undefined,
    ],
    ['no report at all', undefined, [], '2026-06-01', undefined],
  ])('%s', (_what, answer, list, today, expected) => {
    expect(auditFindings(answer, list, today)).toEqual(expected);
  });

  test('accepted advisories are listed with a reason and an end date', () => {
    expect(AcceptedList.safeParse(json('deploy/audit-accepted.json')).error).toBeUndefined();
    expect(AcceptedList.safeParse({ accepted: [{ ...accepted, until: 'never' }] }).success).toBe(false);
    expect(AcceptedList.safeParse({ accepted: [{ ...accepted, reason: '' }] }).success).toBe(false);
  });
});
