import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { foldName, isListed, nameList, parameterNames } from '../../broker/policy/names.ts';

describe('names are compared in folded form', () => {
  test.each([
    ['X-Api-Key', 'X_API_KEY', 'x.api key', ' x-api-key', 'xApiKey', 'Ｘ-Api-Ｋey', 'x‐api‐key', 'X[Api]Key'],
    ['_method', '.method', '-Method', '[_method]', ' _method', '＿method', '$method'],
    ['emailAddress', 'email_address', 'EMAIL-ADDRESS', 'ｅmail.address', 'email address '],
  ])('%j and its spellings fold to the same name', (...names) => {
    expect([...new Set(names.map(foldName))]).toHaveLength(1);
  });

  test.each([
    ['_method', 'method'],
    ['_id', 'id'],
    ['to', 'too'],
    ['naïve', 'naive'],
    ['x-a', 'x-b'],
  ])('%s and %s fold to different names', (a, b) => {
    expect(foldName(a)).not.toBe(foldName(b));
  });

  test('folding is idempotent', () => {
    fc.assert(
      fc.property(fc.string(), (name) => {
        expect(foldName(foldName(name))).toBe(foldName(name));
      }),
    );
  });

  test.each([
    ['to', ['to']],
    ['to[]', ['to']],
    ['auth[access][token]', ['auth']],
    ['[to]', ['to', '_to']],
    ['access[token', ['access', 'accesstoken']],
    ['to]', ['to', 'to']],
    ['', ['']],
    ['[]', ['', '_']],
    ['to\0x', ['tox', 'to']],
  ])('servers may read the parameter %j as %j', (name, names) => {
    expect(parameterNames(name)).toEqual(names);
  });
});

describe('a list of names', () => {
  const list = nameList(['sudo', '$userProject', 'x-amz-*'])!;

  test.each([
    'sudo',
    'SUDO',
    's-u_d.o',
    'sudo[]',
    'sudo[a][b]',
    '[sudo]',
    'sudo\0x',
    'ｓudo',
    '.user_project',
    'X-Amz-Tagging',
  ])('contains %j', (name) => {
    expect(isListed(list, name)).toBe(true);
  });

  test.each(['', 'sudoer', 'a[sudo]', '_sudo', 'userProject', 'x-am', 'ax-amz-acl'])('has not %j', (name) => {
    expect(isListed(list, name)).toBe(false);
  });

  test('is undefined when it is empty', () => {
    expect(nameList([])).toBeUndefined();
  });
});
