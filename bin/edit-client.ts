/** Edits the entry of one server in a client's configuration, in whatever the client's file is written. */
import { type ClientId, clientNamed } from './clients.ts';
import { changedLines, type Edited, editEntry } from './edit-config.ts';
import { SERVER_NAME } from './server-entry.ts';

/** What Continue makes of a file that is not there, but for the models that it offers. */
const EMPTY_CONTINUE = { name: 'Local Config', version: '1.0.0', schema: 'v1', models: [] };

/** `entry`: undefined takes it out. Throws CommandFailed, naming `path`, when the text cannot be changed. */
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

/** The entry as the client's file has it, in a file of its own. */
export const entryText = async (client: ClientId, entry: object): Promise<string> =>
  (await editClient(client, '', entry, 'a new file')).text.trimEnd();

/** What changed of the entry, for a person: the rest of the file may hold secrets, and is not shown. */
export const entryLines = (before: unknown, after: unknown): string[] => changedLines(SERVER_NAME, before, after);
