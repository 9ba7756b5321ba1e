/** The lockfiles hold to the policy on dependencies (CONTRIBUTING.md), and the audit says what npm says. No network is asked. */
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

/** Whoever may be used in the product or to make and test it. Another one is a decision, not an accident. */
const LICENCES =
  /^\(?(?:Apache-2\.0|MIT|MIT-0|ISC|0BSD|BSD-[23]-Clause|BlueOak-1\.0\.0|CC0-1\.0|Unlicense|Zlib|Python-2\.0|MPL-2\.0)(?: (?:OR|AND) [\w.-]+)*\)?$/;
/** Looked at one by one. The inspector is a client that tests drive, MIT and Apache-2.0 by its file. */
const OTHER_LICENCES = [['node_modules/@modelcontextprotocol/inspector', 'SEE LICENSE IN LICENSE']];
const LOCKFILES = ['package-lock.json', 'test/clients-lab/package-lock.json'];

/** What is wrong with a package of a lockfile, in words. */
function wrongWith(path: string, locked: Locked): string[] {
  if (path === '' || WORKSPACES.includes(path)) return [];
  if (locked.link) return WORKSPACES.includes(locked.resolved ?? '') ? [] : [`${path}: links ${locked.resolved}`];
  return [
    ...(/^sha512-[A-Za-z0-9+/]{86}==$/.test(locked.integrity ?? '') ? [] : [`${path}: no sha512 integrity`]),
    ...(/^\d+\.\d+\.\d+/.test(locked.version ?? '') ? [] : [`${path}: no version`]),
    // Left out: the registry that is configured. git, file and http are none.
    ...(/^(?:https:\/\/[^/]+\/.+\.tgz)?$/.test(locked.resolved ?? '') ? [] : [`${path}: from ${locked.resolved}`]),
  ];
}

describe.each(LOCKFILES)('%s', (file) => {
  const packages = Object.entries<Locked>(json(file).packages);

  test('pins every package by version and content, from a registry alone', () => {
    expect(packages.length).toBeGreaterThan(20);
    expect(packages.flatMap(([path, locked]) => wrongWith(path, locked))).toEqual([]);
  });
});

test.each<[string, Locked]>([
  ['no integrity', { version: '1.0.0' }],
  ['a weak one', { version: '1.0.0', integrity: 'sha1-AAAA' }],
  ['git', { version: '1.0.0', integrity: `sha512-${'A'.repeat(86)}==`, resolved: 'git+ssh://git@host/a/b.git#1' }],
  ['a file', { version: '1.0.0', integrity: `sha512-${'A'.repeat(86)}==`, resolved: 'file:../b.tgz' }],
  ['plain http', { version: '1.0.0', integrity: `sha512-${'A'.repeat(86)}==`, resolved: 'http://host/b.tgz' }],
  ['a link out of the checkout', { resolved: '../b', link: true }],
])('%s would be seen', (_what, locked) => {
  expect(wrongWith('node_modules/b', locked)).toHaveLength(1);
});

test('packages with install scripts are each decided about, and one may run', () => {
  const packages = Object.entries<Locked>(json('package-lock.json').packages);
  const names = packages.filter(([, one]) => one.hasInstallScript).map(([path]) => path.split('node_modules/').at(-1)!);
  const decided: Record<string, boolean> = manifest.allowScripts;
  expect(names.toSorted()).toEqual(Object.keys(decided).toSorted());
  expect(Object.keys(decided).filter((name) => decided[name])).toEqual(['node']);
  expect(readFileSync(join(ROOT, '.npmrc'), 'utf8')).toMatch(/^strict-allow-scripts=true$/m);
});

test('licences are of those that are allowed', () => {
  const packages = Object.entries<Locked>(json('package-lock.json').packages);
  const others = packages.filter(
    ([path, one]) => path.includes('node_modules/') && !one.link && !LICENCES.test(one.license ?? ''),
  );
  expect(others.map(([path, one]) => [path, one.license])).toEqual(OTHER_LICENCES);
});

describe('the audit', () => {
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
    ['what is accepted', report, [accepted], '2026-06-30', []],
    [
      'of another package',
      report,
      [{ ...accepted, package: 'c' }],
      '2026-06-01',
      [`new: ${URL} b: a fault`, `no longer found, take it out of the list: ${URL} c`],
    ],
    ['too late', report, [accepted], '2026-07-01', [`accepted until 2026-06-30 only: ${URL} b: ${accepted.reason}`]],
    [
      'no longer needed',
      { vulnerabilities: {} },
      [accepted],
      '2026-06-01',
      [`no longer found, take it out of the list: ${URL} b`],
    ],
    [
      'a registry that answers no audits',
      { message: '405 Method Not Allowed', statusCode: 405 },
      [],
      '2026-06-01',
      undefined,
    ],
    ['nothing at all', undefined, [], '2026-06-01', undefined],
  ])('%s', (_what, answer, list, today, expected) => {
    expect(auditFindings(answer, list, today)).toEqual(expected);
  });

  test('what is accepted is written down with a reason and a day', () => {
    expect(AcceptedList.safeParse(json('deploy/audit-accepted.json')).error).toBeUndefined();
    expect(AcceptedList.safeParse({ accepted: [{ ...accepted, until: 'never' }] }).success).toBe(false);
    expect(AcceptedList.safeParse({ accepted: [{ ...accepted, reason: '' }] }).success).toBe(false);
  });
});
