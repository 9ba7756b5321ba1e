/** `agent-broker activity export`: streams all matching audit rows into a file, however many. */
import { pipeline } from 'node:stream/promises';
import { missingFolder } from '../../broker/runtime/missing-folder.ts';
import type { ConnectionOptions } from '../connection.ts';
import { CommandFailed } from '../failure.ts';
import { openOwnerApi } from '../owner-api.ts';
import { saveDownload } from '../save-download.ts';
import { filterOf } from './activity.ts';
import { queryOf, type RowFilter } from './read-rows.ts';

export type ExportOptions = ConnectionOptions & RowFilter & { format: 'jsonl' | 'csv'; output?: string };

/** Writes the export. The file gets its name only when it is complete. Throws CommandFailed for a terminal, and when the download breaks off. */
export async function exportActivity(options: ExportOptions): Promise<void> {
  const output = options.output === '-' ? undefined : options.output;
  // An export is written unescaped, and texts of agents could contain control sequences for a terminal.
  if (output === undefined && process.stdout.isTTY)
    throw new CommandFailed('An export is for a file or another program: add --output <file>, or a pipe.');
  const missing = output === undefined ? undefined : missingFolder(output);
  if (missing !== undefined) throw new CommandFailed(missing);
  const api = await openOwnerApi(options);
  const query = queryOf(await filterOf(api, options));
  query.set('format', options.format);
  const pieces = await api.broker.download(`/owner/audit/export?${query}`);
  // Rows contain texts of agents, so only the file's owner may read it.
  if (output !== undefined) return await saveDownload(pieces, output);
  try {
    await pipeline(pieces, process.stdout, { end: false });
  } catch (error) {
    // The reader of the output may end first, as `head` does.
    if ((error as NodeJS.ErrnoException).code === 'EPIPE') return;
    throw new CommandFailed(`The export is incomplete: ${(error as Error).message}.`);
  }
}
