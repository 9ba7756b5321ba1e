import type { Command } from 'commander';
import { type ConnectionOptions, withConnection } from '../connection.ts';

type Options = ConnectionOptions & { json?: boolean };

export function addInboxCommand(program: Command): void {
  const inbox = withConnection(
    program
      .command('inbox')
      .description(
        'list pending items: held calls, access requests, agent registrations, accounts of people; oldest first',
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
      .description('show one item completely, like the approval page; takes an id or a unique prefix'),
  )
    .option('--json', 'print JSON')
    .action(async (id: string, _options: Options, command: Command) => {
      const { showWaiting } = await import('../inbox/show.ts');
      // Options before the word `show` apply, too.
      await showWaiting(id, command.optsWithGlobals<Options>());
    });
}
