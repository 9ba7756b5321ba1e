import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { CommandFailed } from '../failure.ts';

export function addBackupCommand(program: Command): void {
  program
    .command('backup')
    .description('back up the SQLite store into a new file, also while the broker runs (without the master key)')
    .argument('<file>', 'the file to make')
    .option('--json', 'print JSON')
    .action(async (file: string, options: { json?: boolean }) => {
      const { readConfig } = await import('../../broker/config.ts');
      const { backupSqlite } = await import('../../broker/store/sqlite-backup.ts');
      const config = readConfig(process.env);
      if (config.databaseUrl)
        throw new CommandFailed('This broker stores in PostgreSQL. Back it up as any database, with pg_dump.');
      const to = resolve(file);
      const bytes = backupSqlite(join(config.dataFolder, 'store', 'broker.db'), to);
      process.stdout.write(
        options.json
          ? `${JSON.stringify({ file: to, bytes })}\n`
          : `Backed up the store into ${file} (${(bytes / 1e6).toFixed(1)} MB). Keep the master key apart from it.\n`,
      );
    });
}
