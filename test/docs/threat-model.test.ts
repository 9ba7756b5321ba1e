/** The threat model matches the tests: every test that it names exists, and every case number in a test title is listed. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ROOT } from '../world/root.ts';

const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');

/** The prefixes of case numbers such as JW-06. */
const CASE = /\b(?:JW|PA|HD|BD|GQ|CX|SS|AP|CH|RG|GT|CA|AZ|DI|DOS|MC|MR|ST|KEY)-\d\d\b/g;
const casesIn = (text: string): string[] => [...text.matchAll(CASE)].map(([number]) => number);
/** Crash points and invariants, such as C7, R2 and I1, which are matched at the start of a title only, since such words occur in other texts, too. */
const BEGINNING = /^(?:(?:[A-Z]+-\d\d|[CRI]\d{1,2}) )+(?=[a-z%$\d])/;
const pointsIn = (text: string): string[] => BEGINNING.exec(text)?.[0].match(/\b[CRI]\d{1,2}\b/g) ?? [];

/** Returns the case numbers in the string literals of a test file, where titles are; comments are ignored. */
function titledIn(source: string): Set<string> {
  const code = source.replaceAll(/^\s*(?:\/\/|\/?\*).*$/gm, '');
  return new Set(
    [...code.matchAll(/(['"`])((?:\\.|(?!\1)[^\\\n])*)\1/g)].flatMap(([, , text = '']) => [
      ...casesIn(text),
      ...pointsIn(text),
    ]),
  );
}

const titled = new Map(
  readdirSync(join(ROOT, 'test'), { recursive: true })
    .map((name) => `test/${String(name).replaceAll('\\', '/')}`)
    .filter((path) => path.endsWith('.ts') && !path.includes('node_modules') && !path.endsWith('threat-model.test.ts'))
    .map((path) => [path, titledIn(read(path))] as const),
);
const everyTitled = new Set([...titled.values()].flatMap((numbers) => [...numbers]));

const testsIn = (text: string): string[] => [...text.matchAll(/\]\(\.\.\/(test\/[^)#]+)\)/g)].map(([, path]) => path!);

/** Returns the section of a page below a second-level heading. */
const section = (page: string, heading: string): string => {
  const text = page.split(/^## /m).find((one) => one.startsWith(`${heading}\n`));
  if (!text) throw new Error(`no section ${heading}`);
  return text;
};
const rowsOf = (text: string): string[][] =>
  text
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .slice(2)
    .map((line) => line.slice(2, -2).split(' | '));

const model = read('docs/threat-model.md');
const list = read('docs/hostile-cases.md');
const listed = [...list.matchAll(/^\| ([A-Z]+-\d\d|[CRI]\d{1,2}) \| .+ \| (.+) \|$/gm)].map(
  ([, number = '', tests = '']) => ({
    number,
    tests: testsIn(tests),
  }),
);

describe('the hostile cases', () => {
  test('each listed case has a test with its number in the title', () => {
    expect(listed.length).toBeGreaterThan(230);
    const wrong = listed.flatMap(({ number, tests }) =>
      tests.length === 0
        ? [`${number}: none`]
        : tests.filter((path) => !titled.get(path)?.has(number)).map((path) => `${number}: ${path}`),
    );
    expect(wrong).toEqual([]);
  });

  test('each case number in a test title is listed exactly once', () => {
    const numbers = listed.map(({ number }) => number);
    expect(new Set(numbers).size).toBe(numbers.length);
    expect([...everyTitled].filter((number) => !numbers.includes(number))).toEqual([]);
  });

  test('a case number in a comment does not count', () => {
    expect([...titledIn("// JW-01\n/** JW-02 */\n * JW-03\ntest('JW-04 x', () => 1);\n")]).toEqual(['JW-04']);
    expect([...titledIn("test('ST-03 I1 R2 x', () => ['C3', 'C4 ', 'a C5 b']);\n")]).toEqual(['ST-03', 'I1', 'R2']);
  });
});

test('every symptom of a restored backup has the test whose title is given next to it', () => {
  const symptoms = rowsOf(
    section(read('docs/decisions/23-restored-stores.md'), 'Symptoms, and what shows that they are gone'),
  );
  expect(symptoms.length).toBeGreaterThan(7);
  const tests = read('test/operations/restore.test.ts');
  for (const [what = '', title = ''] of symptoms) expect(tests, what).toContain(`test('${title.slice(1, -1)}', async`);
});

describe('the threat model', () => {
  test('every guarantee names tested cases and existing tests', () => {
    const promises = rowsOf(section(model, 'Guarantees'));
    expect(promises.map(([number]) => number)).toEqual(promises.map((_, at) => `${at + 1}`));
    expect(promises.length).toBeGreaterThan(14);
    for (const [number, , cases = '', tests = ''] of promises) {
      expect(casesIn(cases), number).not.toEqual([]);
      expect(testsIn(tests), number).not.toEqual([]);
      for (const one of casesIn(cases)) expect(everyTitled, `${number}: ${one}`).toContain(one);
    }
  });

  test('every case number that it names is listed', () => {
    const known = listed.map(({ number }) => number);
    expect(casesIn(model).filter((number) => !known.includes(number))).toEqual([]);
  });

  test('all eleven threats of the draft have an assessment: met, in part or not met', () => {
    const threats = rowsOf(section(model, 'The threats of CB4A'));
    expect(threats.map(([name = '']) => /TM-\d+/.exec(name)?.[0])).toEqual(threats.map((_, at) => `TM-${at + 1}`));
    expect(threats).toHaveLength(11);
    for (const [name, , , here = ''] of threats) {
      expect(here, name).toMatch(/^\*\*(?:Met|In part|Not met)/);
      expect(testsIn(here), name).not.toEqual([]);
    }
  });

  test.each(['docs/threat-model.md', 'docs/hostile-cases.md', 'docs/security.md'])(
    'every test that %s names exists',
    (page) => {
      const paths = testsIn(read(page));
      expect(paths.length).toBeGreaterThan(20);
      expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
    },
  );
});
