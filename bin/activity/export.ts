/** What is on record as a file: all rows that fit, read as they come, however many. */
import { pipeline } from 'node:stream/promises';
import type { ConnectionOptions } from '../connection.ts';
import { CommandFailed } from '../failure.ts';
import { openOwnerApi } from '../owner-api.ts';
import { saveDownload } from '../save-download.ts';
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
  // Rows hold the words of agents.
  if (options.output !== undefined) return await saveDownload(pieces, options.output);
  try {
    await pipeline(pieces, process.stdout, { end: false });
  } catch (error) {
    // Whoever reads may end first, as `head` does.
    if ((error as NodeJS.ErrnoException).code === 'EPIPE') return;
    throw new CommandFailed(`The export is not whole: ${(error as Error).message}.`);
  }
}
