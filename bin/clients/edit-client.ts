/** Edits the entry of one server in a client's configuration, in the format of that client's file. */

import { SERVER_NAME } from '../server-entry.ts';
import { type ClientId, clientNamed } from './clients.ts';
import { changedLines, type Edited, editEntry } from './edit-config.ts';

/** The members that Continue itself writes to a new file, without its default models. */
const EMPTY_CONTINUE = { name: 'Local Config', version: '1.0.0', schema: 'v1', models: [] };

/** Sets the entry, or removes it when `entry` is undefined. Throws CommandFailed, naming `path`, when the text cannot be changed. */
export async function editClient(
  client: ClientId,
  text: string,
  entry: object | undefined,
  path: string,
): Promise<Edited> {
  const { format, member } = clientNamed(client);
  const place = [member, SERVER_NAME] as const;
  if (format === 'json') return editEntry(text, place, entry, path);
  const table = entry && { ...entry };
  if (format === 'toml') return (await import('./edit-toml.ts')).editToml(text, place, table, path);
  return (await import('./edit-yaml.ts')).editYaml(text, place, table, { path, empty: EMPTY_CONTINUE });
}

/** Returns the text of a new client file that contains only this entry. */
export const entryText = async (client: ClientId, entry: object): Promise<string> =>
  (await editClient(client, '', entry, 'a new file')).text.trimEnd();

/** Returns the changed lines of the entry, for a person. The rest of the file may contain secrets, and is not shown. */
export const entryLines = (before: unknown, after: unknown): string[] => changedLines(SERVER_NAME, before, after);
