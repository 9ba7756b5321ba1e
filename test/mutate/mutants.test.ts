/** The command `npm run mutate`: which faults it tries, and that it lists those that no test notices. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../world/root.ts';
import { mutantsOf, withMutant } from './mutants.ts';

const faulty = (text: string): string[] => mutantsOf('some.ts', text).map((mutant) => withMutant(text, mutant));

test.each<[text: string, faults: string[]]>([
  ['if (ready(a)) go(a);', ['if (true) go(a);', 'if (false) go(a);']],
  ['if (a === b) return;', ['if (true) return;', 'if (false) return;']],
  ['while (a) b = next();', ['while (false) b = next();', 'while (a) ;']],
  ['const c = a && b;', ['const c = (a);', 'const c = (b);']],
  ['const c = a ?? b;', ['const c = (a);', 'const c = (b);']],
  ['const c = a <= b;', ['const c = a < b;']],
  ['const c = a !== b;', ['const c = a === b;']],
  ['const c = !a;', ['const c = (a);']],
  ['const c = a - 1;', ['const c = a + 1;', 'const c = a - 2;']],
  ['const c = on ? a : b;', ['const c = true ? a : b;', 'const c = false ? a : b;']],
  ['await store(a);', [';']],
  ['throw new Error(a);', [';']],
  ['broker.log.warn(a);', []],
  ['const c: Record<"a", 1> = { a: true as boolean };', ['const c: Record<"a", 1> = { a: false as boolean };']],
  ['const c = list.filter(one);', ['const c = list;']],
  ['const c = list.some(one);', ['const c = list.every(one);']],
  ['const c = [a, b];', ['const c = [b];', 'const c = [a];']],
])('%s has these faults', (text, faults) => {
  expect(faulty(text).toSorted()).toEqual(faults.toSorted());
});

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
