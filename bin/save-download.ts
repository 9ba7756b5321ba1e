/** Writes a download from the broker to a file. */
import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { CommandFailed } from './failure.ts';

/**
 * Writes the pieces, and moves the file into place when it is complete; only its owner may read it. Throws CommandFailed when the download breaks off.
 */
export async function saveDownload(pieces: AsyncIterable<Uint8Array>, path: string): Promise<void> {
  const part = `${path}.part`;
  try {
    // Removes the part of an interrupted download, which may have other permissions or be a link.
    await rm(part, { force: true });
    await pipeline(pieces, createWriteStream(part, { flags: 'wx', mode: 0o600 }));
    await rename(part, path);
  } catch (error) {
    await rm(part, { force: true }).catch(() => {});
    throw new CommandFailed(`The export is incomplete: ${(error as Error).message}.`);
  }
}
