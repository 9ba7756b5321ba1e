/** The command `npm run mutate` as a whole, on one line of a file. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { longFiles } from '../long-files.ts';
import { ROOT } from '../world/root.ts';

test('lists the faults that the given tests do not notice, also tests that take long, and changes nothing in the checkout', async () => {
  const name = 'broker/approvals/passkeys/counter.ts';
  const tests = 'test/approvals/passkeys.counter.test.ts';
  expect(longFiles()).toContain(tests);
  const text = readFileSync(join(ROOT, name), 'utf8');
  // With `true` no passkey is reported as cloned; in these tests an assertion that is refused is always of a cloned one.
  const line =
    1 + text.split('\n').findIndex((one) => one.includes('if (recorded instanceof RolledBack) return false'));
  const words = [name, '--tests', tests, '--lines', `${line}-${line}`];
  const { code, shown } = await new Promise<{ code: unknown; shown: string }>((done) => {
    const program = join(ROOT, 'test/mutate/mutate.ts');
    const env = { ...process.env, TEST_STORE: 'sqlite' };
    execFile(process.execPath, [program, ...words], { env }, (error, stdout, stderr) =>
      done({ code: error?.code ?? 0, shown: stdout + stderr }),
    );
  });
  const unnoticed = ['recorded instanceof RolledBack  →  false', 'false  →  true'];
  expect(shown).toBe(
    [
      ...unnoticed.map((fault) => `${name}:${line}  ${fault}`),
      '3 faults: 1 noticed, 2 not noticed, 0 not tried.',
      '',
    ].join('\n'),
  );
  expect(code).toBe(1);
  expect(readFileSync(join(ROOT, name), 'utf8')).toBe(text);
}, 300_000);
