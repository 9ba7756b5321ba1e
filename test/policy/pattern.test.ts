import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compilePattern, relate } from '../../broker/policy/pattern.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { sized } from '../world/runner/thorough.ts';

const path = (text: string) => compilePattern(text, 'path');

describe('endpoint patterns', () => {
  test.each([
    ['/contacts', '/contacts', true],
    ['/contacts', '/contacts/', false],
    ['/contacts/*', '/contacts/7', true],
    ['/contacts/*', '/contacts/', false],
    ['/contacts/*', '/contacts/7/notes', false],
    ['/contacts/*/notes', '/contacts/7/notes', true],
    ['/admin/**', '/admin', true],
    ['/admin/**', '/admin/', true],
    ['/admin/**', '/admin/a/b/c', true],
    ['/admin/**', '/administrator', false],
    ['/**', '/', true],
    ['/**', '/a/b', true],
    ['/**/delete', '/a/b/delete', true],
    ['/**/delete', '/delete', true],
    ['/a/**/b/*/c', '/a/x/b/y/b/1/c', true],
    ['/docs/*:batchUpdate', '/docs/7:batchUpdate', true],
    ['/docs/*:batchUpdate', '/docs/7:get', false],
    ['/repos/**', '/Repos/A/B', false],
  ])('%s on %s: %s', (pattern, text, expected) => {
    expect(path(pattern).matches(text)).toBe(expected);
  });

  test.each([
    ['/admin/**', '/ADMIN/users'],
    ['/admin/users', '/admin/users/'],
    ['/users/ann@x.example', '/users/ann%40x.example'],
    ['/admin/**', '/admin;v=1/users'],
    ['/admin/**', '/%61dmin/users'],
    ['/admin/**', '/%2561dmin/users'],
    ['/admin/users', '/admin%2Fusers'],
    ['/projects/acme%2Fapp/**', '/projects/ACME%2fapp/issues'],
    ['/admin/users', '/admin/users%3Fx=1'],
    ['/admin/users', '/admin/users%2523x'],
    ['/*', '/x;y'],
  ])('%s in a rule that denies or holds also matches %s', (pattern, text) => {
    expect(path(pattern).matchesAnySpelling(text)).toBe(true);
  });

  test('another path does not match in any spelling', () => {
    expect(path('/admin/users').matchesAnySpelling('/admin/user')).toBe(false);
    expect(path('/admin/*').matchesAnySpelling('/admin/a/b')).toBe(false);
  });

  test.each([
    ['', 'empty'],
    ['contacts', 'begin with'],
    ['/contacts/{id}', 'write `*`'],
    ['/contacts?x=1', 'request.query'],
    ['/a//b', '`//`'],
    ['/a/../b', 'dot segments'],
    ['/a/b**', 'complete remainder'],
    ['/a b', 'characters'],
    ['/a%2fb', 'upper case'],
    ['/é', 'characters'],
    [`/${'a/'.repeat(70)}`, 'segments'],
    [`/${'a'.repeat(2000)}`, 'at most'],
  ])('%s is refused, with the reason in the error', (pattern, why) => {
    expect(() => path(pattern)).toThrow(why);
  });

  test('a literal is more specific than any number of `*`, and `*` than any number of `**`', () => {
    const ordered = ['/a/b/c', '/a/b/*x', '/a/b/*', '/a/*/*', '/a/*/**', '/*/*/*', '/*/**', '/**'];
    const specificities = ordered.map((text) => path(text).specificity);
    expect(specificities).toEqual([...specificities].sort((a, b) => b - a));
    expect(new Set(specificities).size).toBe(ordered.length);
    expect(path(`/a${'/*'.repeat(63)}`).specificity).toBeLessThan(path('/a/b').specificity);
  });

  test('DOS-06 hostile patterns and texts match in linear time', () => {
    const started = performance.now();
    expect(path(`${'/**/a'.repeat(30)}/b`).matches('/a'.repeat(200))).toBe(false);
    expect(path(`/${'*a'.repeat(400)}b`).matches(`/${'a'.repeat(8000)}`)).toBe(false);
    expect(compilePattern(`${'*a'.repeat(400)}b`, 'text').matches('a'.repeat(8000))).toBe(false);
    expect(performance.now() - started).toBeLessThan(scaledTimeout(1_000));
  });
});

describe('scope and platform patterns', () => {
  test.each([
    ['crm:*.read', 'crm:contacts.read', true],
    ['crm:*.read', 'crm:contacts.reader', false],
    ['*', '', true],
    ['crm', 'crm', true],
    ['crm', 'CRM', false],
    ['a*a', 'a', false],
    ['a*b*c', 'a-b-c', true],
    ['a*bc*c', 'abc', false],
  ])('%s on %s: %s', (pattern, text, expected) => {
    expect(compilePattern(pattern, 'text').matches(text)).toBe(expected);
  });

  test.each(['crm:**', ' crm', 'crm\n'])('%j is refused', (pattern) => {
    expect(() => compilePattern(pattern, 'text')).toThrow();
  });
});

describe('relations of endpoint patterns', () => {
  test.each([
    ['/a/**', '/a/*', 'all'],
    ['/a/*', '/a/**', 'some'],
    ['/a/*', '/a/b', 'all'],
    ['/a/b', '/a/*', 'some'],
    ['/a/b', '/a/c', 'none'],
    ['/*/x', '/a/*', 'some'],
    ['/**', '/', 'all'],
    ['/a/*', '/a/', 'none'],
    ['/a/x*', '/a/*y', 'some'],
    ['/a/x*', '/a/y*', 'none'],
    ['/a/*', '/a/x*y', 'all'],
    ['/a/**/z', '/a/b/*/z', 'all'],
  ] as const)('%s and %s: %s', (outer, inner, expected) => {
    expect(relate(path(outer), path(inner))).toBe(expected);
  });

  test('a rule that matches any spelling covers at least what it covers exactly, and overlaps more', () => {
    expect(relate(path('/admin/*'), path('/Admin/x'))).toBe('none');
    expect(relate(path('/admin/*'), path('/Admin/x'), 'any')).toBe('all');
    expect(relate(path('/*b'), path('/a;b/**'), 'any')).toBe('some');
    expect(relate(path('/projects/*/secret'), path('/projects/*'), 'any')).toBe('none');
    expect(relate(path('/projects/*/secret'), path('/projects/*'), 'any_with_slashes')).toBe('some');
  });

  const segment = fc.constantFrom(
    ...['a', 'b', 'A', 'ab', 'a;b', 'a%40', '*', '*b', 'a*', '**'],
    ...['a.b', 'a.', '*.', 'a.*', 'a.b*', 'b%20*', '*.b'],
  );
  const pattern = fc
    .array(segment, { minLength: 1, maxLength: 4 })
    .chain((segments) => fc.boolean().map((slash) => `/${segments.join('/')}${slash ? '/' : ''}`));
  const anyPath = fc
    .array(
      fc.constantFrom(
        ...['a', 'b', 'A', 'ab', 'a;b', 'bb', 'a%40', 'a%3Fb', '%23'],
        ...['a.b', 'a.', 'b..', 'a.b.B', '.a', 'a%20', 'a%20.', '%EF%BD%81', 'a%2Eb', 'a.;b'],
      ),
      { maxLength: 5 },
    )
    .chain((segments) =>
      fc.boolean().map((slash) => `/${segments.join('/')}${slash && segments.length > 0 ? '/' : ''}`),
    );

  test('`all` and `none` are never wrong for random patterns and paths', () => {
    fc.assert(
      fc.property(pattern, pattern, anyPath, (a, b, text) => {
        const [outer, inner] = [path(a), path(b)];
        if (!inner.matches(text)) return;
        const exact = relate(outer, inner);
        if (exact === 'all') expect(outer.matches(text)).toBe(true);
        if (exact === 'none') expect(outer.matches(text)).toBe(false);
        const any = relate(outer, inner, 'any');
        if (any === 'all') expect(outer.matchesAnySpelling(text)).toBe(true);
        if (any === 'none') expect(outer.matchesAnySpelling(text)).toBe(false);
        const slashes = text.replace(/(?<=[^/])\/(?=[^/])/, '%2F');
        if (!inner.matches(slashes)) return;
        const withSlashes = relate(outer, inner, 'any_with_slashes');
        if (withSlashes === 'all') expect(outer.matchesAnySpelling(slashes)).toBe(true);
        if (withSlashes === 'none') expect(outer.matchesAnySpelling(slashes)).toBe(false);
      }),
      { numRuns: sized(5_000, 20_000) },
    );
  });

  test('matching agrees with an equivalent regular expression', () => {
    fc.assert(
      fc.property(pattern, anyPath, (source, text) => {
        const parts = source
          .slice(1)
          .split('/')
          .map((part) =>
            part === '**'
              ? '(?:/[^/]*)*'
              : part === '*'
                ? '/[^/]+'
                : `/${part.replaceAll('.', '\\.').replaceAll('*', '[^/]*')}`,
          );
        expect(path(source).matches(text)).toBe(new RegExp(`^${parts.join('')}$`).test(text));
      }),
      { numRuns: sized(1_000, 3_000) },
    );
  });
});
