/** Reads and writes a client's configuration file without losing bytes, links, permissions or concurrent changes of other programs. */
import { readFileSync, statSync } from 'node:fs';
import { CommandFailed } from '../failure.ts';
import { replaceFile, tryReplacing } from '../replace-file.ts';
import type { Edited } from './edit-config.ts';

/** Large, because some clients keep their history in the same file. */
const LARGEST_BYTES = 64 * 1024 * 1024;

/** Returns the text; empty when the file does not exist. Throws CommandFailed when the file cannot be read unchanged. */
export function readClientFile(path: string): string {
  const kept = (why: string) => new CommandFailed(`${path} ${why}, so nothing was changed.`);
  let bytes: Buffer;
  try {
    const found = statSync(path, { throwIfNoEntry: false });
    if (!found) return '';
    // Reading a pipe would block forever.
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

/** Throws CommandFailed where `writeClientFile` could not write the file, or where its user made it read-only. Changes nothing. */
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

/** Writes the edited text. `before`: the text that was read. Throws CommandFailed, also when the file is read-only, or was changed since. */
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
