import { expect, test } from 'vitest';
import { countPassedBuffer } from '../../broker/runtime/collect-garbage.ts';

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
