import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { isUnverified, libpqUrl, readPostgresUrl } from '../../broker/store/postgres/url.ts';
import { newFolder } from '../world/stores.ts';

const AT = 'postgres://u:p%40@db.example:5432/b';
const ca = join(newFolder(), 'ca.pem');
writeFileSync(ca, '');
const CA = `sslrootcert=${encodeURIComponent(ca)}`;

describe('the URL of PostgreSQL', () => {
  test.each([
    ['', ''],
    ['?application_name=a%20b', '?application_name=a%20b'],
    ['?sslmode=disable', '?sslmode=disable'],
    ['?sslmode=no-verify', '?sslmode=no-verify'],
    ['?sslmode=require', '?sslmode=verify-full'],
    ['?sslmode=prefer&options=-c%20a', '?options=-c%20a&sslmode=verify-full'],
    [`?sslmode=verify-ca&${CA}`, `?${CA}&sslmode=verify-full`],
    [`?${CA}`, `?${CA}&sslmode=verify-full`],
    ['?sslmode=verify-full&sslrootcert=system', '?sslmode=verify-full'],
    ['?ssl=true', '?sslmode=verify-full'],
    ['?ssl=0', '?sslmode=disable'],
    ['?uselibpqcompat=true&sslmode=require', '?sslmode=no-verify'],
    [`?uselibpqcompat=true&sslmode=require&${CA}`, `?${CA}&sslmode=verify-full`],
    ['?uselibpqcompat=true&sslmode=verify-full', '?sslmode=verify-full'],
  ])('%s is read as %s', (written, read) => {
    expect(readPostgresUrl(AT + written)).toBe(AT + read);
  });

  test.each([
    ['postgres://[', 'is not an address; write postgres://user@host:5432/database'],
    [
      `${AT}?sslmode=constructor`,
      'its sslmode has to be one of disable, no-verify, prefer, require, verify-ca, verify-full',
    ],
    [`${AT}?sslrootcert=/no/ca.pem`, 'the file of its sslrootcert, /no/ca.pem, cannot be read (ENOENT)'],
    [`${AT}?sslkey=/no/key`, 'the file of its sslkey, /no/key, cannot be read (ENOENT)'],
  ])('%s is refused', (written, why) => {
    expect(() => readPostgresUrl(written)).toThrow(new Error(why));
  });

  test('is translated to libpq’s parameters, without the password', () => {
    const of = (query: string) => libpqUrl(AT + query, () => '/roots');
    const without = 'postgres://u@db.example:5432/b';
    expect(of('')).toEqual({ url: without, password: 'p@' });
    expect(of('?password=q%20%2B&application_name=a')).toEqual({
      url: `${without}?application_name=a`,
      password: 'q +',
    });
    expect(of('?sslmode=no-verify').url).toBe(`${without}?sslmode=require`);
    expect(of('?sslmode=verify-full').url).toBe(`${without}?sslmode=verify-full&sslrootcert=%2Froots`);
    expect(of(`?${CA}&sslmode=verify-full`).url).toBe(`${without}?${CA}&sslmode=verify-full`);
    // Parsed as `pg` does, so that a broker that runs with such a URL can be backed up.
    for (const [written, password] of [
      ['100%', '100%'],
      ['a%zz', 'a%zz'],
      ['%20%', ' %'],
    ]) {
      const url = `postgres://u:${written}@db.example:5432/b`;
      expect(libpqUrl(url, () => '/roots')).toEqual({ url: without, password });
      expect(new pg.Client(url).password).toBe(password);
    }
    expect([isUnverified(AT), isUnverified(`${AT}?sslmode=no-verify`)]).toEqual([false, true]);
  });
});
