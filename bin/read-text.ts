/** Reads texts that people wrote, none with replacement characters for bytes that are no text. */
import { readFileSync } from 'node:fs';
import { textIn } from '../broker/console/static/utf8.js';
import { CommandFailed } from './failure.ts';

/**
 * What a file says, or standard input (0), without a byte order mark. `called`: what errors begin with.
 *
 * @throws CommandFailed when it cannot be read, or is not in UTF-8
 */
export function readText(file: string | 0, called: string): string {
  let bytes: Uint8Array<ArrayBuffer>;
  try {
    bytes = readFileSync(file);
  } catch {
    throw new CommandFailed(`${called} cannot be read.`);
  }
  return textOfBytes(bytes, called);
}

/** The same of bytes that were read already. */
export function textOfBytes(bytes: Uint8Array<ArrayBuffer>, called: string): string {
  try {
    return textIn(bytes);
  } catch (error) {
    throw new CommandFailed(`${called} ${(error as Error).message}`);
  }
}
