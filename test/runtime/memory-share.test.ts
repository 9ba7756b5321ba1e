import { expect, test } from 'vitest';
import { budgetOf } from '../../broker/egress/budget-limits.ts';
import { memoryShare, shareOf } from '../../broker/runtime/memory-share.ts';

const MIB = 1024 * 1024;
/** What Node reports without a limit of the container. */
const UNLIMITED = 2 ** 64;

test.each([
  ['no container', UNLIMITED, 4_288 * MIB, 1],
  ['a platform that reports nothing', 0, 4_288 * MIB, 1],
  ['a container of 1 GiB', 1024 * MIB, 518 * MIB, 1],
  ['a container of 512 MiB', 512 * MIB, 259 * MIB, 0.5],
  ['a small heap', UNLIMITED, 192 * MIB, 0.375],
  ['less than the limits need', 128 * MIB, 64 * MIB, 0.25],
])('the limits of memory are smaller where the process has little: %s', (_what, constrained, heap, share) => {
  expect(memoryShare(constrained, heap)).toBe(share);
});

test('limits of bytes are divided, limits of calls are not', () => {
  expect(shareOf({ all: 64 * MIB, reserve: 16 * MIB, little: 16 * MIB }, 0.5)).toEqual({
    all: 32 * MIB,
    reserve: 8 * MIB,
    little: 8 * MIB,
  });
  expect(budgetOf(1, 0.5)).toEqual({
    family: { calls: 16, bytes: 16 * MIB },
    all: { calls: 256, bytes: 64 * MIB },
    reserve: { calls: 64, bytes: 16 * MIB },
  });
});
