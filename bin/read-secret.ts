/** Reads a secret from standard input, an environment variable, or a terminal; never from command-line arguments. */
import { buffer } from 'node:stream/consumers';
import { CommandFailed, WrongUsage } from './failure.ts';
import { textOfBytes } from './read-text.ts';
import { askSecret, canAsk } from './terminal/prompt.ts';

/** `stdin`: read standard input to its end. `env`: the name of a variable. */
export type SecretFrom = { stdin?: boolean | undefined; env?: string | undefined };

/**
 * Returns the secret, without the newline at its end. `what`: such as "the token". `flags`: how to give it without a terminal. `made`: where or with
 * what a person creates it, shown at the prompt.
 *
 * @throws WrongUsage when the options name no source and there is no terminal; CommandFailed when the secret is empty
 */
export async function readSecret(
  { stdin, env }: SecretFrom,
  what: string,
  flags: string,
  made?: string,
): Promise<string> {
  if (stdin && env !== undefined) throw new WrongUsage(`Give ${what} in one way: ${flags}.`);
  if (env !== undefined) {
    const value = process.env[env];
    if (!value) throw new CommandFailed(`The variable ${env}, where ${what} should be, is not set or empty.`);
    return value;
  }
  if (stdin && !process.stdin.isTTY) {
    const called = `Standard input, where ${what} should be,`;
    const piped = textOfBytes(await buffer(process.stdin), called).replace(/\r?\n$/, '');
    if (piped === '') throw new CommandFailed(`${called} is empty.`);
    return piped;
  }
  if (!canAsk())
    throw new WrongUsage(`Say where ${what} is: ${flags}. It is never accepted as an argument of the command itself.`);
  const hint = made === undefined ? '' : `Make ${what} ${made}\n`;
  return await askSecret(`${hint}Paste ${what} (it is not shown): `);
}
