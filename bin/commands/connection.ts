import type { Command } from 'commander';
import { type ConnectionOptions, withConnection } from '../connection.ts';
import type { TimeoutOptions } from '../connections/connections.ts';
import { wholeNumber } from '../duration.ts';

type Options = ConnectionOptions & { json?: boolean };

/** Parses a number of seconds in a range, or `default`. */
const seconds = (least: number, most: number) => (text: string) =>
  text === 'default' ? text : wholeNumber(least, most)(text);

export function addConnectionCommands(program: Command): void {
  const connection = program.command('connection').description('connections to platforms');
  const load = () => import('../connections/connections.ts');

  withConnection(connection.command('list').description('list the connections with their state'))
    .option('--json', 'print JSON')
    .action(async (options: Options) => (await load()).listConnections(options));

  withConnection(connection.command('set <name>').description('change the timeouts of a connection'))
    .option(
      '--idle <seconds>',
      'how long a streamed answer may be silent, 1 to 600; default: as the platform says, or 60',
      seconds(1, 600),
    )
    .option(
      '--wait <seconds>',
      'how long a request on /proxy waits for a person, 0 to 120; default: 25',
      seconds(0, 120),
    )
    .option('--json', 'print JSON')
    .action(async (name: string, options: TimeoutOptions) => (await load()).changeTimeouts(name, options));

  withConnection(
    connection
      .command('test [name...]')
      .description(
        'test with one harmless request whether the platform accepts the credential; without a name, all connections',
      ),
  )
    .option('--json', 'print JSON')
    .action(async (names: string[], options: Options) => (await load()).testConnections(names, options));
}
