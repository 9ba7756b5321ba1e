import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { countPassedBuffer, MOST_FOR_NEW_OBJECTS } from '../../broker/runtime/collect-garbage.ts';

const BUFFER = 64 * 1024;
const MIB = 1024 * 1024;

test('buffers that were passed on do not gather', () => {
  const before = process.memoryUsage().arrayBuffers;
  let most = 0;
  for (let passed = 0; passed < 500 * MIB; passed += BUFFER) {
    const buffer = Buffer.allocUnsafeSlow(BUFFER);
    countPassedBuffer(buffer.length);
    most = Math.max(most, process.memoryUsage().arrayBuffers - before);
  }
  expect(most).toBeLessThan(48 * MIB);
});

test('the memory for new objects grows to its limit and no further', async () => {
  const program = join(import.meta.dirname, 'new-objects.fixture.ts');
  const mostOf = async (how: string) => Number((await promisify(execFile)(process.execPath, [program, how])).stdout);
  expect(await mostOf('unlimited')).toBeGreaterThan(MOST_FOR_NEW_OBJECTS);
  const limited = await mostOf('limited');
  // Objects of a page of their own come on top.
  expect(limited).toBeGreaterThanOrEqual(MOST_FOR_NEW_OBJECTS);
  expect(limited).toBeLessThan(MOST_FOR_NEW_OBJECTS * 1.1);
}, 20_000);
