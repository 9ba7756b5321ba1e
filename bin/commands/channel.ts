import type { Command } from 'commander';
import type { AddOptions, Options } from '../channels/channels.ts';
import { withConnection } from '../connection.ts';
import { wholeNumber } from '../duration.ts';

const list = (text: string, before: string[] = []): string[] => [...before, ...text.split(',')];

export function addChannelCommands(program: Command): void {
  const channel = program.command('channel').description('channels for notices to owners');
  const load = () => import('../channels/channels.ts');

  withConnection(channel.command('list').description('list the channels with their delivery status'))
    .option('--json', 'print JSON')
    .action(async (options: Options) => (await load()).listChannels(options));

  withConnection(
    channel
      .command('add <name> <kind> [setting...]')
      .description(
        'add one; kinds with settings as key=value: webhook (url), ntfy (server, topic), email (host, port, security, user, from, to), slack (channel, people, server), teams (none), telegram (chat, thread, people, server)',
      ),
  )
    .option('--event <event>', 'only these events, such as call_held; repeatable or separated by commas', list)
    .option('--agent <pattern>', 'only events of these agents, by name or id; "*" matches any text', list)
    .option('--platform <pattern>', 'only events of these platforms', list)
    .option('--quiet <hours>', 'hours in which nothing is sent, such as 22:00-07:00')
    .option('--zone <zone>', 'time zone of these hours, such as Europe/Berlin; default: the one of this machine')
    .option('--remind <minutes>', 'send a reminder so many minutes before the expiry', wholeNumber(1, 43_200))
    .option('--secret-stdin', 'read the secret from standard input')
    .option('--secret-env <variable>', 'read the secret from this variable')
    .option('--signing-secret-env <variable>', 'read the signing secret of a Slack app from this variable, for buttons')
    .option('--json', 'print JSON')
    .action(async (name: string, kind: string, settings: string[], options: AddOptions) =>
      (await load()).addChannel(name, kind, settings, options),
    );

  withConnection(channel.command('test [name...]').description('send a test notice; without a name, on all channels'))
    .option('--json', 'print JSON')
    .action(async (names: string[], options: Options) => (await load()).testChannels(names, options));

  withConnection(channel.command('remove <name>').description('remove a channel with its secret'))
    .option('--json', 'print JSON')
    .action(async (name: string, options: Options) => (await load()).removeChannel(name, options));
}
