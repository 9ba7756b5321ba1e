/** Writes what a broker sends into a file. */
import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { CommandFailed } from './failure.ts';

/** The file has its content when that is whole; only its owner may read it. Throws CommandFailed when the answer breaks off. */
export async function saveDownload(pieces: AsyncIterable<Uint8Array>, path: string): Promise<void> {
  const part = `${path}.part`;
  try {
    // Of a save that broke off, with rights or a target of its own.
    await rm(part, { force: true });
    await pipeline(pieces, createWriteStream(part, { flags: 'wx', mode: 0o600 }));
    await rename(part, path);
  } catch (error) {
    await rm(part, { force: true }).catch(() => {});
    throw new CommandFailed(`The export is not whole: ${(error as Error).message}.`);
  }
}
