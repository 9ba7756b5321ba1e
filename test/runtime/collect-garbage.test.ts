import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { countPassedBuffer, MAX_YOUNG_GENERATION_BYTES } from '../../broker/runtime/collect-garbage.ts';

const BUFFER = 64 * 1024;
const MIB = 1024 * 1024;

test('buffers that were passed on are freed', () => {
  const before = process.memoryUsage().arrayBuffers;
  let most = 0;
  for (let passed = 0; passed < 500 * MIB; passed += BUFFER) {
    const buffer = Buffer.allocUnsafeSlow(BUFFER);
    countPassedBuffer(buffer.length);
    most = Math.max(most, process.memoryUsage().arrayBuffers - before);
  }
  expect(most).toBeLessThan(48 * MIB);
});

/** Runs a program that measures memory, and returns its number. */
async function measuredBy(fixture: string, how: string): Promise<number> {
  return Number((await promisify(execFile)(process.execPath, [join(import.meta.dirname, fixture), how])).stdout);
}

test('the heap grows by half between two full collections, not by much more', async () => {
  const unlimited = await measuredBy('heap-growth.fixture.ts', 'unlimited');
  expect(await measuredBy('heap-growth.fixture.ts', 'limited')).toBeLessThan(0.7 * unlimited);
}, 180_000);

test('the young generation grows to its limit only', async () => {
  expect(await measuredBy('young-generation.fixture.ts', 'unlimited')).toBeGreaterThan(MAX_YOUNG_GENERATION_BYTES);
  const limited = await measuredBy('young-generation.fixture.ts', 'limited');
  // Page headers are not counted, and large objects with their own page come on top: 15 % at most in many runs.
  expect(limited).toBeGreaterThan(MAX_YOUNG_GENERATION_BYTES * 0.9);
  expect(limited).toBeLessThan(MAX_YOUNG_GENERATION_BYTES * 1.25);
}, 180_000);
