/** The command `npm run mutate` as a whole, on one line of a file. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../world/root.ts';

test('lists a fault that the given tests do not notice, and changes nothing in the checkout', async () => {
  const name = 'broker/policy/halt.ts';
  const text = readFileSync(join(ROOT, name), 'utf8');
  // Where `true` ignores all breakers, and `false` counts those of platforms, which these tests do not have.
  const line = 1 + text.split('\n').findIndex((one) => one.includes('if (breaker.platformId !== undefined)'));
  const words = [name, '--tests', 'test/policy/halt.test.ts', '--lines', `${line}-${line}`];
  const { code, shown } = await new Promise<{ code: unknown; shown: string }>((done) => {
    const program = join(ROOT, 'test/mutate/mutate.ts');
    execFile(process.execPath, [program, ...words], (error, stdout, stderr) =>
      done({ code: error?.code ?? 0, shown: stdout + stderr }),
    );
  });
  expect(shown).toBe(
    `${name}:${line}  breaker.platformId !== undefined  →  false\n2 faults: 1 noticed, 1 not noticed, 0 not tried.\n`,
  );
  expect(code).toBe(1);
  expect(readFileSync(join(ROOT, name), 'utf8')).toBe(text);
}, 300_000);
