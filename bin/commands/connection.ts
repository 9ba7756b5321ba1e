import type { Command } from 'commander';
import { type ConnectionOptions, withConnection } from '../connection.ts';

type Options = ConnectionOptions & { json?: boolean };

export function addConnectionCommands(program: Command): void {
  const connection = program.command('connection').description('connections to platforms');
  const load = () => import('../connections/connections.ts');

  withConnection(connection.command('list').description('which there are, and in which state'))
    .option('--json', 'print JSON')
    .action(async (options: Options) => (await load()).listConnections(options));

  withConnection(
    connection
      .command('test [name...]')
      .description('ask the platform once, harmlessly, whether it takes the credential; without a name, all of them'),
  )
    .option('--json', 'print JSON')
    .action(async (names: string[], options: Options) => (await load()).testConnections(names, options));
}
