import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { foldName, isListed, nameList, parameterNames } from '../../broker/policy/names.ts';

describe('names are compared in one form', () => {
  test.each([
    ['X-Api-Key', 'X_API_KEY', 'x.api key', ' x-api-key', 'xApiKey', 'Ｘ-Api-Ｋey', 'x‐api‐key', 'X[Api]Key'],
    ['_method', '.method', '-Method', '[_method]', ' _method', '＿method', '$method'],
    ['emailAddress', 'email_address', 'EMAIL-ADDRESS', 'ｅmail.address', 'email address '],
  ])('%j and its spellings', (...names) => {
    expect([...new Set(names.map(foldName))]).toHaveLength(1);
  });

  test.each([
    ['_method', 'method'],
    ['_id', 'id'],
    ['to', 'too'],
    ['naïve', 'naive'],
    ['x-a', 'x-b'],
  ])('%s is not %s', (a, b) => {
    expect(foldName(a)).not.toBe(foldName(b));
  });

  test('a folded name folds to itself', () => {
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
  ])('the parameter %j may be %j', (name, names) => {
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
  ])('has %j', (name) => {
    expect(isListed(list, name)).toBe(true);
  });

  test.each(['', 'sudoer', 'a[sudo]', '_sudo', 'userProject', 'x-am', 'ax-amz-acl'])('has not %j', (name) => {
    expect(isListed(list, name)).toBe(false);
  });

  test('without names is none', () => {
    expect(nameList([])).toBeUndefined();
  });
});
