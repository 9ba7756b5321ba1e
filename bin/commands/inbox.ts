import type { Command } from 'commander';
import { type ConnectionOptions, withConnection } from '../connection.ts';

type Options = ConnectionOptions & { json?: boolean };

export function addInboxCommand(program: Command): void {
  const inbox = withConnection(
    program
      .command('inbox')
      .description(
        'what waits for a person: held calls, access requests, new agents, accounts of people; oldest first',
      ),
  )
    .option('--json', 'print JSON')
    .action(async (options: Options) => {
      const { listInbox } = await import('../inbox/list.ts');
      await listInbox(options);
    });

  withConnection(
    inbox
      .command('show <id>')
      .description('one of them in full, as the approval page shows it; the beginning of its id will do'),
  )
    .option('--json', 'print JSON')
    .action(async (id: string, _options: Options, command: Command) => {
      const { showWaiting } = await import('../inbox/show.ts');
      // Options before the word `show` apply, too.
      await showWaiting(id, command.optsWithGlobals<Options>());
    });
}
