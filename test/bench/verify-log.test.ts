import { describe, expect, test, vi } from 'vitest';
import { benchVerify, readVerifyOptions } from '../../bench/verify-log.ts';

describe('npm run bench -- verify', () => {
  test('defaults to a million rows', () => {
    expect(readVerifyOptions([])).toEqual({ rows: 1_000_000 });
    expect(readVerifyOptions(['--rows', '20'])).toEqual({ rows: 20 });
    expect(() => readVerifyOptions(['--rows', '0'])).toThrow(/--rows: must be a whole number from 1/);
  });

  test('creates exports that verify, including their receipts', async () => {
    const said: unknown[] = [];
    const out = vi.spyOn(process.stdout, 'write').mockImplementation((text) => said.push(text) > 0);
    try {
      expect(await benchVerify({ rows: 3_000 })).toBe(0);
    } finally {
      out.mockRestore();
    }
    expect(said.join('')).toMatch(/^300 rows, .*MB:\n.*\n.*\n3000 rows, /);
  }, 180_000);
});
