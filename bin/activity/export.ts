/** What is on record as a file: all rows that fit, read as they come, however many. */
import { createWriteStream } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import type { ConnectionOptions } from '../connection.ts';
import { CommandFailed } from '../failure.ts';
import { openOwnerApi } from '../owner-api.ts';
import { filterOf } from './activity.ts';
import { queryOf, type RowFilter } from './read-rows.ts';

export type ExportOptions = ConnectionOptions & RowFilter & { format: 'jsonl' | 'csv'; output?: string };

/** A file has its name when it is whole. Throws CommandFailed for a terminal, and when the answer breaks off. */
export async function exportActivity(options: ExportOptions): Promise<void> {
  // It is written as it is on record: words of agents could act on a terminal.
  if (options.output === undefined && process.stdout.isTTY)
    throw new CommandFailed('An export is for a file or another program: add --output <file>, or a pipe.');
  const api = await openOwnerApi(options);
  const query = queryOf(await filterOf(api, options));
  query.set('format', options.format);
  const pieces = await api.broker.download(`/owner/audit/export?${query}`);
  const { output } = options;
  const part = output === undefined ? undefined : `${output}.part`;
  try {
    if (part === undefined || output === undefined) {
      await pipeline(pieces, process.stdout, { end: false });
      return;
    }
    // Only for its owner: rows hold the words of agents.
    await pipeline(pieces, createWriteStream(part, { mode: 0o600 }));
    await rename(part, output);
  } catch (error) {
    // Whoever reads may end first, as `head` does.
    if ((error as NodeJS.ErrnoException).code === 'EPIPE') return;
    if (part !== undefined) await rm(part, { force: true }).catch(() => {});
    throw new CommandFailed(`The export is not whole: ${(error as Error).message}.`);
  }
}
