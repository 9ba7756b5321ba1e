/** Questions to the person at the terminal. They go to standard error: standard output is for results. */
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { CommandFailed } from '../failure.ts';

/** Whether there is a terminal to ask at. */
export const canAsk = (): boolean => process.stdin.isTTY === true && process.stderr.isTTY === true;

/**
 * Reads one line, trimmed; undefined at the end of input (Ctrl-D), and when `stop` is aborted. The terminal itself
 * edits the line, so that Ctrl-C ends the program as always. `question`: a literal text of this program.
 */
export function askLine(question: string, stop?: AbortSignal): Promise<string | undefined> {
  const streams = { input: process.stdin, output: process.stderr };
  const asking = createInterface({ ...streams, terminal: false, ...(stop && { signal: stop }) });
  return new Promise((answered) => {
    asking.question(question, (text) => {
      answered(text.trim());
      asking.close();
    });
    asking.once('close', () => answered(undefined));
  });
}

/** Reads one line; `fallback` where the line is empty. Throws CommandFailed when the input ends. */
export async function ask(question: string, fallback = ''): Promise<string> {
  const answer = await askLine(question);
  if (answer === undefined) throw new CommandFailed('There was no answer, so nothing was done.');
  return answer === '' ? fallback : answer;
}

/** Long enough for the terminal to deliver lines that it holds. */
const HELD_MS = 50;

/** Reads and drops the lines that were typed at the terminal before a question, such as a second "y" while an earlier call was still being made. */
async function dropTyped(): Promise<void> {
  if (!process.stdin.isTTY) return;
  const drop = (): void => {};
  process.stdin.on('data', drop);
  await pause(HELD_MS);
  process.stdin.off('data', drop);
  process.stdin.pause();
}

/**
 * Asks for a confirmation: only "y" and "yes" confirm, typed after the question appeared, because it is about what was shown before it. `question`: a
 * literal text of this program.
 */
export async function confirm(question: string): Promise<boolean> {
  await dropTyped();
  return /^y(es)?$/i.test((await askLine(`${question} [y/N] `)) ?? '');
}

export type Choice<Value> = { value: Value; text: string };

/** Asks for one of the choices by number; an empty answer selects the first. Repeats the question after an invalid answer. */
export async function choose<Value>(question: string, choices: readonly Choice<Value>[]): Promise<Value> {
  const lines = choices.map(({ text }, i) => `  ${i + 1}  ${text}\n`).join('');
  process.stderr.write(`${question}\n${lines}`);
  for (;;) {
    const answer = await ask(`1 to ${choices.length} [1]: `, '1');
    const chosen = /^\d{1,3}$/.test(answer) ? choices[Number(answer) - 1] : undefined;
    if (chosen) return chosen.value;
  }
}

/** Reads one line without echo, from a terminal. Throws CommandFailed when it is interrupted or empty. */
export async function askSecret(question: string): Promise<string> {
  const { stdin, stderr } = process;
  // Raw mode: the terminal echoes nothing, and nothing gets into the shell's history. Set before the question is printed, because an answer may arrive
  // immediately.
  stdin.setRawMode(true);
  stderr.write(question);
  stdin.setEncoding('utf8');
  stdin.resume();
  try {
    return await new Promise<string>((resolve, reject) => {
      let typed = '';
      stdin.on('data', function take(chunk: string) {
        for (const char of chunk) {
          if (char === '\r' || char === '\n') {
            stdin.off('data', take);
            if (typed === '') reject(new CommandFailed('Nothing was pasted, so nothing was done.'));
            else resolve(typed);
            return;
          }
          if (char === '\u0003' || char === '\u0004') {
            stdin.off('data', take);
            reject(new CommandFailed('Stopped: nothing was done.'));
            return;
          }
          if (char === '\u007f' || char === '\b') typed = typed.slice(0, -1);
          else if (char >= ' ') typed += char;
        }
      });
    });
  } finally {
    stdin.setRawMode(false);
    stdin.pause();
    stderr.write('\n');
  }
}
