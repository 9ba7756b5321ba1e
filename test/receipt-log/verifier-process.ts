/** Runs the log verifier in a process of its own, in a folder with only its own sources, and with an empty environment. */
import { spawn } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { ROOT } from '../world/root.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { newFolder } from '../world/stores.ts';

const STATIC = join(ROOT, 'broker', 'console', 'static');

/** A change of the verifier's source. `find` must occur exactly once. */
export type Mutation = { file: string; find: string; put: string };
/** Input of a verifier, besides its variant. */
export type Given = {
  lines: readonly string[];
  keys: string;
  checkpoints: readonly string[];
  receiptKeys?: readonly object[];
  first?: number;
};
/** `thrown`: an exception with its stack, if there was one. */
export type Said = {
  ok: boolean;
  problems: { kind: string; first?: number; last?: number; detail: string }[];
  thrown?: string;
};

export type VerifierProcess = { ask(given: Given, variant?: string): Promise<Said> };

/** Starts the process. `mutations`: by the name of a variant; `whole` is the unchanged verifier. */
export function startVerifier(mutations: Readonly<Record<string, Mutation>> = {}): VerifierProcess {
  const folder = newFolder();
  const copy = (variant: string) => {
    const to = join(folder, 'variants', variant);
    for (const room of ['verify', 'receipt']) cpSync(join(STATIC, room), join(to, room), { recursive: true });
    return to;
  };
  copy('whole');
  for (const [variant, { file, find, put }] of Object.entries(mutations)) {
    const path = join(copy(variant), file);
    const parts = readFileSync(path, 'utf8').split(find);
    if (parts.length !== 2) throw new Error(`${variant}: "${find}" stands ${parts.length - 1} times in ${file}`);
    writeFileSync(path, parts.join(put));
  }
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  cpSync(join(import.meta.dirname, 'verifier-program.ts'), join(folder, 'verifier-program.ts'));
  const child = spawn(process.execPath, ['verifier-program.ts'], {
    cwd: folder,
    env: {},
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  afterFile(async () => {
    child.stdin.end();
    await ended;
  });
  const said = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  let before: Promise<unknown> = Promise.resolve();
  return {
    ask: ({ lines, ...by }, variant = 'whole') => {
      child.stdin.write(`${JSON.stringify({ variant, ...by })}\n${lines.join('\n')}\n\n`);
      const answer = before.then(async () => {
        const { value, done } = await said.next();
        if (done) throw new Error('the verifier ended');
        return JSON.parse(value) as Said;
      });
      before = answer.catch(() => {});
      return answer;
    },
  };
}
