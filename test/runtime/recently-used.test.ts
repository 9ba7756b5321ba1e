import { expect, test } from 'vitest';
import { recentlyUsed } from '../../broker/runtime/recently-used.ts';

test('a cache holds at most its limit of values, and none that were deleted', () => {
  const cache = recentlyUsed<number>(10);
  for (let key = 0; key < 100; key++) cache.set(`${key}`, key);
  const kept = Array.from({ length: 100 }, (_, key) => cache.get(`${key}`)).filter((value) => value !== undefined);
  expect(kept.length).toBeLessThanOrEqual(10);
  expect(kept).toContain(99);
  expect(cache.size).toBe(kept.length);
  cache.set('x', 1);
  cache.delete('x');
  expect(cache.get('x')).toBeUndefined();
});

test('a value in use is not evicted, however many others are added, and is stored once', () => {
  const cache = recentlyUsed<number>(10);
  cache.set('used', 1);
  cache.set('unused', 2);
  for (let key = 0; key < 100; key++) {
    cache.set(`${key}`, key);
    cache.set('used', 1);
    expect(cache.size).toBeLessThanOrEqual(10);
    if (key % 4 === 0) expect(cache.get('used')).toBe(1);
  }
  expect(cache.get('unused')).toBeUndefined();
});

test('a cache holds at most its limit of bytes, and no value larger than half of it', () => {
  const cache = recentlyUsed<string>(1_000, 100);
  const kept = () =>
    Array.from({ length: 200 }, (_, key) => cache.get(`${key}`)).filter((value) => value !== undefined);
  for (let key = 0; key < 200; key++) cache.set(`${key}`, 'x', 7);
  expect(kept().length * 7).toBeLessThanOrEqual(100);
  expect(kept().length * 7).toBeGreaterThanOrEqual(49);
  // A value that is set again counts once.
  for (let time = 0; time < 50; time++) cache.set('same', 'x', 50);
  for (let key = 0; key < 7; key++) cache.set(`${key}`, 'x', 7);
  expect(cache.get('same')).toBe('x');
  cache.set('large', 'x', 51);
  expect(cache.get('large')).toBeUndefined();
  expect(kept().length).toBeGreaterThan(0);
  // A cached value that is replaced by one that is too large is removed.
  cache.set('same', 'y', 51);
  expect(cache.get('same')).toBeUndefined();
});
