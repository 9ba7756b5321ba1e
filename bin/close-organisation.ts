/** Closes an organisation for the operator, step by step. */
import { setTimeout as pause } from 'node:timers/promises';
import { commandWith } from './command-with.ts';
import { type BrokerConnection, type ConnectionOptions, connectLocally, print } from './connection.ts';
import { CommandFailed, WrongUsage } from './failure.ts';
import { line, styled } from './terminal/line.ts';
import { printLines } from './terminal/output.ts';
import { canAsk, confirm } from './terminal/prompt.ts';

export type CloseOptions = ConnectionOptions & { json?: boolean; yes?: true; dropSinks?: true };
type Closing = { closed: boolean; agents_left: boolean; sinks: { name: string; behind: number }[] };

/** How often to look whether audit sinks have sent the last rows, and the pause between. */
const MAX_CHECKS = 30;
const PAUSE_MS = 1_000;

/** Asks for confirmation first. `given`: the name of the organisation, or its id. Throws CommandFailed, WrongUsage. */
export async function closeOrganisation(given: string, options: CloseOptions): Promise<void> {
  if (!options.yes && (options.json || !canAsk()))
    throw new WrongUsage('To close an organisation without a terminal to ask at, or with --json, add --yes.');
  const connection = await connectLocally(options);
  const { organisations } = (await connection.ask('GET', '/owner/organisations')) as {
    organisations: { id: string; name: string }[];
  };
  const found =
    organisations.find(({ id }) => id === given.toLowerCase()) ?? organisations.find(({ name }) => name === given);
  if (!found)
    throw new CommandFailed(`There is no such organisation. See: ${commandWith(options, 'organisation list')}`);
  if (!options.yes) await ask(found.name);
  const { sinks } = await close(connection, found.id, options.dropSinks === true);
  if (sinks.length > 0) {
    const behind = sinks.map((sink) => `"${sink.name}" (${sink.behind} rows)`).join(', ');
    throw new CommandFailed(
      `Audit sinks did not send all rows yet: ${behind}. All else is closed. Run this again when they have, or with --drop-sinks to remove them anyway.`,
    );
  }
  print(
    options,
    { id: found.id, name: found.name, closed: true },
    () => `${found.name} is closed. Its owners can still read its record.`,
  );
}

async function ask(name: string): Promise<void> {
  printLines([
    line`${styled('bold', name)}: its agents are revoked, its connections end and their credentials are deleted, and its owners become viewers.`,
  ]);
  if (!(await confirm('This cannot be undone. Go on to close it?'))) throw new CommandFailed('Nothing was changed.');
}

async function close(connection: BrokerConnection, id: string, dropSinks: boolean): Promise<Closing> {
  for (let look = 0; ; ) {
    const path = `/owner/organisations/${id}/close`;
    const now = (await connection.ask('POST', path, { drop_sinks: dropSinks })) as unknown as Closing;
    if (now.closed) return now;
    if (now.agents_left) continue;
    if (++look === MAX_CHECKS) return now;
    await pause(PAUSE_MS);
  }
}
