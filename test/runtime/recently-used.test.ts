import { expect, test } from 'vitest';
import { recentlyUsed } from '../../broker/runtime/recently-used.ts';

test('a cache holds no more than it may, and nothing that was deleted', () => {
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

test('a value that is used stays, however many others come, and is kept once', () => {
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
