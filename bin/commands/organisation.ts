import type { Command } from 'commander';
import type { CloseOptions } from '../close-organisation.ts';
import { type ConnectionOptions, connectLocally, print } from '../connection.ts';
import { whereToSignIn } from './owner.ts';

type Options = ConnectionOptions & { json?: boolean };
type Organisation = { id: string; name: string; admins: number };

export function addOrganisationCommands(program: Command): void {
  const organisation = program
    .command('organisation')
    .description('organisations of this broker, each with agents, rules, people and a record of its own');
  const local = (command: Command) =>
    command
      .option('--data <folder>', 'data folder of the broker (or AGENT_BROKER_DATA)')
      .option('--json', 'print JSON');

  local(organisation.command('list').description('list the organisations, oldest first')).action(
    async (options: Options) => {
      const answer = await (await connectLocally(options)).ask('GET', '/owner/organisations');
      const found = (answer as { organisations: Organisation[] }).organisations;
      print(options, found, () =>
        found.map(({ name, id, admins }) => `${name}  ${id}${admins === 0 ? '  closed' : ''}`).join('\n'),
      );
    },
  );

  local(
    organisation
      .command('close <name>')
      .description('end an organisation: its agents, connections, credentials and owners; its record stays'),
  )
    .option('--yes', 'do not ask')
    .option('--drop-sinks', 'remove audit sinks even with rows that they did not send yet')
    .action(async (name: string, options: CloseOptions) => {
      const { closeOrganisation } = await import('../close-organisation.ts');
      await closeOrganisation(name, options);
    });

  local(organisation.command('add <name>').description('create an organisation'))
    .requiredOption('--admin <email>', 'address of its first admin')
    .action(async (name: string, options: Options & { admin: string }) => {
      const connection = await connectLocally(options);
      const answer = await connection.ask('POST', '/owner/organisations', { name, admin: options.admin });
      const { email } = answer.admin as { email: string };
      const where = await whereToSignIn(connection, email, name);
      print(options, answer, () => `${answer.name} is an organisation. Its admin ${email} signs in ${where}`);
    });
}
