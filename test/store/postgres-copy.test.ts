import { expect, test } from 'vitest';
import { copyText } from '../../broker/store/postgres/copy.ts';

test('rows are lines, values are separated by tabs, and missing values are null', () => {
  const rows = [
    ['a', 1, null, undefined],
    ['', 1_795_216_571_607, 0, 'é'],
  ];
  expect(copyText(rows)).toBe('a\t1\t\\N\t\\N\n\t1795216571607\t0\té\n');
  expect(copyText([])).toBe('');
});

test('texts are escaped, so that none reads as a null, a separator or the end', () => {
  expect(copyText([['\\N', 'a\tb', 'a\nb\rc', '\\.', '{"a":"\\u0000"}']])).toBe(
    '\\\\N\ta\\tb\ta\\nb\\rc\t\\\\.\t{"a":"\\\\u0000"}\n',
  );
});
