import { describe, expect, it } from 'vitest';
import { formatProblem } from '../../broker/config-file/problems.ts';
import { readYaml } from '../../broker/config-file/read-yaml.ts';

const problems = (text: string) => {
  const read = readYaml(text, 'g.yaml');
  return read.ok ? [] : read.problems.map(formatProblem);
};
const value = (text: string) => {
  const read = readYaml(text, 'g.yaml');
  if (!read.ok) throw new Error(read.problems.map(formatProblem).join('\n'));
  return read.value;
};

describe('YAML of a governance file', () => {
  it.each([
    ['a duplicate name', 'a: 1\nb: 2\na: 3', 'g.yaml:3:1: "a" is there twice; keep one of them'],
    ['a duplicate name in another spelling', 'a: 1\n"a": 3', 'g.yaml:2:1: "a" is there twice; keep one of them'],
    ['a tab as indentation', 'a:\n\tb: 1', 'g.yaml:2:1: the line is indented with a tab; use spaces'],
    ['a list as a name', 'x: 1\n? [a]\n: 1', 'g.yaml:2:3: the name of a member must be text'],
    ['an empty name', ': 1', 'g.yaml:1:1: the name of a member must be text'],
    ['__proto__', 'a: { __proto__: { x: 1 } }', 'g.yaml:1:6: "__proto__" cannot be a name here'],
    ['NUL', 'a: 1\nb: x\0y', 'g.yaml:2:5: holds the character U+0000, which is not allowed in a governance file'],
    [
      'an escaped NUL',
      'b: "x\\0y"',
      'g.yaml:1:4: holds the character U+0000, which is not allowed in a governance file',
    ],
    [
      'an escaped NUL in a name',
      '"x\\0y": 1',
      'g.yaml:1:1: holds the character U+0000, which is not allowed in a governance file',
    ],
    [
      'a lone surrogate',
      'b: x\ud800',
      'g.yaml:1:5: holds the character U+D800, which is not allowed in a governance file',
    ],
    [
      'an escaped lone surrogate',
      'b: "\\udc00"',
      'g.yaml:1:4: holds the character U+DC00, which is not allowed in a governance file',
    ],
    [
      'text that reads backwards',
      'b: x\u202ey',
      'g.yaml:1:5: holds the character U+202E, which is not allowed in a governance file as it is; write "\\u202e", in double quotes',
    ],
    ['a second document', 'a: 1\n---\nb: 2', 'g.yaml:2:1: is a second document ("---"); a governance file has one'],
    [
      'a tag',
      'a: !!binary aGk=',
      'g.yaml:1:13: the tag "tag:yaml.org,2002:binary" is not supported; write the value without it',
    ],
    [
      'another version of YAML',
      '%YAML 1.1\n---\na: yes',
      'g.yaml:1:1: is written for another version of YAML; leave the "%YAML" line out',
    ],
    ['an alias to nothing', 'a: *x', 'g.yaml:1:4: there is no anchor "&x" before this'],
    ['an alias to what holds it', 'a: &x { b: *x }', 'g.yaml:1:12: "*x" is an alias inside its own anchor'],
    [
      'text that is no YAML',
      'a: [1, 2\nb: 3',
      'g.yaml:2:1: is not YAML: Flow sequence in block collection must be sufficiently indented and end with a ]',
    ],
    ['deep brackets', `a: ${'['.repeat(500_000)}`, 'g.yaml:1:36: is nested too deeply'],
    ['deep dashes', '- '.repeat(500_000), 'g.yaml:1:65: is nested too deeply'],
    [
      'deep indentation',
      Array.from({ length: 40 }, (_, i) => `${' '.repeat(i)}a:`).join('\n'),
      'g.yaml:34:34: is nested too deeply',
    ],
    [
      'more than 8 MiB',
      `a: ${'x'.repeat(8 * 1024 * 1024)}`,
      'g.yaml:1:1: is larger than 8 MiB; a governance file has at most that',
    ],
  ])('refuses %s, with its place', (_, text, message) => {
    expect(problems(text)).toEqual([message]);
  });

  it.each([
    ['many members', Array.from({ length: 400_000 }, (_, i) => `k${i}: 1`).join('\n')],
    ['many entries', `[${'a,'.repeat(1_000_000)}]`],
    ['many errors', 'a: @\n'.repeat(30_000)],
    ['many comments', '# x\n'.repeat(1_000_000)],
    [
      'an alias bomb',
      `a: &a [x,x,x,x,x,x,x,x,x]\n${[...'bcdefghij'].map((c, i) => `${c}: &${c} [${Array(9).fill(`*${'abcdefghi'[i]}`).join(',')}]`).join('\n')}`,
    ],
    ['many aliases', `a: &a x\n${Array.from({ length: 1000 }, (_, i) => `k${i}: *a`).join('\n')}`],
  ])('refuses %s within five seconds of processor time, with at most 50 problems', (_, text) => {
    const before = process.threadCpuUsage();
    const found = problems(text);
    const { user, system } = process.threadCpuUsage(before);
    expect(found.length).toBeGreaterThan(0);
    expect(found.length).toBeLessThanOrEqual(50);
    expect((user + system) / 1000).toBeLessThan(5000);
  });

  it('accepts comments, anchors, Windows line ends, a byte order mark, and JSON', () => {
    const text = '\ufeff# who\r\na: &rules [x, "y"]\r\nb: { c: *rules } # same\r\nd: 30d\r\ne: no\r\n7: seven\r\n';
    expect(value(text)).toEqual({ a: ['x', 'y'], b: { c: ['x', 'y'] }, d: '30d', e: 'no', 7: 'seven' });
    expect(value('"\\u202e": "a\\u202e\\e"')).toEqual({ '\u202e': 'a\u202e\u001b' });
    expect(value('{"a": {"b": [true, null, "😀"]}}')).toEqual({ a: { b: [true, null, '😀'] } });
  });

  it('locates values and names, through aliases, too', () => {
    const read = readYaml('a: &x\n  b: 1\nc: *x\nd:\n  - e: { f: 2 }\n', 'g.yaml');
    if (!read.ok) throw new Error('not read');
    const { locate } = read.source;
    expect(locate(['a', 'b'])).toEqual({ line: 2, column: 6 });
    expect(locate(['a', 'b'], 'key')).toEqual({ line: 2, column: 3 });
    expect(locate(['c', 'b'])).toEqual({ line: 2, column: 6 });
    expect(locate(['d', 0, 'e', 'f'])).toEqual({ line: 5, column: 13 });
    expect(locate(['d', 0, 'e', 'missing'])).toEqual({ line: 5, column: 5 });
    expect(locate(['d', 7])).toEqual({ line: 4, column: 1 });
  });
});
