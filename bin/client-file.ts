/** Reads and writes a client's configuration, of which nothing is lost: not a byte, a link, a right, or another program's change. */
import { readFileSync, statSync } from 'node:fs';
import type { Edited } from './edit-config.ts';
import { CommandFailed } from './failure.ts';
import { replaceFile, tryReplacing } from './replace-file.ts';

/** Some clients keep what they remember in the same file. */
const LARGEST_BYTES = 64 * 1024 * 1024;

/** Empty where there is none. Throws CommandFailed where it cannot be read as it is. */
export function readClientFile(path: string): string {
  const kept = (why: string) => new CommandFailed(`${path} ${why}, so nothing was changed.`);
  let bytes: Buffer;
  try {
    const found = statSync(path, { throwIfNoEntry: false });
    if (!found) return '';
    // To read a pipe would wait for ever.
    if (!found.isFile()) throw kept('is no file');
    if (found.size > LARGEST_BYTES) throw kept(`has more than ${LARGEST_BYTES / 1024 / 1024} MiB`);
    bytes = readFileSync(path);
  } catch (error) {
    if (error instanceof CommandFailed) throw error;
    throw kept(`cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw kept('is not UTF-8');
  }
}

/** Throws CommandFailed where `writeClientFile` could not write it, or where its user made it read-only. Nothing is changed. */
export function refuseUnwritable(path: string): void {
  let mode: number | undefined;
  try {
    ({ mode } = tryReplacing(path));
  } catch (error) {
    throw unwritable(path, error);
  }
  if (mode !== undefined)
    throw new CommandFailed(
      `${path} is read-only (mode 0${mode.toString(8)}), and was left as it is: make it writable, and try again.`,
    );
}

/** `before`: what was read. Throws CommandFailed, also where it is read-only, or says something else by now. */
export function writeClientFile(path: string, { text, change }: Edited, before: string): void {
  if (change === 'none') return;
  if (readClientFile(path) !== before)
    throw new CommandFailed(`${path} was changed concurrently by another program: try again.`);
  refuseUnwritable(path);
  try {
    replaceFile(path, text);
  } catch (error) {
    throw unwritable(path, error);
  }
}

const unwritable = (path: string, error: unknown): CommandFailed =>
  new CommandFailed(`${path} cannot be written (${(error as NodeJS.ErrnoException).code}).`);
