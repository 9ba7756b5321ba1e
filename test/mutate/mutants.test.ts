/** Which faults `npm run mutate` tries. */
import { expect, test } from 'vitest';
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
  ['const c = a.toString();', []],
  ['const c = [a, b];', ['const c = [b];', 'const c = [a];']],
])('%s has these faults', (text, faults) => {
  expect(faulty(text).toSorted()).toEqual(faults.toSorted());
});
