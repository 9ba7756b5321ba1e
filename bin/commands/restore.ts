import { resolve } from 'node:path';
import type { Command } from 'commander';
import { type ConnectionOptions, withConnection } from '../connection.ts';
import { CommandFailed, WrongUsage } from '../failure.ts';
import { postgresPrograms } from '../postgres-programs.ts';
import { PROGRAM } from '../program-name.ts';

type Options = { inPlace?: boolean; nothingSince?: boolean; replace?: boolean; json?: boolean };
type ReviewOptions = ConnectionOptions & { end?: boolean; reason?: string; json?: boolean };

export function addRestoreCommands(program: Command): void {
  program
    .command('restore')
    .description('restore a backup: pending items end, and no call is made until an admin has reviewed the store')
    .argument('[file]', 'the backup, with its manifest next to it')
    .option('--in-place', 'mark the current store as restored: it was restored by other means')
    .option('--nothing-since', 'no call was made after the backup: every Idempotency-Key is accepted immediately')
    .option(
      '--replace',
      'replace the current store, which then no longer starts (with SQLite it is kept under another name)',
    )
    .option('--json', 'print JSON')
    .action(async (file: string | undefined, options: Options) => {
      if ((file === undefined) === !options.inPlace)
        throw new WrongUsage('Name the backup to restore, or say --in-place.');
      const { readConfig } = await import('../../broker/environment/config.ts');
      const { makeLog } = await import('../../broker/log/log.ts');
      const { restoreBackup, restoreInPlace } = await import('../../broker/process/restore.ts');
      const { startFault } = await import('../../broker/process/start-fault.ts');
      const config = readConfig(process.env);
      const nothingSince = options.nothingSince ?? false;
      const with_ = { config, log: makeLog(config.logLevel), nothingSince };
      const restored = await (file === undefined
        ? restoreInPlace(with_)
        : restoreBackup(resolve(file), { ...with_, programs: postgresPrograms, replace: options.replace ?? false })
      ).catch((error) => {
        const fault = startFault(error, config);
        throw fault instanceof Error ? new CommandFailed(fault.message, { cause: error }) : fault;
      });
      const lines = [
        restored.made_at === null
          ? 'The store is now marked as restored.'
          : `Restored the backup of ${restored.made_at}.`,
        'Its pending items and all sessions were ended.',
        ...(restored.replaced === null ? [] : [`The previous store was moved to ${restored.replaced}.`]),
        `Start the broker. It makes no calls until an admin has reviewed it: ${PROGRAM} restored, or Restored in the console.`,
      ];
      process.stdout.write(options.json ? `${JSON.stringify(restored)}\n` : `${lines.join('\n')}\n`);
    });

  withConnection(
    program
      .command('restored')
      .description('show what a restored store would allow, for the review before calls are enabled'),
  )
    .option('--end', 'the store was reviewed: enable calls')
    .option('--reason <text>', 'with --end: reason, recorded')
    .option('--json', 'print JSON')
    .action(async (options: ReviewOptions) => {
      if (options.reason !== undefined && !options.end)
        throw new WrongUsage('A reason is recorded when the review ends: add --end, or leave out --reason.');
      const { endReview, printReview } = await import('../restored/review.ts');
      await (options.end ? endReview(options) : printReview(options));
    });
}
