/** Reads texts that people wrote, and refuses invalid UTF-8 instead of replacing bytes. */
import { readFileSync } from 'node:fs';
import { textIn } from '../broker/console/static/utf8.js';
import { CommandFailed } from './failure.ts';

/**
 * Returns the text of a file, or of standard input (0), without a byte order mark. `called`: the start of error messages.
 *
 * @throws CommandFailed when the text cannot be read, or is not in UTF-8
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

/** Decodes bytes in the same way. */
export function textOfBytes(bytes: Uint8Array<ArrayBuffer>, called: string): string {
  try {
    return textIn(bytes);
  } catch (error) {
    throw new CommandFailed(`${called} ${(error as Error).message}`);
  }
}
