/** A disk that breaks, is slow or hangs: sync calls of a process fail, take a tenth of a second or never return, while a test wants that. */
import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { newFolder } from './stores.ts';

export type FailingSync = {
  /** Environment variables for the process. */
  environment: Record<string, string>;
  fail(): void;
  repair(): void;
};

/** Undefined where there is no compiler, or no Linux. CI must have both. */
export function failingSync(how: 'broken' | 'slow' | { hangsBelow: string } = 'broken'): FailingSync | undefined {
  if (process.platform !== 'linux') return undefined;
  const folder = newFolder();
  const library = join(folder, 'failing-sync.so');
  const switchFile = join(folder, 'fails');
  try {
    const source = fileURLToPath(new URL('failing-sync.c', import.meta.url));
    execFileSync('cc', ['-shared', '-fPIC', '-nostdlib', '-o', library, source], { stdio: 'pipe' });
  } catch (error) {
    if (process.env.CI) throw error;
    return undefined;
  }
  return {
    environment: {
      LD_PRELOAD: library,
      FAILING_SYNC: switchFile,
      ...(how === 'slow' && { SLOW_SYNC: '1' }),
      ...(typeof how === 'object' && { HANGING_SYNC: how.hangsBelow }),
    },
    fail: () => writeFileSync(switchFile, ''),
    repair: () => rmSync(switchFile),
  };
}
